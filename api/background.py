"""Loops that run beside the requests and outlive every failure of what they call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

log = logging.getLogger("api.background")

_LONGEST_WAIT_S = 5.0

Step = Callable[[], Awaitable[object]]


async def repeat(name: str, step: Step, every_s: float) -> None:
    """Calls `step` for ever, `every_s` apart; after failures up to 5 s apart. Ends when cancelled."""
    failures = 0
    while True:
        try:
            await step()
            if failures:
                log.info("%s works again", name)
            failures = 0
        except Exception as error:
            if failures == 0:  # once an outage; SQLAlchemy's own text would show statement and values
                reason = getattr(error, "orig", None) or repr(error)
                log.warning("%s failed, will go on trying: %s", name, reason)
            failures += 1
        pause_s = min(max(every_s, 0.5 * 2 ** min(failures, 5)), _LONGEST_WAIT_S)
        await asyncio.sleep(pause_s if failures else every_s)


def run_in_background(stack: AsyncExitStack, name: str, step: Step, every_s: float) -> None:
    """Starts a loop that is stopped when `stack` closes."""
    task = asyncio.create_task(repeat(name, step, every_s), name=name)

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(stop)
