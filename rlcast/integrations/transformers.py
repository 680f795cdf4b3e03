"""A `TrainerCallback` for the trainers of Hugging Face transformers and those built on them.

trainer = Trainer(…, callbacks=[RlcastCallback("eval_accuracy", recipe="mine", benchmark="math-held-out")])
"""

from __future__ import annotations

import logging
from typing import Any

from transformers import TrainerCallback

from rlcast.tracking.run import Run
from rlcast.tracking.start import start_run

log = logging.getLogger("rlcast")

_END_FLUSH_S = 10.0


class RlcastCallback(TrainerCallback):
    """Forwards one evaluation metric, as the pass rate of each evaluated step.

    Args:
        metric: key in the trainer's logs whose value is a pass rate from 0 to 1, such as `eval_accuracy`.
        devices: GPUs that the run holds. Default: the trainer's processes. Give the whole number when a
            generation server holds some too.
        prompts, samples: of each evaluation, where known: they tell its noise.
        start: of `rlcast.start_run`: recipe, benchmark, name, seed, unit, url, token, folder, strict, …

    Compute is measured from the beginning of `train()`, evaluations left out. To go on with a run after a
    restart, give the same `name`; the default is the trainer's `run_name`.
    """

    def __init__(
        self,
        metric: str,
        *,
        devices: float | None = None,
        prompts: int | None = None,
        samples: int | None = None,
        **start: Any,
    ) -> None:
        self.metric = metric
        self.run: Run | None = None
        self._devices = devices
        self._prompts = prompts
        self._samples = samples
        self._start = start
        self._paused = False
        self._last_step: int | None = None
        self._warned = False

    # -- the meter -----------------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is None:
            self.run = self._start_run(args)
        self._resume()
        if getattr(args, "eval_on_start", False):
            self._pause()

    def _start_run(self, args: Any) -> Run:
        options = dict(self._start)
        if str(options.get("unit", "gpu_hours")).endswith("_hours"):
            options["devices"] = self._devices if self._devices is not None else args.world_size
        options.setdefault("name", getattr(args, "run_name", None))
        options.setdefault("seed", getattr(args, "seed", None))
        options.setdefault("rank", args.process_index)
        return start_run(**options)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if control.should_evaluate:  # the trainer's own flow callback runs before this one
            self._pause()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pause()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._resume()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._resume()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pause()
        if self.run is not None:
            self.run.flush(_END_FLUSH_S)

    def _pause(self) -> None:
        if self.run is not None and not self._paused:
            self.run.pause_meter()
            self._paused = True

    def _resume(self) -> None:
        if self.run is not None and self._paused:
            self.run.resume_meter()
            self._paused = False

    # -- the metric ----------------------------------------------------------------------------

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Here and not in `on_evaluate`: TRL adds its rewards while it logs."""
        if self.run is None or not logs:
            return
        if self.metric in logs:
            if state.global_step != self._last_step:  # an evaluation after the last step repeats it
                self._last_step = state.global_step
                self.run.log(
                    step=state.global_step,
                    pass_rate=logs[self.metric],
                    prompts=self._prompts,
                    samples=self._samples,
                )
        elif not self._warned and any(key.startswith("eval_") for key in logs):
            self._warned = True
            known = ", ".join(key for key in logs if key.startswith("eval_"))
            log.warning("rlcast: NOT LOGGED: the evaluation has no %r; it has: %s", self.metric, known)
