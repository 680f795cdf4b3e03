"""What a run has used: held devices times wall time, FLOPs, tokens, samples and steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from runners.trainer.flops import FlopCounter
from runners.trainer.types import Group


@dataclass
class Totals:
    """Running totals. Evaluation has its own seconds and is in none of the others."""

    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    flops: float = 0.0
    tokens: int = 0
    samples: int = 0
    steps: int = 0


class Meter:
    """Device-seconds from the first rollout on, idle time included.

    devices: cores or GPUs that the run holds; every second counts for each of them. Starting up (imports,
    warm start, restoring) is before the meter runs: on a run of two minutes it would bend the curve's
    beginning.
    """

    def __init__(self, devices: int, unit: str, flop_counter: FlopCounter) -> None:
        self.totals = Totals()
        self._flop_counter = flop_counter
        self._devices = devices
        self._unit = unit
        self._since: float | None = None

    def start(self) -> None:
        self._since = time.monotonic()

    def settle(self) -> None:
        """Books the training time so far."""
        if self._since is not None:
            now = time.monotonic()
            self.totals.train_seconds += (now - self._since) * self._devices
            self._since = now

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Books the time inside as evaluation, not as training."""
        self.settle()
        began, running = time.monotonic(), self._since is not None
        self._since = None
        try:
            yield
        finally:
            self.totals.evaluation_seconds += (time.monotonic() - began) * self._devices
            if running:
                self.start()

    def count_step(self, groups: list[Group], trained_tokens: int) -> None:
        """One update on `groups`. tokens counts what was generated, FLOPs also the prompts."""
        samples = [sample for group in groups for sample in group.samples]
        generated = sum(len(sample.token_ids) for sample in samples)
        prompted = sum(len(group.prompt_ids) for group in groups)
        context = (prompted / len(groups) + generated / len(samples)) / 2
        self.totals.steps += 1
        self.totals.samples += len(samples)
        self.totals.tokens += generated
        self.totals.flops += self._flop_counter.forward(generated + prompted, context)
        self.totals.flops += self._flop_counter.train(trained_tokens, context)

    def compute(self) -> dict[str, float]:
        """Training compute so far, by unit."""
        self.settle()
        return {
            self._unit: self.totals.train_seconds / 3600,
            "flops": self.totals.flops,
            "tokens": float(self.totals.tokens),
            "samples": float(self.totals.samples),
            "steps": float(self.totals.steps),
        }

    def state(self) -> dict[str, Any]:
        self.settle()
        return asdict(self.totals)

    def load_state(self, state: dict[str, Any]) -> None:
        self.totals = Totals(**state)

    def count_lost_hours(self, hours: float) -> None:
        """After a crash, work since the checkpoint is redone, yet the devices were held for it."""
        self.totals.train_seconds = max(self.totals.train_seconds, hours * 3600)
