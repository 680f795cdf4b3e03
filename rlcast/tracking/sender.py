"""The background thread that delivers a run's events. Training never waits for it."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Literal

from rlcast.client import Client
from rlcast.errors import RlcastError
from rlcast.tracking.delivery import Delivery, RunRefused
from rlcast.tracking.folder import RunFolder, SenderLock

log = logging.getLogger("rlcast")

#: How often to look when nothing was logged: for events of other processes, and for `on_turn`.
_IDLE_S = 5.0
_MAX_BACKOFF_S = 60.0
_WARN_AGAIN_S = 600.0

#: empty: all is delivered. failed: the service did not take it; it will be tried again. refused: the
#: service will not have this run. elsewhere: another process holds the lock and sends.
Outcome = Literal["empty", "failed", "refused", "elsewhere"]


class Sender:
    """Delivers `folder` until stopped. `problem` says why the last try failed, None after a good one."""

    def __init__(
        self, folder: RunFolder, new_client: Callable[[], Client], on_turn: Callable[[], None]
    ) -> None:
        self.problem: str | None = None
        self.refused = False
        self._folder = folder
        self._new_client = new_client
        self._on_turn = on_turn
        self._lock = SenderLock(folder)
        self._delivery: Delivery | None = None
        self._changed = threading.Condition()
        self._asked = 0  # flushes asked for; each gets a turn that begins after it
        self._news = False
        self._stopping = False
        self._answered: tuple[int, Outcome] = (0, "empty")
        self._failures = 0
        self._next_try = 0.0
        self._warned: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="rlcast-sender", daemon=True)
        self._thread.start()

    # -- called by the training process --------------------------------------------------------

    def notify(self) -> None:
        """Something was logged. While the service is away this does not hurry the next try."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> Outcome | None:
        """Tries at once and waits for the outcome; None when it took longer than `timeout_s`."""
        with self._changed:
            self._asked += 1
            mine = self._asked
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._answered[0] >= mine, timeout_s)
            return self._answered[1] if done else None

    def stop(self, timeout_s: float = 1.0) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def leave_to_parent(self) -> None:
        """In a forked child: there is no thread here, and the lock stays with the parent."""
        self._lock.free()

    # -- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._wait():
                asked = self._asked
                outcome = self._turn()
                with self._changed:
                    self._answered = (asked, outcome)
                    self._changed.notify_all()
        finally:
            if self._delivery is not None:
                self._delivery.close()
            self._lock.free()

    def _wait(self) -> bool:
        """Waits until there is something to do; False when to stop."""
        with self._changed:
            while not self._stopping and self._asked == self._answered[0]:
                to_wait_s = self._next_try - time.monotonic()
                if to_wait_s <= 0:
                    if self._news or self._failures or not self._changed.wait(_IDLE_S):
                        break
                else:
                    self._changed.wait(to_wait_s)
            self._news = False
            return not self._stopping

    def _turn(self) -> Outcome:
        """Delivers all that waits. Whatever goes wrong stays in this thread."""
        try:
            self._on_turn()
            outcome = self._deliver()
        except Exception as error:  # a defect of ours or a full disk must not end the thread
            return self._failed(f"{type(error).__name__}: {error}")
        if self.problem is not None and outcome == "empty":
            log.warning("rlcast: the service takes points again; nothing was lost")
        if outcome == "empty":
            self.problem, self._failures, self._next_try = None, 0, 0.0
        return outcome

    def _deliver(self) -> Outcome:
        if not self._lock.take():
            return "elsewhere"
        try:
            if self._delivery is None:
                self._delivery = Delivery(self._folder, self._new_client)
            while self._delivery.send_some():
                pass
        except RunRefused as error:
            self.refused = True
            self._failed(f"{error}; then send it with: rlcast sync {self._folder.root} --name NEW-NAME")
            return "refused"
        except RlcastError as error:
            return self._failed(str(error))
        return "empty"

    def _failed(self, problem: str) -> Outcome:
        delay_s = min(0.5 * 2.0 ** min(self._failures, 10), _MAX_BACKOFF_S) * random.uniform(0.5, 1.0)
        self._failures += 1
        self._next_try = time.monotonic() + (_MAX_BACKOFF_S if self.refused else delay_s)
        self.problem = problem
        self._warn(problem)
        return "failed"

    def _warn(self, problem: str) -> None:
        """Loud, but not at every try."""
        now = time.monotonic()
        if now - self._warned.get(problem, -_WARN_AGAIN_S) >= _WARN_AGAIN_S:
            self._warned = {**dict(list(self._warned.items())[-20:]), problem: now}
            log.warning(
                "rlcast: points are kept in %s and not sent yet: %s. Training goes on.",
                self._folder.root,
                problem,
            )


def deliver_now(folder: RunFolder, delivery: Delivery, on_batch: Callable[[], None] | None = None) -> bool:
    """Delivers all of a folder in this thread; False when another process is at it.

    Raises what `Delivery.send_some` raises.
    """
    lock = SenderLock(folder)
    if not lock.take():
        return False
    with contextlib.closing(delivery):
        try:
            while delivery.send_some():
                if on_batch is not None:
                    on_batch()
        finally:
            lock.free()
    return True
