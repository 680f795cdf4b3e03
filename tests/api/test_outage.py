"""The database goes away and comes back; old rows are tidied up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from api import idempotency
from api.database import make_engine, make_sessions
from api.jobs import relay
from api.settings import Settings


@pytest.fixture
def service_settings() -> dict[str, Any]:
    return {"broker_url": "redis://127.0.0.1:1/0", "lease_s": 3, "sweep_s": 0.1}


CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'rlcast-api'"


def test_everything_goes_on_after_the_database_cut_its_connections(
    service: Any,
    add_run: Callable[..., Any],
    submit: Callable[..., Any],
    claim: Callable[..., Any],
    read_events: Callable[..., Any],
    wait_until: Callable[..., Any],
    sql: Callable[..., Any],
) -> None:
    job = submit(service)
    claim(service, job)

    def cut_and_write() -> None:
        for i in range(3):
            assert sql(CUT)[0][0] > 0
            add_run(service, f"run-{i}")

    # One stream, through all cuts; what came before is told first.
    events = read_events(service, 6, then=cut_and_write, params={"after": 0})
    told = [e["data"]["run"] for e in events if e["event"] == "run.created"]
    assert told == ["tiny-1", "run-0", "run-1", "run-2"]
    wait_until(lambda: service.api("GET", f"/jobs/{job['id']}")["attempt"] == 2)  # the sweeper lives


def test_tidying_up_takes_only_what_is_old(
    service: Any, submit: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    for name in ("old", "new"):
        service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}}, headers={"Idempotency-Key": name})
    sql("UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE key = 'old'")
    sql("UPDATE events SET created_at = now() - interval '8 days' WHERE id <= 2")
    sql("UPDATE outbox SET sent_at = now() - interval '2 days' WHERE id = 1")

    async def tidy() -> None:
        engine = make_engine(Settings(database_url=service.database_url))  # type: ignore[arg-type]
        await relay.purge(make_sessions(engine))
        await idempotency.purge(make_sessions(engine))
        await engine.dispose()

    asyncio.run(tidy())
    assert sql("SELECT key FROM idempotency_keys") == [("new",)]
    assert sql("SELECT min(id), count(*) FROM events") == [(3, 2)]
    assert sql("SELECT id FROM outbox") == [(2,)]
    assert len(service.api("GET", "/jobs")["items"]) == 2


def test_addresses_of_databases_in_every_usual_spelling() -> None:
    for url in ("postgresql://u@h/d", "postgres://u@h/d", "postgresql+psycopg://u@h/d"):
        settings = Settings(database_url=url)  # type: ignore[arg-type]
        assert settings.database_url.get_secret_value() == "postgresql+psycopg://u@h/d"
    with pytest.raises(ValueError, match=r"must start with postgresql\+psycopg://"):
        Settings(database_url="sqlite:///x")  # type: ignore[arg-type]
