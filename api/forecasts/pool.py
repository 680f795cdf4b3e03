"""Forecasts in a few processes of their own, so that a slow one holds up neither points nor streams."""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from typing import Any, TypeVar

import rlcast
from api.errors import Invalid, Overloaded
from api.forecasts import worker
from api.forecasts.worker import ComparisonTask, ForecastTask, GateTask, Refused
from api.metrics.service import Metrics

Task = TypeVar("Task", ForecastTask, GateTask, ComparisonTask)

#: Forecasts that may wait; each takes some 0.2 s.
_MAX_WAITING = 100
_CACHED = 512


class Forecaster:
    """Runs tasks in a bounded pool of spawned processes, and remembers answers by content.

    The same points, options and code give the same bytes, so an answer can be kept for ever.
    """

    def __init__(self, workers: int, timeout_s: float, metrics: Metrics) -> None:
        self._metrics = metrics
        self._workers = workers
        self._timeout_s = timeout_s
        self._pool: ProcessPoolExecutor | None = None
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._running: dict[str, asyncio.Task[dict[str, Any]]] = {}

    def forget(self) -> None:
        """Drops remembered answers. They are never wrong, so this only frees memory."""
        self._answers.clear()

    async def forecast(self, task: ForecastTask) -> dict[str, Any]:
        """`Forecast.to_dict()`. Raises `Invalid` with `fitting`'s reason, `Overloaded` when busy."""
        return await self._answer(worker.make_forecast, task)

    async def gate(self, task: GateTask) -> dict[str, Any]:
        """The decision and its forecasts, see `worker.decide_gate`. Raises as `forecast`."""
        return await self._answer(worker.decide_gate, task)

    async def compare(self, task: ComparisonTask) -> dict[str, Any]:
        """`Comparison.to_dict()`. Raises as `forecast`."""
        return await self._answer(worker.make_comparison, task)

    async def quantiles(self, task: ForecastTask) -> list[list[float] | None]:
        """For each asked compute 20 quantiles of the forecast, see `worker.make_quantiles`."""
        quantiles: list[list[float] | None] = (await self._answer(worker.make_quantiles, task))["quantiles"]
        return quantiles

    async def recompute(self, task: ForecastTask) -> dict[str, Any]:
        """As `forecast`, but never from memory."""
        return await self._compute(content_key("make_forecast", task), worker.make_forecast, task)

    async def _answer(self, make: Callable[[Task], dict[str, Any] | Refused], task: Task) -> dict[str, Any]:
        key = content_key(make.__name__, task)
        if key in self._answers:
            self._metrics.forecasts.labels("memory").inc()
            self._answers.move_to_end(key)
            return self._answers[key]
        running = self._running.get(key)
        if running is None:
            if len(self._running) >= _MAX_WAITING:
                raise Overloaded("too many forecasts are waiting; try again in a few seconds")
            running = asyncio.create_task(self._compute(key, make, task))
            self._running[key] = running
            running.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(running)  # a caller that leaves must not take it from the others

    def _forget(self, key: str, done: asyncio.Task[dict[str, Any]]) -> None:
        self._running.pop(key, None)
        if not done.cancelled():
            done.exception()  # asked for, lest asyncio complain when every caller has left

    async def _compute(
        self, key: str, make: Callable[[Task], dict[str, Any] | Refused], task: Task
    ) -> dict[str, Any]:
        self._metrics.forecasts.labels("computed").inc()
        with self._metrics.forecast_s.time():
            answer = await self._in_process(make, task)
        if isinstance(answer, Refused):
            raise Invalid.field(answer.field, answer.message.removeprefix(f"{answer.field}: "))
        self._answers[key] = answer
        if len(self._answers) > _CACHED:
            self._answers.popitem(last=False)
        return answer

    async def _in_process(self, make: Callable[[Task], Any], task: Task, retry: bool = True) -> Any:
        pool = self._pool = self._pool or self._new_pool()
        try:
            future = asyncio.get_running_loop().run_in_executor(pool, make, task)
            return await asyncio.wait_for(future, self._timeout_s)
        except BrokenProcessPool:  # such as killed for want of memory
            self._drop(pool)
            if retry:
                return await self._in_process(make, task, retry=False)
            detail = "the forecasting process died twice; ask for fewer points"
            raise Overloaded(detail, code="fit_failed") from None
        except TimeoutError:
            self._drop(pool)
            raise Overloaded(
                f"the forecast took longer than {self._timeout_s:g} s; ask for fewer points or replicates",
                code="fit_timeout",
            ) from None

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks in any state
        return ProcessPoolExecutor(self._workers, mp_context=context, initializer=worker.prepare)

    def _drop(self, pool: ProcessPoolExecutor) -> None:
        """Ends a pool's processes; the next task gets a new pool. Python 3.14 has `kill_workers` for it."""
        if self._pool is pool:
            self._pool = None
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        if self._pool is not None:
            self._drop(self._pool)


def content_key(kind: str, task: ForecastTask | GateTask | ComparisonTask) -> str:
    """SHA-256 (hex) of everything that the answer depends on."""
    content = json.dumps([rlcast.__version__, kind, asdict(task)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
