"""A worker's standing with the service: it registers, sends heartbeats, and hears what it is to do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from rlcast.client import Client
from rlcast.errors import ServiceError, ServiceUnreachable
from runners.activity import Activity

log = logging.getLogger("rlcast.worker")

#: A change (a job taken, a job ended) is told sooner than the next heartbeat, but not more often than this.
_SOONEST_S = 1.0


def register(client: Client, about: dict[str, Any], stop: threading.Event) -> dict[str, Any] | None:
    """Registers, waiting for a service that is not there yet; None when `stop` is set first.

    Raises `ServiceError` when the service refuses, with its reason.
    """
    told = False
    while not stop.is_set():
        try:
            return client.register_worker(**about)
        except ServiceUnreachable as error:
            if not told:
                log.warning("%s; trying again until it answers", error)
            told = True
        except ServiceError as error:
            if error.status < 500:
                raise
        stop.wait(2.0)
    return None


class Standing:
    """Sends heartbeats from a thread of its own until `end`.

    `on_drain` is called once when the service asks to drain, or has given this start's place to another;
    `on_stall` when the service sees jobs that this worker should have taken.
    """

    def __init__(
        self,
        client: Client,
        about: dict[str, Any],
        registered: dict[str, Any],
        activity: Activity,
        on_drain: Callable[[], None],
        on_stall: Callable[[], None],
    ) -> None:
        self._client = client
        self._about = about
        self.worker_id = str(registered["id"])
        self._beat_s = float(registered["beat_s"])
        self._activity = activity
        self._on_drain, self._on_stall = on_drain, on_stall
        self._ready = self._draining = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standing", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ready(self) -> None:
        """From now on the worker consumes."""
        self._ready = True
        self._activity.changed.set()

    def draining(self) -> None:
        """From now on it takes no more jobs."""
        self._draining = True
        self._activity.changed.set()

    def end(self) -> None:
        """Says that the worker is gone. Does not wait for a service that is away."""
        self._over.set()
        self._activity.changed.set()
        self._thread.join(15.0)
        try:
            self._client.beat_worker(self.worker_id, state="gone", n_taken=self._activity.counts().n_taken)
        except (ServiceError, ServiceUnreachable) as error:
            log.info("the service did not hear of the end: %s", error)

    def _run(self) -> None:
        while not self._over.is_set():
            self._activity.changed.clear()
            try:
                self._beat()
            except ServiceUnreachable:
                pass  # jobs have leases of their own; the next heartbeat tells
            except ServiceError as error:
                self._refused(error)
            time.sleep(min(_SOONEST_S, self._beat_s))
            self._activity.changed.wait(max(0.0, self._beat_s - _SOONEST_S))

    def _beat(self) -> None:
        counts = self._activity.counts()
        report = {"n_taken": counts.n_taken, "n_running": counts.n_running}
        orders = self._client.beat_worker(self.worker_id, state=self._state(counts.n_running), **report)
        if orders["drain"] and not self._draining:
            self._drain("the service asks for it")
        elif orders["stalled"] and not self._draining:
            self._on_stall()

    def _state(self, n_running: int) -> str:
        if self._draining:
            return "draining"
        if not self._ready:
            return "starting"
        return "busy" if n_running else "idle"

    def _refused(self, error: ServiceError) -> None:
        if error.status == 404:  # the service has lost its database, or forgotten us
            self._register_again()
        elif error.code == "worker_gone" and not self._draining:
            self._drain(str(error))
        elif error.status < 500:
            log.warning("heartbeat refused: %s", error)

    def _register_again(self) -> None:
        try:
            self.worker_id = str(self._client.register_worker(**self._about)["id"])
            log.info("registered again as %s", self.worker_id)
        except (ServiceError, ServiceUnreachable) as error:
            log.warning("could not register again: %s", error)

    def _drain(self, because: str) -> None:
        log.info("draining: %s", because)
        self.draining()
        self._on_drain()
