from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

#: The scope that each route needs. Written down by hand: a new route must be entered here.
NEEDS = {
    "read": [
        "GET /info", "GET /openapi.json", "GET /recipes", "GET /recipes/{recipe}", "GET /runs",
        "GET /runs/{run}", "GET /runs/{run}/evaluations", "POST /forecasts", "POST /comparisons", "GET /forecasts",
        "GET /forecasts/{forecast}", "POST /forecasts/{forecast}/verify", "GET /track-record", "GET /gates",
        "GET /gates/{gate}", "GET /baselines", "GET /baselines/{baseline}", "GET /jobs", "GET /jobs/{job}",
        "GET /events", "GET /workers", "GET /workers/{worker}",
    ],
    "ingest": [
        "POST /recipes", "POST /runs", "POST /runs/{run}/evaluations", "POST /jobs/{job}/claim",
        "POST /jobs/{job}/heartbeat", "POST /jobs/{job}/finish", "POST /workers",
        "POST /workers/{worker}/heartbeat",
    ],
    "launch": [
        "POST /jobs", "POST /jobs/{job}/cancel", "POST /gates", "POST /baselines",
        "POST /workers/{worker}/drain",
    ],
    "admin": ["GET /tokens", "POST /tokens", "DELETE /tokens/{token}", "GET /audit"],
}  # fmt: skip


def make(service: Any, *scopes: str, name: str = "ci", **fields: Any) -> str:
    made = service.api("POST", "/tokens", expect=201, json={"name": name, "scopes": scopes, **fields})
    return str(made["token"])


def status(service: Any, token: str, method: str, path: str, **kwargs: Any) -> int:
    """The status with `token` instead of the owner's."""
    headers = {"Authorization": f"Bearer {token}"}
    return int(service.client.request(method, f"{service.url}{path}", headers=headers, **kwargs).status_code)


def test_each_scope_opens_its_routes_and_no_others(service: Any) -> None:
    needs = {route: scope for scope, routes in NEEDS.items() for route in routes}
    mounted = {
        f"{method} {context.path.removeprefix('/api/v1')}"
        for context in iter_route_contexts(service.app.routes)
        for method in context.methods
        if context.path.startswith("/api/v1")
    }
    assert mounted == set(needs)
    tokens = {scope: make(service, scope, name=scope) for scope in NEEDS}
    for route, needed in needs.items():
        method, path = route.split()
        if route == "GET /events":  # would stream; that it is refused is all that can be asked here
            assert status(service, tokens["ingest"], method, f"/api/v1{path}") == 403
            continue
        for scope, token in tokens.items():
            answer = status(service, token, method, f"/api/v1{path}".replace("{", "").replace("}", ""))
            assert (answer == 403) == (scope not in (needed, "admin")), (route, scope, answer)


def test_a_token_is_shown_once_and_not_stored(service: Any, sql: Callable[..., Any]) -> None:
    token = make(service, "read")
    assert token.startswith("rlc_")
    listed = service.api("GET", "/tokens")["items"]
    assert [t["name"] for t in listed] == ["ci"]
    assert "token" not in listed[0]
    [(stored,)] = sql("SELECT hmac FROM tokens")
    key = hmac.digest(service.token.encode(), b"rlcast tokens", "sha256")
    assert stored == hmac.digest(key, token.encode(), "sha256")
    assert stored != hashlib.sha256(token.encode()).digest()
    everything = str(sql("SELECT t::text FROM tokens t UNION ALL SELECT a::text FROM audit_log a"))
    assert token not in everything
    assert token[8:] not in everything


def test_a_revoked_token_is_refused_at_once(service: Any) -> None:
    token = make(service, "read")
    assert status(service, token, "GET", "/api/v1/runs") == 200
    assert service.api("DELETE", "/tokens/ci")["revoked_at"] is not None
    assert status(service, token, "GET", "/api/v1/runs") == 401
    service.api("DELETE", "/tokens/ci", expect=200)
    service.api("POST", "/tokens", expect=409, json={"name": "ci", "scopes": ["read"]})


def test_an_expired_token_is_refused(service: Any, sql: Callable[..., Any]) -> None:
    token = make(service, "read", expires_at=(datetime.now(UTC) + timedelta(hours=1)).isoformat())
    assert status(service, token, "GET", "/api/v1/runs") == 200
    sql("UPDATE tokens SET expires_at = now() - interval '1 second'")
    assert status(service, token, "GET", "/api/v1/runs") == 401
    past = {"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}
    assert service.api("POST", "/tokens", expect=422, json=past)["errors"][0]["field"] == "expires_at"


def test_the_last_use_is_kept(service: Any) -> None:
    token = make(service, "read")
    assert service.api("GET", "/tokens")["items"][0]["last_used_at"] is None
    status(service, token, "GET", "/api/v1/runs")
    assert service.api("GET", "/tokens")["items"][0]["last_used_at"] is not None


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "0", lambda t: t[:-1] + "_", str.lower])
def test_a_changed_token_is_refused(service: Any, change: Callable[[str], str]) -> None:
    assert status(service, change(make(service, "admin")), "GET", "/api/v1/runs") == 401


def test_saving_a_forecast_needs_more_than_reading(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=8)
    token = make(service, "read")
    body = {"runs": ["run-1"], "replicates": 100}
    assert status(service, token, "POST", "/api/v1/forecasts", json=body) == 200
    assert status(service, token, "POST", "/api/v1/forecasts", json={**body, "save": True}) == 403


def test_what_costs_or_changes_rights_is_noted(service: Any, submit: Callable[..., Any]) -> None:
    token = make(service, "launch", "read")
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "from-ci-7"}
    body = {"recipe": {"name": "tiny"}}
    job = service.client.post(f"{service.url}/api/v1/jobs", headers=headers, json=body).json()
    service.api("POST", f"/jobs/{job['id']}/cancel")
    service.api("POST", f"/jobs/{job['id']}/cancel")  # changes nothing, so it is no entry
    service.api("DELETE", "/tokens/ci")
    entries = service.api("GET", "/audit")["items"]
    assert [(e["action"], e["actor"], e["subject"]) for e in entries] == [
        ("token.revoked", "owner", "ci"),
        ("job.cancelled", "owner", "tiny-1"),
        ("job.submitted", "token:ci", "tiny-1"),
        ("token.made", "owner", "ci"),
    ]
    assert entries[2]["request_id"] == "from-ci-7"
    page = service.api("GET", "/audit", params={"limit": 3})
    rest = service.api("GET", "/audit", params={"cursor": page["next_cursor"]})["items"]
    assert [e["action"] for e in rest] == ["token.made"]
