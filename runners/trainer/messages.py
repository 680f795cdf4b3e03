"""What trainer and generator processes send each other."""

from __future__ import annotations

from dataclasses import dataclass

from runners.trainer.types import Group, Prompt


@dataclass(frozen=True)
class Request:
    """A prompt to be sampled; `order` says for which place in the training order."""

    order: int
    prompt: Prompt
    samples: int
    seed: int


@dataclass(frozen=True)
class Finished:
    """A request's group, and for how long its generator has worked since it started, in seconds."""

    order: int
    group: Group
    busy_seconds: float
