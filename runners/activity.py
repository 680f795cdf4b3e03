"""What this worker does now, counted where it happens: the heartbeat tells the service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    n_taken: int
    n_running: int


class Activity:
    """Counts messages taken from the queue, and jobs in progress. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_taken = 0
        self._n_running = 0
        #: Set at every change, so that the service hears of it soon.
        self.changed = threading.Event()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around the work on one message."""
        self._add(1, 1)
        try:
            yield
        finally:
            self._add(0, -1)

    def _add(self, taken: int, running: int) -> None:
        with self._lock:
            self._n_taken += taken
            self._n_running += running
        self.changed.set()

    def counts(self) -> Counts:
        with self._lock:
            return Counts(self._n_taken, self._n_running)
