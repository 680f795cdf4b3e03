"""What an operator watches: requests, points, forecasts, and work that waits."""

from __future__ import annotations

import math

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy import func, select

from api.database import SessionFactory
from api.jobs.models import JOB_STATES, Job, Outbox

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one process. Counts are since its start; gauges of the database are read when asked."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rlcast_http_requests", "Requests.", ["method", "route", "status"], registry=self.registry
        )
        self.request_s = Histogram(
            "rlcast_http_request_seconds",
            "Time to the end of the answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.evaluations = Counter(
            "rlcast_evaluations", "Evaluations received.", ["status"], registry=self.registry
        )
        self.forecasts = Counter(
            "rlcast_forecasts", "Forecasts and gates asked for.", ["source"], registry=self.registry
        )
        self.forecast_s = Histogram(
            "rlcast_forecast_seconds",
            "Time in the queue and process of a forecast or gate.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.gates = Counter("rlcast_gates", "Gates decided.", ["verdict"], registry=self.registry)
        self._jobs = Gauge("rlcast_jobs", "Jobs by state.", ["state"], registry=self.registry)
        self._outbox = Gauge(
            "rlcast_outbox_unsent", "Wake-ups that the broker has not got yet.", registry=self.registry
        )
        self._outbox_age_s = Gauge(
            "rlcast_outbox_oldest_seconds", "Age of the oldest of them.", registry=self.registry
        )
        self._lease_s = Gauge(
            "rlcast_lease_shortest_seconds",
            "Time left to the lease that runs out first; below 0 the runner is late.",
            registry=self.registry,
        )
        self._streams = Gauge("rlcast_event_streams", "Open event streams.", registry=self.registry)

    async def read(self, sessions: SessionFactory, n_streams: int) -> bytes:
        """All metrics in Prometheus' text format."""
        now = func.clock_timestamp()
        async with sessions() as session:
            states = await session.execute(select(Job.state, func.count().label("n")).group_by(Job.state))
            by_state = {row.state: row.n for row in states}
            unsent = select(func.count(), func.extract("epoch", now - func.min(Outbox.created_at)))
            n_unsent, oldest_s = (await session.execute(unsent.where(Outbox.sent_at.is_(None)))).one()
            lease_s = await session.scalar(
                select(func.extract("epoch", func.min(Job.lease_expires_at) - now))
            )
        for state in JOB_STATES:
            self._jobs.labels(state).set(by_state.get(state, 0))
        self._outbox.set(n_unsent)
        self._outbox_age_s.set(oldest_s or 0)
        self._lease_s.set(math.nan if lease_s is None else float(lease_s))
        self._streams.set(n_streams)
        return generate_latest(self.registry)
