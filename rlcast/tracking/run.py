"""`Run`: what a training script logs with."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlcast.client import Client
from rlcast.errors import InputError
from rlcast.tracking.folder import RunFolder
from rlcast.tracking.identity import RunIdentity
from rlcast.tracking.lifetime import live_runs, rank_of_process
from rlcast.tracking.measurement import evaluation_of
from rlcast.tracking.meter import DeviceMeter
from rlcast.tracking.sender import Sender

log = logging.getLogger("rlcast")

#: Evaluations held in memory while the spool's disk takes nothing; older ones are dropped, loudly.
_MAX_UNWRITTEN = 10_000


class Run:
    """A run that is being logged; made by `start_run`. A context manager that ends with `finish`.

    `name` is the run's id, `folder` holds its points. Both are None on ranks that do not log.
    """

    def __init__(
        self,
        identity: RunIdentity | None,
        *,
        folder: RunFolder | None = None,
        devices: float | None = None,
        new_client: Callable[[], Client] | None = None,
        strict: bool = False,
    ) -> None:
        self.strict = strict
        self._identity = identity
        self._folder = folder
        self._new_client = new_client
        self._meter: DeviceMeter | None = None
        self._sender: Sender | None = None
        self._unwritten: deque[tuple[dict[str, Any], bool]] = deque(maxlen=_MAX_UNWRITTEN)
        self._write_lock = threading.Lock()
        self._sequence = 0
        self._finished = False
        self._pid = os.getpid()
        if identity is None or folder is None:
            return
        self._process = folder.open(identity)
        if devices is not None:
            self._meter = DeviceMeter(devices, folder.read_meter_hours())
        self._start_sender()
        live_runs.add(self)

    @property
    def name(self) -> str | None:
        return self._identity.name if self._identity else None

    @property
    def folder(self) -> Path | None:
        return self._folder.root if self._folder else None

    @property
    def device_hours(self) -> float | None:
        """Measured so far, over all processes of this folder; None without `devices`."""
        return self._meter.hours if self._meter else None

    @property
    def problem(self) -> str | None:
        """Why points are not being delivered at the moment; None when all is well."""
        return self._sender.problem if self._sender else None

    # -- logging -------------------------------------------------------------------------------

    def log(
        self,
        *,
        step: int,
        pass_rate: float | None = None,
        solved: Sequence[int] | None = None,
        samples: int | None = None,
        prompts: int | None = None,
        truncated: float | None = None,
        benchmark: str | None = None,
        gpu_hours: float | None = None,
        cpu_hours: float | None = None,
        compute: dict[str, float] | None = None,
    ) -> None:
        """Adds one checkpoint's evaluation.

        Args:
            step: the checkpoint's optimiser step.
            pass_rate: share of passes, 0 to 1; or
            solved, samples: passes of each prompt, shape [prompts], out of `samples` each.
            prompts: how many prompts, when `solved` does not say it.
            truncated: share of completions cut off by the length limit.
            benchmark: when not the run's.
            gpu_hours, cpu_hours: used since the run's start. Measured when `devices` was given.
            compute: amounts by any unit, such as `{"tokens": 1.2e9, "flops": 3e18}`.

        Writes one line to the spool and returns; sending is the background thread's. A value that cannot
        be used is a warning, or `InputError` when strict.
        """
        if self._folder is None or (self._pid != os.getpid() and rank_of_process() != 0):
            return
        given = {"gpu_hours": gpu_hours, "cpu_hours": cpu_hours}
        try:
            self._log(
                {**(compute or {}), **{unit: value for unit, value in given.items() if value is not None}},
                step=step,
                pass_rate=pass_rate,
                solved=solved,
                samples=samples,
                prompts=prompts,
                truncated=truncated,
                benchmark=benchmark,
            )
        except Exception as error:  # whatever it is: a training must not end for it
            if self.strict:
                raise
            log.warning("rlcast: NOT LOGGED, step %s: %s", step, error)

    def _log(self, compute: dict[str, Any], **values: Any) -> None:
        assert self._identity is not None
        if self._finished:
            raise InputError("this run was finished; start_run with the same name goes on with it")
        unit = self._identity.compute_unit
        metered = self._meter is not None and unit not in compute
        if self._meter is not None and metered:
            compute[unit] = self._meter.hours
        self._keep(evaluation_of(self._identity, compute=compute, **values), metered)
        if self._sender is None:  # the first of a forked child
            self._start_sender()
            return
        self._sender.notify()
        if self.strict and self._sender.refused:
            raise InputError(f"{self._sender.problem}")

    def _keep(self, item: dict[str, Any], metered: bool) -> None:
        with self._write_lock:
            dropped = len(self._unwritten) == _MAX_UNWRITTEN
            self._unwritten.append((item, metered))
        if dropped:
            log.warning("rlcast: LOST the oldest unwritten point; %s takes no writes", self.folder)
        self._write_kept()

    def _write_kept(self) -> None:
        """Moves points from memory to the spool; what the disk does not take stays for the next turn."""
        assert self._folder is not None
        with self._write_lock:
            while self._unwritten:
                item, metered = self._unwritten[0]
                try:
                    self._folder.append(self._sequence + 1, self._process, item, metered)
                except OSError as error:
                    log.warning("rlcast: %s cannot be written (%s); kept in memory", self.folder, error)
                    return
                self._sequence += 1
                self._unwritten.popleft()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Leaves the time inside out of the measured compute: evaluation is not training."""
        with self._meter.paused() if self._meter else contextlib.nullcontext():
            yield

    def pause_meter(self) -> None:
        """As `evaluating`, for a loop that is told of the beginning and the end apart."""
        if self._meter:
            self._meter.pause()

    def resume_meter(self) -> None:
        if self._meter:
            self._meter.resume()

    # -- the end -------------------------------------------------------------------------------

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Sends what waits, at most `timeout_s` long; whether all was delivered.

        What was not stays on disk for the next process of this name, or for `rlcast sync`.
        """
        if self._folder is None or self._sender is None:
            return True
        outcome = self._sender.flush(timeout_s)
        return outcome in ("empty", "elsewhere") and not self._unwritten

    def finish(self, timeout_s: float = 30.0) -> None:
        """Ends the logging. Waits at most `timeout_s` for what is still to be sent.

        When strict, raises `InputError` if something was not delivered.
        """
        if self._folder is None or self._finished:
            return
        self._finished = True
        live_runs.discard(self)
        delivered = self.flush(timeout_s)
        problem = self.problem or "the service is slow"
        if self._sender is not None:
            self._sender.stop()
        self._folder.close()
        if self._unwritten:
            log.warning("rlcast: LOST %d points that %s did not take", len(self._unwritten), self.folder)
        if delivered:
            return
        words = f"some points of run {self.name!r} are not sent ({problem}); they are in {self.folder}, "
        words += "send them with: rlcast sync " + str(self.folder)
        if self.strict:
            raise InputError(words)
        log.warning("rlcast: %s", words)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.finish()

    # -- threads and forks ---------------------------------------------------------------------

    def _start_sender(self) -> None:
        assert self._folder is not None
        assert self._new_client is not None
        self._sender = Sender(self._folder, self._new_client, self._save)

    def _save(self) -> None:
        """At each turn of the sender: what would otherwise be lost with this process."""
        assert self._folder is not None
        if self._unwritten:
            self._write_kept()
        self._folder.sync()
        if self._meter is not None and self._pid == os.getpid():
            self._folder.write_meter_hours(self._meter.hours)

    def after_fork(self) -> None:
        """A child has no sender thread and may not use a lock that another thread held. Its own sender
        starts with its first `log`, and takes over when the parent is gone."""
        self._write_lock = threading.Lock()
        self._unwritten.clear()  # the parent still has them
        if self._meter is not None:
            self._meter.after_fork()
        if self._sender is not None:
            self._sender.leave_to_parent()
            self._sender = None
