"""The Celery application of a runner, and its one task.

The broker carries wake-ups only (docs/decisions/0001): messages are acknowledged early, a lost
one is sent again by the service, a doubled one finds the job claimed. So there are no retries, no
results and no time limits here; the supervisor and the service's lease do that work.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_shutting_down

from runners.activity import Activity
from runners.supervisor import Runner, run_job

#: Set when the worker is asked to stop: running jobs checkpoint and give their lease back.
stopping = threading.Event()


@dataclass(frozen=True)
class Identity:
    """Who claims jobs: a name, and the id of the worker's registration (none for a plain Celery worker)."""

    name: str
    worker_id: Callable[[], str | None]


identity = Identity(socket.gethostname(), lambda: None)
activity = Activity()

app = Celery("rlcast-runner", broker=os.environ.get("RLCAST_BROKER_URL", "redis://127.0.0.1:6379/0"))
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    task_acks_late=False,
    task_ignore_result=True,
    task_default_queue="rlcast.cpu",
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"health_check_interval": 30, "socket_keepalive": True},
)


@app.task(name="rlcast.run_job")
def run_job_task(job_id: str, attempt: int) -> None:
    """Runs one attempt of a job; returns when it ended or when somebody else has it."""
    with activity.taken():
        runner = Runner(identity.name, identity.worker_id())
        run_job(str(uuid.UUID(job_id)), int(attempt), runner, stopping)


@worker_shutting_down.connect
def _on_shutdown(**details: Any) -> None:
    stopping.set()


@setup_logging.connect
def _on_logging(**details: Any) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
