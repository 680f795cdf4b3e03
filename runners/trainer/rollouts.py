"""Where training batches come from: PPO-off-policy-k in this process, PipelineRL-k from another one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from rlcast.recipe import Recipe
from runners.trainer.generator import Generator
from runners.trainer.generator_pool import GeneratorPool
from runners.trainer.grading import Grader
from runners.trainer.messages import Finished, Request
from runners.trainer.prompts import PromptStream, Ticket
from runners.trainer.seeding import derived_seed
from runners.trainer.types import Group


class Rollouts(Protocol):
    """Graded groups for one update after the other."""

    def next_batch(self, step: int) -> list[Group]:
        """The groups of the update number `step` (from 0)."""
        ...

    def weights_changed(self, step: int) -> None:
        """The policy has made `step` updates."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def metrics(self) -> dict[str, float]: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class OffPolicyBatches:
    """PPO-off-policy-k: k batches are sampled at once by the current policy, then used one update each.

    A generator in another process gets the weights of `model` before each time that it samples.
    """

    def __init__(
        self,
        recipe: Recipe,
        prompts: PromptStream,
        generator: Generator,
        grader: Grader,
        model: torch.nn.Module,
    ) -> None:
        self._recipe = recipe
        self._prompts = prompts
        self._generator = generator
        self._grader = grader
        self._model = model
        self._waiting: list[Group] = []

    def next_batch(self, step: int) -> list[Group]:
        if not self._waiting:
            self._waiting = self._sample(step)
        size = self._recipe.sampling.prompts_per_step
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return batch

    def _sample(self, step: int) -> list[Group]:
        """Batches for k updates, fewer when the recipe ends before."""
        sampling = self._recipe.sampling
        batches = min(self._recipe.pipeline.k, self._recipe.steps - step)
        tickets = self._prompts.take(sampling.prompts_per_step * batches)
        seed = derived_seed("training", self._recipe.seed, tickets[0].position)
        if isinstance(self._generator, GeneratorPool):
            self._generator.push(self._model, step)
        groups = self._generator.generate(
            [ticket.prompt for ticket in tickets], sampling.samples_per_prompt, seed
        )
        self._grader.grade(groups)
        self._prompts.table.record(groups)
        return groups

    def weights_changed(self, step: int) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def metrics(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Any]:
        return {"prompts": self._prompts.state(), "waiting": [group.to_dict() for group in self._waiting]}

    def load_state(self, state: dict[str, Any]) -> None:
        self._prompts.load_state(state["prompts"])
        self._waiting = [Group.from_dict(group) for group in state["waiting"]]

    def close(self) -> None:
        if isinstance(self._generator, GeneratorPool):
            self._generator.close()


def check_lag(groups: list[Group], step: int, k: int) -> None:
    """Raises when a token's weights are more than k steps old, or newer than the trainer's."""
    for group in groups:
        lags = [step - version for sample in group.samples for version in sample.versions]
        if not 0 <= min(lags) <= max(lags) <= k:
            raise RuntimeError(
                f"pipeline.k: the tokens of prompt {group.prompt.id} were sampled by weights {min(lags)} to "
                f"{max(lags)} steps old, 0 to {k} are allowed; the generator did not take what it was sent"
            )


@dataclass
class PipelineTimes:
    """Seconds of the trainer's side since the start."""

    waiting: float = 0.0
    pushing: float = 0.0
    paused: float = 0.0


class PipelinedBatches:
    """PipelineRL-k: tickets bound how far the generator runs ahead, and batches are used in ticket order.

    At step s, (k + 1) batches of tickets are out: those of the updates s … s + k. A ticket is handed out
    after the weights of its own step have been pushed, and is used at most k updates later, so none of its
    tokens is older than k steps. Nothing is dropped for being late, which would favour short completions:
    the trainer waits for the batch whose turn it is.
    """

    def __init__(
        self,
        recipe: Recipe,
        prompts: PromptStream,
        generator: GeneratorPool,
        grader: Grader,
        model: torch.nn.Module,
    ) -> None:
        self._recipe = recipe
        self._prompts = prompts
        self._generator = generator
        self._grader = grader
        self._model = model
        self._outstanding: list[Ticket] = []  # in the order in which they will be used
        self._ready: dict[int, Group] = {}
        self._times = PipelineTimes()
        self._began = time.monotonic()
        self._generator_busy = 0.0

    def next_batch(self, step: int) -> list[Group]:
        self._issue(step)
        batch = self._outstanding[: self._recipe.sampling.prompts_per_step]
        began = time.monotonic()
        while any(ticket.position not in self._ready for ticket in batch):
            for finished in self._generator.receive():
                self._accept(finished)
        self._times.waiting += time.monotonic() - began
        self._outstanding = self._outstanding[len(batch) :]
        groups = [self._ready.pop(ticket.position) for ticket in batch]
        check_lag(groups, step, self._recipe.pipeline.k)
        self._grader.grade(groups)
        self._prompts.table.record(groups)
        return groups

    def _accept(self, finished: Finished) -> None:
        self._ready[finished.order] = finished.group
        self._generator_busy = finished.busy_seconds

    def _issue(self, step: int) -> None:
        """Fills the tickets up to (k + 1) batches, not beyond the last step's."""
        sampling = self._recipe.sampling
        batches = min(self._recipe.pipeline.k + 1, self._recipe.steps - step)
        missing = sampling.prompts_per_step * batches - len(self._outstanding)
        self._request(self._prompts.take(missing))

    def _request(self, tickets: list[Ticket]) -> None:
        self._outstanding.extend(tickets)
        samples, seed = self._recipe.sampling.samples_per_prompt, self._recipe.seed
        self._generator.request(
            [
                Request(t.position, t.prompt, samples, derived_seed("training", seed, t.position))
                for t in tickets
            ]
        )

    def weights_changed(self, step: int) -> None:
        self._times.pushing += self._generator.push(self._model, step)

    def pause(self) -> None:
        self._times.paused -= time.monotonic()
        self._generator.pause()

    def resume(self) -> None:
        self._generator.resume()
        self._times.paused += time.monotonic()

    def metrics(self) -> dict[str, float]:
        """Shares of the time since the start: generator at work, trainer at work, weight pushes."""
        elapsed = max(1e-9, time.monotonic() - self._began - self._times.paused)
        return {
            "generator_duty": self._generator_busy / elapsed,
            "trainer_duty": 1 - self._times.waiting / elapsed,
            "push_share": self._times.pushing / elapsed,
        }

    def state(self) -> dict[str, Any]:
        """What was finished but not yet used is sampled again after a resume, by newer weights: nothing is
        skipped, however long it took."""
        positions = [ticket.position for ticket in self._outstanding]
        return {"prompts": self._prompts.state(), "outstanding": positions}

    def load_state(self, state: dict[str, Any]) -> None:
        self._prompts.load_state(state["prompts"])
        self._request([self._prompts.ticket(position) for position in state["outstanding"]])

    def close(self) -> None:
        self._generator.close()
