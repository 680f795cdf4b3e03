"""Where training batches come from."""

from __future__ import annotations

from typing import Any

from rlcast.recipe import Recipe
from runners.trainer.generator import Generator
from runners.trainer.grading import grade
from runners.trainer.seeding import derived_seed
from runners.trainer.tasks import Task
from runners.trainer.types import Group


class OffPolicyBatches:
    """PPO-off-policy-k: k batches are sampled at once by the current policy, then used one update each."""

    def __init__(self, recipe: Recipe, task: Task, generator: Generator) -> None:
        self._recipe = recipe
        self._task = task
        self._generator = generator
        self._position = 0  # next place in the task's endless order of training prompts
        self._waiting: list[Group] = []

    def next_batch(self, step: int) -> list[Group]:
        """The graded groups of the update number `step`."""
        if not self._waiting:
            self._waiting = self._sample(step)
        size = self._recipe.sampling.prompts_per_step
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return batch

    def _sample(self, version: int) -> list[Group]:
        seed, sampling = self._recipe.seed, self._recipe.sampling
        remaining_steps = self._recipe.steps - version
        count = sampling.prompts_per_step * min(self._recipe.pipeline.k, remaining_steps)
        prompts = [self._task.train_prompt(self._position + i, seed) for i in range(count)]
        groups = self._generator.generate(
            prompts, sampling.samples_per_prompt, version, derived_seed("training", seed, self._position)
        )
        grade(groups, self._task)
        self._position += count
        return groups

    def state(self) -> dict[str, Any]:
        return {"position": self._position, "waiting": [group.to_dict() for group in self._waiting]}

    def load_state(self, state: dict[str, Any]) -> None:
        self._position = state["position"]
        self._waiting = [Group.from_dict(group) for group in state["waiting"]]
