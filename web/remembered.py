"""Answers that stay true: kept so that a change of one curve does not ask again for the others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

#: An answer holds up to some 50 kB.
MAX_REMEMBERED = 1000
#: Questions that are open at once; the service refuses when too many forecasts wait.
MAX_OPEN = 16


class Remembered:
    """The newest answers by key. A key must name everything that the answer depends on.

    Callers share the answers and must not change them. Failures are not kept.
    """

    def __init__(self, at_most: int = MAX_REMEMBERED) -> None:
        self._at_most = at_most
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._open = asyncio.Semaphore(MAX_OPEN)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Any]]) -> Any:
        if key in self._answers:
            self._answers.move_to_end(key)
            return self._answers[key]
        async with self._open:
            answer = await ask()
        self._answers[key] = answer
        if len(self._answers) > self._at_most:
            self._answers.popitem(last=False)
        return answer
