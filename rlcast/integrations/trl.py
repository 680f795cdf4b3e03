"""A callback for TRL's trainers that sample and reward: GRPO and its kin.

trainer = GRPOTrainer(…, eval_dataset=held_out, callbacks=[
    RlcastCallback(reward="accuracy_reward", recipe="mine", benchmark="math-held-out")])
"""

from __future__ import annotations

from typing import Any

from rlcast.integrations import transformers


class RlcastCallback(transformers.RlcastCallback):
    """Forwards the mean reward of each evaluation.

    Args:
        reward: name of the reward function whose mean is the pass rate: one that gives 1 for a right answer
            and 0 for a wrong one. None takes the weighted sum of all, which is a pass rate only when there
            is nothing else in it.
        others: as for `rlcast.integrations.transformers.RlcastCallback`. `samples` is known from the
            trainer's configuration, `prompts` from its evaluation set.
    """

    def __init__(self, reward: str | None = None, **options: Any) -> None:
        super().__init__(f"eval_rewards/{reward}/mean" if reward else "eval_reward", **options)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self._samples is None:
            known = (getattr(args, key, None) for key in ("num_generations_eval", "num_generations"))
            self._samples = next((count for count in known if count), None)
        if self._prompts is None:
            self._prompts = _length_of(kwargs.get("eval_dataloader"))
        super().on_log(args, state, control, logs=logs, **kwargs)


def _length_of(loader: Any) -> int | None:
    """Prompts of an evaluation set; None for a stream, or when there are several sets."""
    try:
        return len(loader.dataset) or None
    except (AttributeError, TypeError):
        return None
