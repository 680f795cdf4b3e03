"""A stop request (SIGTERM, SIGINT) ends the run at the next safe point, not in the middle of a step."""

from __future__ import annotations

import signal
from types import FrameType


class Stopped(Exception):
    """Raised at a safe point once a stop was asked for."""


class StopFlag:
    """Set by a signal, read by the loop."""

    def __init__(self) -> None:
        self._asked = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def is_set(self) -> bool:
        return self._asked

    def check(self) -> None:
        if self._asked:
            raise Stopped
