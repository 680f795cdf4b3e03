"""Nothing answers without a valid token, except the two probes."""

from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import httpx2
from fastapi.routing import iter_route_contexts

from api.auth import read_or_make_token

OPEN = {"/livez", "/readyz"}


def mounted(app: Any) -> set[tuple[str, str]]:
    """(method, path) of every route of an application, whether it is documented or not."""
    return {
        (method, context.path) for context in iter_route_contexts(app.routes) for method in context.methods
    }


def test_every_route_is_denied_without_a_token(service: Any) -> None:
    walked = mounted(service.app)
    assert len(walked) > 20
    for method, path in sorted(walked):
        address = service.url + path.replace("{", "").replace("}", "")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {service.token}"}):
            answer = service.client.request(method, address, headers=headers)
            if path in OPEN:
                assert answer.status_code == 200
                continue
            assert answer.status_code == 401, (method, path, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["code"] == "unauthorized"


def test_the_document_lists_every_route(service: Any) -> None:
    spec = service.api("GET", "/openapi.json")["paths"]
    listed = {(method.upper(), path) for path, item in spec.items() for method in item}
    assert mounted(service.app) - listed == {("GET", "/api/v1/openapi.json")}


def test_a_token_in_the_address_is_not_accepted(service: Any) -> None:
    for query in ("token", "access_token", "api_key"):
        answer = httpx2.get(f"{service.url}/api/v1/runs", params={query: service.token}, trust_env=False)
        assert answer.status_code == 401


def test_a_cookie_is_not_accepted(service: Any) -> None:
    headers = {"Cookie": f"rlcast={service.token}; token={service.token}"}
    assert httpx2.get(f"{service.url}/api/v1/runs", headers=headers, trust_env=False).status_code == 401


def test_unusual_tokens_are_refused_not_crashed_on(service: Any) -> None:
    for token in ("ümläut", "a" * 7000, service.token + "x", service.token[:-1], "\x7f"):
        headers = {"Authorization": f"Bearer {token}".encode()}
        assert httpx2.get(f"{service.url}/api/v1/runs", headers=headers, trust_env=False).status_code == 401


def test_the_token_file_is_private_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    token = read_or_make_token(path)
    assert token.startswith("rlc_")
    assert len(token) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_make_token(path) == token


def test_processes_that_start_at_once_agree_on_one_token(tmp_path: Path) -> None:
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(read_or_make_token(tmp_path / "token")))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 20
    assert len(set(tokens)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_probes_tell_what_is_missing(service: Any, sql: Any) -> None:
    ready = httpx2.get(f"{service.url}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()["status"], ready.json()["broker"]) == (200, "degraded", "down")
    [(current,)] = sql("SELECT version_num FROM alembic_version")
    sql("UPDATE alembic_version SET version_num = 'older'")
    behind = httpx2.get(f"{service.url}/readyz", trust_env=False)
    assert (behind.status_code, behind.json()["migrations"]) == (503, "behind")
    assert httpx2.get(f"{service.url}/livez", trust_env=False).status_code == 200
    sql("UPDATE alembic_version SET version_num = %s", current)
