"""What travels between generator, grader and trainer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Prompt:
    """A question with its reference answer. `id` is stable for a task and its seed."""

    id: int
    text: str
    answer: str


@dataclass
class Sample:
    """One completion.

    token_ids: what was generated, the end-of-sequence token included.
    logprobs:  log-probability of each token under the policy that sampled it.
    versions:  the optimiser step of the weights that sampled each token.
    finished:  False when the length limit cut it.
    reward:    1.0 right, 0.0 wrong or unparsable, None when the grader itself failed.
    injected:  which tokens were forced in by an interruption; empty when none was.
    """

    token_ids: list[int]
    logprobs: list[float]
    versions: list[int]
    text: str
    finished: bool
    reward: float | None = None
    injected: list[bool] = field(default_factory=list)

    @property
    def chosen(self) -> list[bool]:
        """For each token, whether the policy chose it."""
        return [not injected for injected in self.injected] or [True] * len(self.token_ids)

    @property
    def is_interrupted(self) -> bool:
        return any(self.injected)


@dataclass
class Group:
    """All completions of one prompt."""

    prompt: Prompt
    prompt_ids: list[int]
    samples: list[Sample] = field(default_factory=list)

    def rewards(self) -> list[float]:
        """Rewards of the samples that have one."""
        return [sample.reward for sample in self.samples if sample.reward is not None]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Group:
        return cls(
            prompt=Prompt(**data["prompt"]),
            prompt_ids=data["prompt_ids"],
            samples=[Sample(**sample) for sample in data["samples"]],
        )
