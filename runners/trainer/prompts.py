"""The stream of training prompts, and which of them are not asked again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rlcast.recipe_parts import NoPositiveResampling
from runners.trainer.tasks import Task
from runners.trainer.types import Group, Prompt


@dataclass(frozen=True)
class Ticket:
    """One prompt at its place in the task's endless training order."""

    position: int
    prompt: Prompt


class PassRateTable:
    """Pass rate of every prompt over all its visits (No-Positive-Resampling, arXiv 2510.13786 §3.2)."""

    def __init__(self, rule: NoPositiveResampling | None) -> None:
        self._rule = rule
        self._counts: dict[int, list[int]] = {}  # prompt id -> [solved, graded, visits]

    def record(self, groups: Iterable[Group]) -> None:
        if self._rule is None:
            return
        for group in groups:
            rewards = group.rewards()
            counts = self._counts.setdefault(group.prompt.id, [0, 0, 0])
            counts[0] += sum(reward == 1.0 for reward in rewards)
            counts[1] += len(rewards)
            counts[2] += 1

    def is_excluded(self, prompt_id: int) -> bool:
        solved, graded, visits = self._counts.get(prompt_id, (0, 0, 0))
        if self._rule is None or graded == 0 or visits < self._rule.min_visits:
            return False
        return solved / graded >= self._rule.pass_rate

    def excluded(self) -> int:
        """How many prompts are out."""
        return sum(self.is_excluded(prompt_id) for prompt_id in self._counts)

    def state(self) -> dict[str, list[int]]:
        return {str(prompt_id): counts for prompt_id, counts in self._counts.items()}

    def load_state(self, state: dict[str, list[int]]) -> None:
        self._counts = {int(prompt_id): counts for prompt_id, counts in state.items()}


class PromptStream:
    """Hands out prompts in the task's order, without those that the pass-rate table excludes."""

    def __init__(self, task: Task, seed: int, table: PassRateTable) -> None:
        self._task = task
        self._seed = seed
        self.table = table
        self._position = 0

    def take(self, count: int) -> list[Ticket]:
        return [self._next() for _ in range(count)]

    def _next(self) -> Ticket:
        for position in range(self._position, self._position + self._task.train_size):
            ticket = self.ticket(position)
            if not self.table.is_excluded(ticket.prompt.id):
                self._position = position + 1
                return ticket
        raise RuntimeError(
            "filters.no_positive_resampling: every training prompt is solved; give task.train_prompts more "
            "prompts, or the recipe fewer steps"
        )

    def ticket(self, position: int) -> Ticket:
        return Ticket(position, self._task.train_prompt(position, self._seed))

    def state(self) -> dict[str, Any]:
        return {"position": self._position, "pass_rates": self.table.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._position = state["position"]
        self.table.load_state(state["pass_rates"])
