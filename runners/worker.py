"""`python -m runners.worker`: registers this host with the service and runs jobs from its queues.

Exit codes: 0 drained or stopped, 2 refused (such as another version) or wrong options, 4 the token is
refused, 75 it took nothing from the queue though jobs waited: start it again.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from celery.signals import worker_ready, worker_shutting_down

from rlcast.client import Client
from rlcast.errors import InputError, RlcastError
from rlcast.stack.folder import default_folder
from runners import app as runner
from runners import host
from runners.registration import Standing, register

EXIT_STALLED = 75  # sysexits' "temporary failure; the user is invited to retry"
QUEUE_PREFIX = "rlcast."  # as the service's publisher writes them

log = logging.getLogger("rlcast.worker")


def main(argv: Sequence[str] | None = None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        return _run(_parse(argv))
    except RlcastError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return int(error.exit_code)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runners.worker", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--name", help="default: the host's name, with a number where several run")
    parser.add_argument("--gpus", default="all", metavar="all|none|0,1", help="GPUs to offer")
    parser.add_argument("--queue", action="append", default=[], metavar="NAME", help="may be repeated")
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    parser.add_argument("--jobs-at-once", type=int, default=1, metavar="N")
    return parser.parse_args(argv)


def _run(options: argparse.Namespace) -> int:
    held_name, lock = _hold_name(options.name)
    about = describe(options, held_name)
    client = Client(timeout_s=10.0)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())  # until Celery puts its own in their place
    registered = register(client, about, stop)
    if registered is None:
        return 0
    log.info("registered as %s (%s)", registered["name"], registered["id"])
    with lock:
        return _consume(client, about, registered, stop)


def describe(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """What the worker says of itself. Raises `InputError` that names the wrong option."""
    gpus = host.choose_gpus([] if options.gpus == "none" else host.find_gpus(), options.gpus, os.environ)
    return {
        "name": name,
        "hostname": socket.gethostname(),
        "devices": [gpu.to_dict() for gpu in gpus],
        "cpus": host.cpus(),
        "memory_gib": host.memory_gib(),
        "slots": options.jobs_at_once,
        "versions": host.versions(),
        "labels": _labels(options.label),
        "queues": options.queue or (["gpu", "cpu"] if gpus else ["cpu"]),
    }


def _labels(words: Sequence[str]) -> dict[str, str]:
    labels = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise InputError(f"--label {word}: write it as KEY=VALUE, as in --label zone=a", "--label")
        labels[key] = value
    return labels


def _hold_name(wanted: str | None) -> tuple[str, IO[str]]:
    """A name that no other worker over this data folder uses; its lock is held while this process lives."""
    folder = default_folder() / "workers"
    folder.mkdir(parents=True, exist_ok=True)
    base = wanted or re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname()).strip("-._")[:90] or "worker"
    for name in [wanted] if wanted else [base, *(f"{base}-{i}" for i in range(2, 100))]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
            raise InputError(f"--name {name!r}: use up to 100 letters, digits, '.', '_' and '-'", "--name")
        lock = _try_lock(folder / f"{name}.lock")
        if lock is not None:
            return name, lock
    raise InputError(f"--name {base}: a worker of this name runs here; choose another name", "--name")


def _try_lock(path: Path) -> IO[str] | None:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _consume(client: Client, about: dict[str, Any], registered: dict[str, Any], stop: threading.Event) -> int:
    """Runs the Celery worker until it is drained or stopped; returns the exit code."""
    standing = Standing(client, about, registered, runner.activity, _warm_stop, _start_again)

    def drain(*_: object) -> None:
        standing.draining()
        _warm_stop()

    runner.identity = runner.Identity(registered["name"], lambda: standing.worker_id)

    @worker_ready.connect(weak=False)
    def _ready(**details: Any) -> None:
        # SIGUSR1, as Slurm and operators send it, drains like `rlcast workers drain`.
        signal.signal(signal.SIGUSR1, drain)
        standing.ready()
        if stop.is_set():  # a signal that came while Celery started
            drain()

    @worker_shutting_down.connect(weak=False)
    def _stopping(**details: Any) -> None:
        standing.draining()

    standing.start()
    worker = runner.app.Worker(
        hostname=f"rlcast@{registered['name']}",
        pool_cls="threads",
        concurrency=about["slots"],
        queues=[QUEUE_PREFIX + queue for queue in (*about["queues"], registered["own_queue"])],
        loglevel="INFO",
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
    )
    worker.start()
    standing.end()
    return int(worker.exitcode or 0)


def _warm_stop() -> None:
    """Takes no more messages, waits for what runs, then ends with 0."""
    from celery.worker import state

    state.should_stop = 0


def _start_again() -> None:
    """Ends a worker that has lost its queue, as Celery can after its broker was away; a supervisor such as
    systemd starts it again. Not while a job runs: that goes on without the broker."""
    if runner.activity.counts().n_running == 0:
        log.error("took nothing from the queue though jobs that fit have waited; ending to be started again")
        os._exit(EXIT_STALLED)


if __name__ == "__main__":
    sys.exit(main())
