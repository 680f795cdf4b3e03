"""Sends wake-ups to runners through Celery. A broker that is away costs time in a thread, never more."""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import redis
from celery import Celery
from kombu.exceptions import OperationalError

TASK = "rlcast.run_job"
#: Names of queues are keys in the broker, which may hold other things.
QUEUE_PREFIX = "rlcast."
_SOCKET_TIMEOUT_S = 3.0


class BrokerAway(Exception):
    """The message was not sent, or it is not known whether it was: send it again later."""


class Publisher:
    """A Celery producer on threads of its own, so that a paused broker cannot hold the event loop."""

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url
        self._app = Celery("rlcast-api", broker=broker_url, set_as_current=False)
        self._app.conf.update(
            task_serializer="json",
            accept_content=["json"],
            task_ignore_result=True,
            task_publish_retry=False,
            broker_connection_timeout=_SOCKET_TIMEOUT_S,
            broker_transport_options={
                "socket_timeout": _SOCKET_TIMEOUT_S,
                "socket_connect_timeout": _SOCKET_TIMEOUT_S,
                "max_retries": 0,
            },
        )
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="publisher")
        # Apart, so that any number of questions about readiness cannot hold up a message.
        self._ping_thread = ThreadPoolExecutor(1, thread_name_prefix="broker-ping")
        self._last_ping: tuple[float, bool] | None = None

    async def send(self, job_id: uuid.UUID, attempt: int, queue: str) -> None:
        """Puts one wake-up into `queue`. Raises `BrokerAway`."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(
                loop.run_in_executor(self._threads, self._send, str(job_id), attempt, queue),
                4 * _SOCKET_TIMEOUT_S,
            )
        except (OperationalError, redis.RedisError, OSError, TimeoutError) as error:
            raise BrokerAway(type(error).__name__) from error

    def _send(self, job_id: str, attempt: int, queue: str) -> None:
        # A connection of its own: a pooled one that broke would fail the first message after an outage.
        with self._app.connection_for_write() as connection:
            self._app.send_task(
                TASK,
                kwargs={"job_id": job_id, "attempt": attempt},
                queue=QUEUE_PREFIX + queue,
                connection=connection,
                retry=False,
            )

    async def ping(self) -> bool:
        """Whether the broker answers within a second or so; asked at most once a second."""
        if self._last_ping is None or time.monotonic() - self._last_ping[0] > 1.0:
            loop = asyncio.get_running_loop()
            try:
                answers = await asyncio.wait_for(loop.run_in_executor(self._ping_thread, self._ping), 2.0)
            except (redis.RedisError, OSError, TimeoutError, ValueError):
                answers = False
            self._last_ping = (time.monotonic(), answers)
        return self._last_ping[1]

    def _ping(self) -> bool:
        client = redis.Redis.from_url(self._broker_url, socket_timeout=1.0, socket_connect_timeout=1.0)
        with client:
            return bool(client.ping())

    def close(self) -> None:
        for threads in (self._threads, self._ping_thread):
            threads.shutdown(wait=False, cancel_futures=True)
        self._app.close()
