"""What those who run the service see: metrics, logs, request ids."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


def metrics(service: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    headers = {"Authorization": f"Bearer {service.token}"}
    text = service.client.get(f"{service.url}/metrics", headers=headers).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_count_what_happened(
    service: Any, add_run: Callable[..., Any], submit: Callable[..., Any]
) -> None:
    assert service.client.get(f"{service.url}/metrics").status_code == 401
    before = metrics(service)
    add_run(service, "run-1", n=9)
    submit(service)
    for _ in range(2):
        service.api("POST", "/forecasts", json={"runs": ["run-1"]})
    service.api("GET", "/runs/nothing", expect=404)
    found = metrics(service)
    assert found["rlcast_jobs", frozenset({("state", "queued")})] == 1
    assert found["rlcast_outbox_unsent", frozenset()] == 1  # there is no broker
    asked = {"method": "GET", "route": "/api/v1/runs/{run}", "status": "404"}
    for name, labels, n in (
        ("rlcast_evaluations_total", {"status": "created"}, 9),
        ("rlcast_forecasts_total", {"source": "computed"}, 1),
        ("rlcast_forecasts_total", {"source": "memory"}, 1),
        ("rlcast_http_requests_total", asked, 1),
    ):
        key = (name, frozenset(labels.items()))
        assert found[key] - before.get(key, 0) == n, name


def test_addresses_nobody_knows_make_no_metrics_of_their_own(service: Any) -> None:
    for i in range(20):
        service.client.get(f"{service.url}/no-such-page-{i}")
        service.client.request(f"METHOD{i}", f"{service.url}/livez")
    labels = [dict(labels) for name, labels in metrics(service) if name == "rlcast_http_requests_total"]
    assert not any("no-such-page" in label["route"] for label in labels)
    assert not any(label["method"].startswith("METHOD") for label in labels)


def test_request_ids_are_kept_and_answered(service: Any) -> None:
    answer = service.request("GET", "/runs/nothing", headers={"X-Request-ID": "abc-123"})
    assert answer.headers["x-request-id"] == "abc-123"
    assert answer.json()["request_id"] == "abc-123"
    odd = service.request("GET", "/runs/nothing", headers={"X-Request-ID": "a b\t<script>"})
    assert odd.headers["x-request-id"] != "a b\t<script>"


def test_logs_are_json_and_hold_no_secret(start_process: Callable[..., Any]) -> None:
    service = start_process()
    made = service.api("POST", "/tokens", json={"name": "ci", "scopes": ["read"]})
    job = service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    claim = {"attempt": 1, "runner": "host"}
    lease = service.api("POST", f"/jobs/{job['id']}/claim", json=claim)["lease_token"]
    address = f"{service.url}/api/v1/runs"
    for token, query in ((made["token"], {"cursor": made["token"]}), ("stolen-secret", {})):
        headers = {"Authorization": f"Bearer {token}", "X-Request-ID": f"find-me-{token[:6]}"}
        service.client.get(address, headers=headers, params=query)
    service.terminate()
    written = service.log.read_text()
    lines = {
        line["request_id"]: line for line in map(json.loads, written.splitlines()) if "request_id" in line
    }
    asked = {"method": "GET", "path": "/api/v1/runs", "event": "request", "level": "info"}
    assert asked.items() <= lines[f"find-me-{made['token'][:6]}"].items()
    assert lines[f"find-me-{made['token'][:6]}"]["status"] == 422
    assert lines["find-me-stolen"]["status"] == 401
    for secret in (service.token, made["token"], lease, "stolen-secret"):
        assert secret not in written


def test_the_database_password_is_not_shown(tmp_path: Path) -> None:
    """Not by the settings, and not when the database cannot be reached."""
    code = (
        "import asyncio\n"
        "from api.app import create_app\n"
        "from api.settings import Settings\n"
        "settings = Settings()\n"
        "print(repr(settings))\n"
        "app = create_app(settings)\n"
        "async def main():\n"
        "    async with app.router.lifespan_context(app):\n"
        "        await asyncio.sleep(1)\n"
        "asyncio.run(main())\n"
    )
    environment = {
        "RLCAST_DATABASE_URL": "postgresql+psycopg://me:open-sesame@127.0.0.1:1/x",
        "RLCAST_BROKER_URL": "redis://:open-sesame@127.0.0.1:1/0",
        "RLCAST_DATA_DIR": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "failed, will go on trying" in done.stderr
    assert "open-sesame" not in done.stdout + done.stderr
