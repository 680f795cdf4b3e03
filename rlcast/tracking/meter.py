"""Measures device-hours: devices held x wall time, going on from where an earlier process stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class DeviceMeter:
    """Device-hours from its making on, idle time included, evaluation left out.

    devices: GPUs (or cores) that the run holds, generators and trainers together.
    base_hours: what earlier processes of the run have used.
    """

    def __init__(self, devices: float, base_hours: float = 0.0) -> None:
        self.devices = devices
        self._settled_hours = base_hours
        self._since: float | None = time.monotonic()
        self._pauses = 0
        self._lock = threading.Lock()

    @property
    def hours(self) -> float:
        with self._lock:
            return self._settled_hours + self._running_hours()

    def _running_hours(self) -> float:
        return 0.0 if self._since is None else (time.monotonic() - self._since) * self.devices / 3600

    def pause(self) -> None:
        """Stops counting; as many calls of `resume` start it again."""
        with self._lock:
            self._pauses += 1
            self._settled_hours += self._running_hours()
            self._since = None

    def resume(self) -> None:
        with self._lock:
            self._pauses = max(0, self._pauses - 1)
            if self._pauses == 0 and self._since is None:
                self._since = time.monotonic()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def after_fork(self) -> None:
        """The lock may have been held by a thread that the child does not have."""
        self._lock = threading.Lock()
