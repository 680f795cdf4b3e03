"""Supervises one attempt of a job: claim, start the trainer, deliver its events, report the end.

The supervisor keeps no truth of its own. The service holds the lease and the job's state, the work
folder holds the events until they are accepted; a runner that is killed at any moment loses neither.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from rlcast.client import Client
from rlcast.errors import ServiceError, ServiceUnreachable
from rlcast.spool import Event, Spool
from rlcast.stack.folder import DataFolder, default_folder
from runners.allocation import Allocation
from runners.command import CommandWatch, write_files
from runners.process import Start, TrainerProcess, WorkFolder, describe_exit, trainer_command

log = logging.getLogger("rlcast.supervisor")

HEARTBEAT_S = 15.0
#: Progress is shown sooner than the lease needs it, but not more often than this.
PROGRESS_S = 3.0
_POLL_S = 0.25
_CLAIM_TIMEOUT_S = 45.0
_STOP_GRACE_S = 30.0
#: How long to go on without the service. Another attempt may start meanwhile, but its writes and ours
#: cannot mix (fencing), and ending a long run for a service that is away would cost more.
_ALONE_S = 3600.0


class Fenced(Exception):
    """The service has given the job to another attempt; nothing more may be written for this one."""


@dataclass(frozen=True)
class Runner:
    """Who claims: a name for people, and the id of its registration as a worker, if it has one."""

    name: str
    worker_id: str | None = None


def run_job(job_id: str, attempt: int, runner: Runner, stopping: threading.Event) -> None:
    """Runs one attempt of job `job_id` to its end. Raises nothing that a retry could mend."""
    client = Client(timeout_s=10.0)
    claim = _claim(client, job_id, attempt, runner)
    if claim is None:
        return
    folder = WorkFolder(DataFolder(default_folder()).jobs / job_id)
    folder.root.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(client, folder, Lease.of(claim), stopping, Allocation.of(claim))
    try:
        supervisor.run(prepare(folder, claim), claim["command"])
    except Fenced:
        log.warning("job %s: attempt %d was superseded; its trainer is stopped", job_id, attempt)
    finally:
        supervisor.close()
        client.close()


def prepare(folder: WorkFolder, claim: dict[str, Any]) -> Start:
    """Writes what the job brings into its folder; returns what to start there."""
    command = claim["command"]
    if command is None:
        folder.recipe.write_text(yaml.safe_dump(claim["recipe"], sort_keys=False))
        return Start(trainer_command(folder), folder.root, claim["devices"])
    write_files(folder, command["files"])
    about = {"JOB_ID": claim["job_id"], "RUN_NAME": claim["run_name"], "ATTEMPT": str(claim["attempt"])}
    env = {f"RLCAST_{name}": value for name, value in about.items()}
    return Start(command["argv"], folder.work, claim["devices"], env)


def _claim(client: Client, job_id: str, attempt: int, runner: Runner) -> dict[str, Any] | None:
    """Claims the job; None when somebody else has it or the service stays away.

    In the second case the service sends the wake-up again once it is back.
    """
    deadline = time.monotonic() + _CLAIM_TIMEOUT_S
    while True:
        try:
            return client.claim(job_id, attempt, runner.name, runner.worker_id)
        except ServiceError as error:
            if error.status < 500:
                log.info("job %s attempt %d not claimed: %s", job_id, attempt, error)
                return None
        except ServiceUnreachable:
            pass
        if time.monotonic() > deadline:
            return None
        time.sleep(1.0 + random.random())


@dataclass(frozen=True)
class Lease:
    """What a claim gives: the right to run and to write, until fenced off."""

    job_id: str
    run_id: str
    attempt: int
    token: str
    lease_s: float

    @classmethod
    def of(cls, claim: dict[str, Any]) -> Lease:
        return cls(
            claim["job_id"], claim["run_id"], claim["attempt"], claim["lease_token"], float(claim["lease_s"])
        )


class Backoff:
    """When to try again after failures: 0.5 s doubling to 15 s, with jitter."""

    def __init__(self) -> None:
        self._failures = 0
        self._next = 0.0

    def ready(self) -> bool:
        return time.monotonic() >= self._next

    def succeeded(self) -> None:
        self._failures, self._next = 0, 0.0

    def failed(self) -> None:
        delay = min(0.5 * 2**self._failures, 15.0)
        self._failures += 1
        self._next = time.monotonic() + delay * random.uniform(0.5, 1.0)


def _may_pass(error: ServiceError) -> bool:
    """Whether the same call may succeed later: the service is troubled, busy, or its token changes."""
    return error.status >= 500 or error.status in (401, 403, 429)


class Supervisor:
    """Owns one trainer process and the delivery of its events."""

    def __init__(
        self,
        client: Client,
        folder: WorkFolder,
        lease: Lease,
        stopping: threading.Event,
        allocation: Allocation,
    ) -> None:
        self.client = client
        self.folder = folder
        self.lease = lease
        self.stopping = stopping
        self.allocation = allocation
        self.spool = Spool(folder.events, folder.delivered)
        self.progress: dict[str, Any] | None = None
        self.failure: str | None = None
        self.cancelled = False
        self.stop_reason: str | None = None
        self._delivery = Backoff()
        self._beat = Backoff()
        self._last_beat = 0.0
        self._last_answer = time.monotonic()
        self._progress_is_new = False
        self._progress_was_sent = False
        self._trainer: TrainerProcess | None = None
        self._watch: CommandWatch | None = None
        self._asked_to_stop_at: float | None = None

    # -- the attempt ---------------------------------------------------------------------------

    def run(self, start: Start, command: dict[str, Any] | None = None) -> None:
        """From start to the last report; `command` is one that is not ours, whose output is to be read.

        Raises `Fenced` when another attempt took over.
        """
        self._try(self._send_heartbeat, self._beat)
        if command is not None:
            self._watch = CommandWatch(self.folder, command, self.allocation)
        self.stop_reason = self.allocation.spent()
        if self.stop_reason is None and self._start(start):
            assert self._trainer is not None
            while self._trainer.exit_code is None:
                self._turn()
                self._stop_if_wanted(self._trainer)
                time.sleep(_POLL_S)
            self._trainer.kill()  # whatever of its group is left
        if self._watch is not None:
            self._watch.poll(to_end=True)
        self._deliver_the_rest()
        self._report_end(self._trainer.exit_code if self._trainer else None)

    def _start(self, start: Start) -> bool:
        """Starts the trainer; False, with the reason, when there is no such program."""
        try:
            self._trainer = TrainerProcess(self.folder, start)
        except OSError as error:
            self.failure = f"cannot start {start.argv[0]!r}: {error.strerror}"
            return False
        if self._watch is not None:
            self._watch.started()
        return True

    def _stop_if_wanted(self, trainer: TrainerProcess) -> None:
        """Asks the trainer to stop when there is a reason, and kills it when it does not in time."""
        self.stop_reason = self.stop_reason or self.allocation.spent()
        wanted = self.cancelled or self.stop_reason or self.stopping.is_set() or self._alone_too_long()
        if wanted and self._asked_to_stop_at is None:
            self._asked_to_stop_at = time.monotonic()
            trainer.terminate()
        if self._asked_to_stop_at and time.monotonic() - self._asked_to_stop_at > _STOP_GRACE_S:
            trainer.kill()

    def _turn(self) -> None:
        """One round of the loop: read and deliver what is there, beat when it is time."""
        if self._watch is not None:
            self._watch.poll()
        if self._delivery.ready():
            self._try(self._deliver, self._delivery)
        if self._beat.ready() and self._beat_is_due(time.monotonic() - self._last_beat):
            self._try(self._send_heartbeat, self._beat)

    def _beat_is_due(self, since_s: float) -> bool:
        if since_s > min(HEARTBEAT_S, self.lease.lease_s / 4):
            return True
        # The first progress goes out at once: with it the job counts as running.
        return self._progress_is_new and (since_s > PROGRESS_S or not self._progress_was_sent)

    def _try(self, action: Callable[[], None], backoff: Backoff) -> None:
        """Runs a call to the service; an absent or troubled service is tried again later."""
        try:
            action()
        except ServiceUnreachable:
            backoff.failed()
        except ServiceError as error:
            if not _may_pass(error):
                raise
            backoff.failed()
        else:
            backoff.succeeded()
            self._last_answer = time.monotonic()

    def _alone_too_long(self) -> bool:
        return time.monotonic() - self._last_answer > _ALONE_S

    # -- talking to the service ------------------------------------------------------------------

    def _send_heartbeat(self) -> None:
        report: dict[str, Any] = {"progress": self.progress}
        if self._trainer is not None:
            report["log_tail"] = self._trainer.log_tail()
        try:
            answer = self.client.heartbeat(self.lease.job_id, self.lease.token, **report)
        except ServiceError as error:
            if error.status in (404, 409):
                raise Fenced from error
            raise
        self._last_beat = time.monotonic()
        self._progress_is_new = False
        self._progress_was_sent = self.progress is not None
        self.cancelled = self.cancelled or bool(answer["cancel"])

    def _deliver(self) -> None:
        """Sends the events that wait; marks them delivered when the service has stored them."""
        events = self.spool.pending()
        if not events:
            return
        items = [event.data for event in events if event.kind == "evaluation"]
        if items:
            self._post(items)
        for event in events:
            self._note(event)
        self.spool.mark_delivered(events[-1])

    def _post(self, items: list[dict[str, Any]]) -> None:
        attempt = {
            "attempt": self.lease.attempt,
            "job_id": self.lease.job_id,
            "lease_token": self.lease.token,
        }
        try:
            self.client.post_evaluations(self.lease.run_id, items, **attempt)
        except ServiceError as error:
            if error.code == "stale_attempt":
                raise Fenced from error
            if _may_pass(error):
                raise
            if len(items) == 1:
                self._set_aside(items[0], error)
                return
            for item in items:  # one bad point must not hold back the others
                self._post([item])

    def _set_aside(self, item: dict[str, Any], error: ServiceError) -> None:
        """Keeps what the service will never take, with its reason: a point must not vanish either."""
        with self.folder.refused.open("a") as file:
            file.write(json.dumps({"reason": str(error), "evaluation": item}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        log.error("job %s: an evaluation was refused (%s); kept in %s", self.lease.job_id, error, file.name)

    def _note(self, event: Event) -> None:
        if event.kind == "progress":
            self.progress, self._progress_is_new = event.data, True
        elif event.kind == "failed":
            self.failure = str(event.data.get("error") or "") or None
        elif event.kind == "unreadable":
            log.error("job %s: unreadable line in %s", self.lease.job_id, self.folder.events)

    # -- the end -------------------------------------------------------------------------------

    def _deliver_the_rest(self) -> None:
        """Sends until the spool is empty. When the runner itself stops, the next attempt goes on."""
        while self.spool.pending(1):
            self._turn()
            if self._alone_too_long() or (self.stopping.is_set() and not self._delivery.ready()):
                return
            time.sleep(_POLL_S)

    def _report_end(self, exit_code: int | None) -> None:
        state, error = self._outcome(exit_code)
        report = {"exit_code": exit_code, "error": error}
        if state == "stopped":
            report["stop_reason"] = self.stop_reason
        self._try(self._send_heartbeat, self._beat)  # the last progress and log lines
        while True:
            try:
                self.client.finish(self.lease.job_id, self.lease.token, state, **report)
                return
            except ServiceError as problem:
                if problem.status < 500:
                    raise Fenced from problem
            except ServiceUnreachable:
                pass
            if self.stopping.is_set() or self._alone_too_long():
                return  # the lease runs out, and the service decides
            time.sleep(2.0)

    def _outcome(self, exit_code: int | None) -> tuple[str, str | None]:
        # Our trainer's 0 means all steps; a command that was asked to stop may end with 0 as well.
        if exit_code == 0 and not (self._watch and self._asked_to_stop_at):
            return "finished", None
        if self.cancelled:
            return "cancelled", None
        if self.stop_reason is not None:
            return "stopped", None
        if self.stopping.is_set():
            return "released", "the runner was stopped"
        if exit_code is None:
            return "failed", self.failure
        words = describe_exit(exit_code)
        last = self._trainer.log_tail(5) if self._trainer else ""
        return "failed", f"{self.failure or last or 'the trainer ended without a word'} ({words})"

    def close(self) -> None:
        """Leaves no process behind and gives the work folder free."""
        if self._trainer is not None:
            self._trainer.kill()
        if self._watch is not None:
            self._watch.close()
        self.folder.unlock()
