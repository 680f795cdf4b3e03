"""The training loop: sample, grade, update, evaluate, checkpoint."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from rlcast.recipe import Recipe
from runners.trainer.checkpoint import Checkpoint, CheckpointStore
from runners.trainer.evaluate import evaluate
from runners.trainer.events import EventLog
from runners.trainer.flops import FlopCounter
from runners.trainer.generator import TorchGenerator
from runners.trainer.learner import Learner, UpdateStats
from runners.trainer.meter import Meter
from runners.trainer.model import build_model, load_parameters, parameters_of
from runners.trainer.rollouts import OffPolicyBatches
from runners.trainer.stats import rollout_stats
from runners.trainer.stopping import StopFlag, Stopped
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group
from runners.trainer.warm_start import warm_start

log = logging.getLogger(__name__)

_PROGRESS_EVERY_S = 2.0


class Trainer:
    """One run in one folder. `run()` returns when the recipe's last step is done.

    An evaluation is published (written to the event log) only after a checkpoint of the same step is on disk.
    A run that is resumed after a crash therefore never leaves points behind that its own weights do not have.
    """

    def __init__(self, recipe: Recipe, folder: Path, events: EventLog, stop: StopFlag) -> None:
        torch.set_num_threads(recipe.devices.threads)
        self._recipe = recipe
        self._events = events
        self._stop = stop
        self._task = ArithmeticTask(recipe.task)
        self._tokenizer = CharTokenizer(self._task.alphabet)
        longest = self._longest_prompt() + recipe.sampling.max_new_tokens
        self.model = build_model(recipe.model, self._tokenizer.vocab_size, longest)
        self._generator = TorchGenerator(self.model, self._tokenizer, recipe.sampling.max_new_tokens)
        self._rollouts = OffPolicyBatches(recipe, self._task, self._generator)
        self._learner = Learner(self.model, recipe, self._tokenizer.pad_id)
        self._meter = Meter(recipe.devices.threads, recipe.compute_unit)
        self._checkpoints = CheckpointStore(folder / "checkpoints", recipe.checkpoint.keep)
        self._flops = self._flop_counter()
        self._evaluation: dict[str, Any] | None = None  # the newest one, kept until it is published
        self._last_progress_s = 0.0
        self.step = 0

    def run(self) -> float:
        """Trains to the end and returns the last pass rate; raises `Stopped` after a checkpoint."""
        self._restore_or_warm_start()
        self._meter.start()
        while self.step < self._recipe.steps:
            if self._stop.is_set():
                self._checkpoint()
                raise Stopped
            groups = self._rollouts.next_batch(self.step)
            stats = self._learner.update(groups, self.step)
            self.step += 1
            self._count(groups, stats)
            self._report_progress(groups, stats)
            if self._recipe.evaluation.is_due(self.step, self._recipe.steps):
                self._evaluate()
            elif self.step % self._recipe.checkpoint.every_steps == 0:
                self._checkpoint()
        assert self._evaluation is not None
        return float(self._evaluation["pass_rate"])

    def _restore_or_warm_start(self) -> None:
        checkpoint = self._checkpoints.newest()
        started = {"recipe": self._recipe.name, "total_steps": self._recipe.steps}
        if checkpoint is not None:
            self._restore(checkpoint)
            log.info("resumed at step %d", self.step)
            self._events.append("started", {**started, "step": self.step})
            self._publish()
            return
        self._events.append("started", {**started, "step": 0})
        self._events.append("progress", {"step": 0, "total_steps": self._recipe.steps, "phase": "warm-start"})
        warm_start(self.model, self._recipe, self._task, self._tokenizer, self._stop)
        self._evaluate()

    def _evaluate(self) -> None:
        plan = self._recipe.evaluation
        with self._meter.evaluation():
            score = evaluate(
                self._generator, self._task, plan.samples_per_prompt, self.step, self._recipe.seed
            )
        self._evaluation = {
            "benchmark": self._recipe.benchmark,
            "step": self.step,
            "compute": self._meter.compute(),
            "pass_rate": score.pass_rate,
            "n_prompts": score.n_prompts,
            "n_samples": score.n_samples,
            "solved": score.solved,
            "truncated": score.truncated,
            "measured_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self._checkpoint()
        self._publish()

    def _publish(self) -> None:
        """Writes the newest evaluation to the event log, unless it is there already."""
        if self._evaluation and self._evaluation["step"] not in self._events.evaluated_steps():
            self._events.append("evaluation", self._evaluation)
            log.info("step %d: held-out pass rate %.3f", self.step, self._evaluation["pass_rate"])

    def _checkpoint(self) -> None:
        state = {
            "recipe_hash": self._recipe.content_hash,
            "meter": self._meter.state(),
            "rollouts": self._rollouts.state(),
            "evaluation": self._evaluation,
        }
        weights = parameters_of(self.model)
        self._checkpoints.save(Checkpoint(self.step, weights, self._learner.state(), state))

    def _restore(self, checkpoint: Checkpoint) -> None:
        load_parameters(self.model, checkpoint.weights)
        self._learner.load_state(checkpoint.optimizer)
        self._rollouts.load_state(checkpoint.state["rollouts"])
        self._meter.load_state(checkpoint.state["meter"])
        self._meter.count_lost_hours(self._events.last_value(self._recipe.compute_unit))
        self._evaluation = checkpoint.state["evaluation"]
        self.step = checkpoint.step

    def _count(self, groups: list[Group], stats: UpdateStats) -> None:
        totals = self._meter.totals
        samples = [sample for group in groups for sample in group.samples]
        generated = sum(len(sample.token_ids) for sample in samples)
        prompted = sum(len(group.prompt_ids) for group in groups)
        context = (prompted / len(groups) + generated / len(samples)) / 2
        totals.steps = self.step
        totals.samples += len(samples)
        totals.tokens += generated
        totals.flops += self._flops.forward(generated + prompted, context)
        totals.flops += self._flops.train(stats.trained_tokens, context)

    def _report_progress(self, groups: list[Group], stats: UpdateStats) -> None:
        now = time.monotonic()
        if now - self._last_progress_s < _PROGRESS_EVERY_S and self.step < self._recipe.steps:
            return
        self._last_progress_s = now
        rollouts = rollout_stats(groups, self.step - 1)
        progress = {
            "step": self.step,
            "total_steps": self._recipe.steps,
            "phase": "train",
            "loss": stats.loss,
            "grad_norm": stats.grad_norm,
            "trained_rows": stats.rows,
            **rollouts,
            **self._meter.compute(),
        }
        self._events.append("progress", progress)
        log.info(
            "step %d of %d: reward %.3f, loss %.4f, gradient norm %.3f",
            self.step, self._recipe.steps, rollouts["reward_mean"], stats.loss, stats.grad_norm,
        )  # fmt: skip

    def _longest_prompt(self) -> int:
        return max(len(self._tokenizer.encode_prompt(p.text)) for p in self._task.heldout_prompts())

    def _flop_counter(self) -> FlopCounter:
        spec = self._recipe.model
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return FlopCounter(parameters, spec.layers * spec.heads * spec.head_dim)
