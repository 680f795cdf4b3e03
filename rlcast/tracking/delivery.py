"""Sends a run's events to the service: in order, as often as it takes, and none twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from rlcast.client import Client
from rlcast.errors import ServiceError
from rlcast.spool import Event
from rlcast.tracking.folder import RunFolder
from rlcast.tracking.identity import RunIdentity

log = logging.getLogger("rlcast")

_BATCH = 500
#: The service takes bodies up to 1 MB; one evaluation of 100,000 prompts has about 400 kB.
_BATCH_BYTES = 400_000


def _is_whole(event: Event) -> bool:
    return event.kind == "evaluation" and {"evaluation", "process"} <= event.data.keys()


class RunRefused(Exception):
    """The service will not have this run as it is; the message says why and what to do."""


def may_pass(error: ServiceError) -> bool:
    """Whether the same call may succeed later: the service is troubled, busy, or its token changes."""
    return error.status >= 500 or error.status in (401, 403, 408, 429)


class Delivery:
    """Delivers one folder. The caller holds its `SenderLock`.

    identity: under which to send, when not as it was logged.
    """

    def __init__(
        self, folder: RunFolder, new_client: Callable[[], Client], identity: RunIdentity | None = None
    ) -> None:
        self.folder = folder
        self.spool = folder.spool()
        self.identity = identity or folder.identity()
        self.n_sent = 0
        self.n_refused = 0
        self._new_client = new_client
        self._client: Client | None = None
        self._known: dict[str, Any] | None = None

    def send_some(self) -> bool:
        """Sends one batch; False when nothing waits.

        Raises `ServiceUnreachable`, `ServiceError` (try again later), or `RunRefused`.
        """
        events = self.spool.pending(_BATCH, _BATCH_BYTES)
        if not events:
            return False
        try:
            self._connect()
            for process, same in groupby(events, key=lambda event: event.data.get("process")):
                self._send(process, list(same))
        except ServiceError as error:
            self._forget_connection()
            if error.status == 404:  # the run was deleted, or this is a new service: make it again
                self.folder.write_service({})
            raise
        self.spool.mark_delivered(events[-1])
        return True

    def close(self) -> None:
        self._forget_connection()

    def _forget_connection(self) -> None:
        """The next try reads address and token anew: both may change while a training runs."""
        if self._client is not None:
            self._client.close()
        self._client, self._known = None, None

    def _connect(self) -> None:
        """Makes or finds the run, once a connection."""
        if self._known is not None:
            return
        self._client = self._new_client()
        try:
            run = self._client.create_run(**self.identity.fields(), source="log")
        except ServiceError as error:
            if error.status not in (400, 409, 413, 422):
                raise
            raise RunRefused(f"the service refuses run {self.identity.name!r}: {error}") from error
        known = self.folder.read_service()
        if known.get("run_id") != run["id"]:
            known = {"run_id": run["id"], **self._what_others_did(run)}
            self.folder.write_service(known)
        self._known = known

    def _what_others_did(self, run: dict[str, Any]) -> dict[str, Any]:
        """Where to go on when the run has evaluations from elsewhere, such as another machine's folder:
        later attempts supersede earlier ones, and metered hours add up."""
        attempts, amounts = [0], [0.0]
        if run["n_evaluations"]:
            assert self._client is not None
            for item in self._client.evaluations(run["id"], limit=10_000):
                attempts.append(item["attempt"])
                amounts.append(item["compute"].get(self.identity.compute_unit, 0.0))
        return {"attempts_before": max(attempts), "metered_before": max(amounts)}

    def _send(self, process: Any, events: Sequence[Event]) -> None:
        items = [self._item(event) for event in events if _is_whole(event)]
        if len(items) < len(events):
            log.warning("rlcast: a torn line in %s is skipped", self.folder.events)
        if items:
            assert self._known is not None
            self._post(items, int(self._known["attempts_before"]) + int(process))

    def _item(self, event: Event) -> dict[str, Any]:
        item = dict(event.data["evaluation"])
        assert self._known is not None
        if event.data.get("metered") and self._known["metered_before"]:
            unit = self.identity.compute_unit
            amount = item["compute"][unit] + self._known["metered_before"]
            item["compute"] = {**item["compute"], unit: amount}
        return item

    def _post(self, items: list[dict[str, Any]], attempt: int) -> None:
        """One bad evaluation must not hold back the others: halves are tried until it stands alone."""
        assert self._client is not None
        assert self._known is not None
        try:
            self._client.post_evaluations(self._known["run_id"], items, attempt=attempt)
            self.n_sent += len(items)
        except ServiceError as error:
            if may_pass(error) or error.status == 404:
                raise
            if len(items) > 1:
                middle = len(items) // 2
                self._post(items[:middle], attempt)
                self._post(items[middle:], attempt)
                return
            self.n_refused += 1
            self.folder.set_aside(str(error), items[0])
            log.warning(
                "rlcast: the evaluation of step %s was refused (%s); it is kept in %s",
                items[0]["step"],
                error,
                self.folder.refused,
            )
