"""Several generator processes behind the interface of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

import torch

from rlcast.recipe import Recipe
from rlcast.recipe_parts import PipelineRl
from runners.trainer.children import TimedOut
from runners.trainer.generator_process import GROUP_TIMEOUT_S, GeneratorProcess
from runners.trainer.messages import Finished, Request
from runners.trainer.types import Group, Prompt


class GeneratorPool:
    """Hands each request to the generator with the fewest in flight. All get every push.

    Raises `ChildDied` with the generator's name when one of them ends.
    """

    def __init__(
        self, recipe: Recipe, model: torch.nn.Module, version: int, alphabet: str, max_length: int
    ) -> None:
        pipeline = recipe.pipeline
        count = pipeline.generators if isinstance(pipeline, PipelineRl) else 1
        self._generators: list[GeneratorProcess] = []
        self._in_flight = [0] * count
        self._busy_seconds = [0.0] * count
        self._watched: list[Any] = []
        self._check: Callable[[], None] = lambda: None
        try:
            for i in range(count):
                name = "generator" if count == 1 else f"generator {i + 1}"
                self._generators.append(
                    GeneratorProcess(recipe, model, version, alphabet, max_length, i, name)
                )
            for generator in self._generators:  # they come up side by side
                generator.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def watch(self, watched: list[Any], check: Callable[[], None]) -> None:
        """While waiting for groups, also looks at `watched`, and calls `check` when one of them is ready."""
        self._watched, self._check = watched, check

    def request(self, requests: Sequence[Request]) -> None:
        shares: list[list[Request]] = [[] for _ in self._generators]
        for request in requests:
            idlest = self._in_flight.index(min(self._in_flight))
            self._in_flight[idlest] += 1
            shares[idlest].append(request)
        for generator, share in zip(self._generators, shares, strict=True):
            generator.request(share)

    def receive(self, timeout_s: float = GROUP_TIMEOUT_S) -> list[Finished]:
        """The next finished groups, in any order; `busy_seconds` is the mean over the generators."""
        ready = wait([*(g.connection for g in self._generators), *self._watched], timeout_s)
        if any(watched in ready for watched in self._watched):
            self._check()
        if not ready:
            raise TimedOut(f"generator: no finished group within {timeout_s:g} s")
        i = next(i for i, generator in enumerate(self._generators) if generator.connection in ready)
        finished = self._generators[i].receive()
        self._in_flight[i] -= len(finished)
        self._busy_seconds[i] = finished[-1].busy_seconds
        mean = sum(self._busy_seconds) / len(self._busy_seconds)
        return [Finished(one.order, one.group, mean) for one in finished]

    def generate(self, prompts: Sequence[Prompt], samples_per_prompt: int, seed: int) -> list[Group]:
        """Requests and waits. Only while nothing else is requested."""
        self.request([Request(i, prompt, samples_per_prompt, seed) for i, prompt in enumerate(prompts)])
        groups: dict[int, Group] = {}
        while len(groups) < len(prompts):
            groups |= {finished.order: finished.group for finished in self.receive()}
        return [groups[i] for i in range(len(prompts))]

    def push(self, model: torch.nn.Module, version: int) -> float:
        """New weights, used from the next token on. Returns the seconds it took."""
        return sum(generator.push(model, version) for generator in self._generators)

    def pause(self) -> None:
        for generator in self._generators:
            generator.pause()

    def resume(self) -> None:
        for generator in self._generators:
            generator.resume()

    def close(self) -> None:
        for generator in self._generators:
            generator.close()
