"""A generator in a process of its own: it samples all the time and takes new weights between two tokens.

A push does not interrupt completions in flight. They keep their key-value cache, which was computed with
older weights, and each token is stamped with the version that sampled it (PipelineRL, arXiv 2509.19128).
"""

from __future__ import annotations

import multiprocessing as mp
import queue
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import torch

from rlcast.recipe import Recipe
from runners.trainer.children import Child
from runners.trainer.generator import TorchGenerator, interruption_of
from runners.trainer.messages import Finished, Request
from runners.trainer.model import build_model
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.weights import WeightMailbox

GROUP_TIMEOUT_S = 300.0
_START_TIMEOUT_S = 300.0


class GeneratorProcess:
    """Sends requests, receives finished groups, pushes weights.

    `model` gives the first weights, `version` the optimiser step they come from.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: torch.nn.Module,
        version: int,
        alphabet: str,
        max_length: int,
        index: int = 0,
        name: str = "generator",
    ) -> None:
        context = mp.get_context("spawn")
        self._mailbox = WeightMailbox(model, context.Lock())
        self._running = context.Event()
        self._running.set()
        self._mailbox.push(model, version)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        arguments = (recipe, alphabet, max_length, self._mailbox, self._running)
        if recipe.pipeline.generator == "vllm":
            self._folder = tempfile.TemporaryDirectory(prefix="rlcast-weights-")
            place = (index, Path(self._folder.name), recipe.generator_threads)
            self._child = Child(name, _serve_vllm, *arguments, *place, may_have_children=True)
        else:
            self._child = Child(name, _serve, *arguments)

    @property
    def connection(self) -> Connection:
        """Becomes readable when a group is finished, or when the process has died."""
        return self._child.connection

    def wait_until_ready(self) -> None:
        """Raises `ChildDied` or `TimedOut` when it does not come up."""
        self._child.receive(_START_TIMEOUT_S, "start")
        self._child.remember_descendants()

    def request(self, requests: Sequence[Request]) -> None:
        if requests:
            self._child.send(list(requests))

    def receive(self, timeout_s: float = GROUP_TIMEOUT_S) -> list[Finished]:
        """The next finished groups, in any order."""
        finished: list[Finished] = self._child.receive(timeout_s, "finished group")
        return finished

    def push(self, model: torch.nn.Module, version: int) -> float:
        """New weights, used from the next token on. Returns the seconds it took."""
        return self._mailbox.push(model, version)

    def pause(self) -> None:
        """Stops before the next token: evaluation time must not be used to sample ahead for nothing."""
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    def close(self) -> None:
        self._child.close()
        if self._folder is not None:
            self._folder.cleanup()


class _Worker:
    """The child's side. Two threads move messages, so that sampling never waits for the trainer to read."""

    def __init__(self, connection: Connection, mailbox: WeightMailbox, running: Event) -> None:
        self._connection = connection
        self._mailbox = mailbox
        self._running = running
        self._inbox: queue.Queue[list[Request]] = queue.Queue()
        self._outbox: queue.Queue[list[Finished]] = queue.Queue()
        self._waiting: list[Request] = []
        self._version = -1
        self._paused_seconds = 0.0
        self._busy_seconds = 0.0

    def serve(self, generator: TorchGenerator, batch_size: int) -> None:
        for move in (self._move_in, self._move_out):
            threading.Thread(target=move, daemon=True).start()
        while True:
            while not self._waiting or not self._inbox.empty():
                self._waiting += self._inbox.get()
            batch = self._next_batch(batch_size)
            began, paused = time.monotonic(), self._paused_seconds
            groups = generator.generate([r.prompt for r in batch], batch[0].samples, batch[0].seed)
            self._busy_seconds += time.monotonic() - began - (self._paused_seconds - paused)
            finished = [Finished(r.order, g, self._busy_seconds) for r, g in zip(batch, groups, strict=True)]
            self._outbox.put(finished)

    def use_newest(self, model: torch.nn.Module) -> int:
        """Waits while paused, then loads the newest weights when they are new. Returns their version."""
        began = time.monotonic()
        self._running.wait()
        self._paused_seconds += time.monotonic() - began
        if self._mailbox.version != self._version:
            self._version = self._mailbox.pull(model)
        return self._version

    def _next_batch(self, size: int) -> list[Request]:
        """The first requests that ask for the same number of samples, at most `size` of them."""
        count = 1
        while (
            count < min(size, len(self._waiting)) and self._waiting[count].samples == self._waiting[0].samples
        ):
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def _move_in(self) -> None:
        while True:
            self._inbox.put(self._connection.recv())

    def _move_out(self) -> None:
        while True:
            self._connection.send(self._outbox.get())


def _serve(
    connection: Connection,
    recipe: Recipe,
    alphabet: str,
    max_length: int,
    mailbox: WeightMailbox,
    running: Event,
) -> None:
    torch.set_num_threads(recipe.generator_threads)
    tokenizer = CharTokenizer(alphabet)
    model = build_model(recipe.model, recipe.precision, tokenizer.vocab_size, max_length)
    worker = _Worker(connection, mailbox, running)
    generator = TorchGenerator(
        model,
        tokenizer,
        recipe.sampling.max_new_tokens,
        lambda: worker.use_newest(model),
        interruption_of(recipe),
    )
    connection.send("ready")
    worker.serve(generator, recipe.sampling.prompts_per_step)


def _serve_vllm(*arguments: Any) -> None:
    from runners.trainer.vllm_process import serve_vllm

    serve_vllm(*arguments)
