"""`rlcast up`: one folder, one process tree, nothing lost and nothing left."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest

CURVE = Path(__file__).parents[2] / "rlcast" / "data" / "curves" / "scalerl_8b_gpu_hours.csv"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stack")]


def wait_until_gone(processes: list[psutil.Process], timeout_s: float = 30.0) -> list[psutil.Process]:
    _, alive = psutil.wait_procs(processes, timeout_s)
    return [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_ctrl_c_stops_everything_and_the_points_are_there_at_the_next_start(start_up, rlcast):
    up = start_up().wait()
    first = rlcast("import", str(CURVE), env=up.env())
    assert (first.returncode, "34 evaluations added, 0 already there" in first.stdout) == (0, True), first
    again = rlcast("import", str(CURVE), env=up.env())
    assert "0 evaluations added, 34 already there" in again.stdout
    family = up.family()
    assert len(family) > 5
    assert up.stop(signal.SIGINT) == 0
    assert wait_until_gone(family) == []

    up = start_up(folder=up.folder).wait()
    with up.client() as client:
        assert client.run("8B-dense-bs2048")["n_evaluations"] == 34


def test_a_second_up_on_the_folder_says_who_holds_it(start_up, rlcast):
    up = start_up().wait()
    second = rlcast("up", "--data", str(up.folder))
    assert second.returncode == 2
    assert f"process {up.process.pid}" in second.stderr
    assert up.url in second.stderr
    assert "Traceback" not in second.stderr


def test_the_token_is_made_at_the_first_start_and_only_its_owner_can_read_it(start_up):
    up = start_up().wait()
    token = up.folder / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    before = token.read_text()
    up.stop()
    start_up(folder=up.folder).wait()
    assert token.read_text() == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_after_kill_9_nothing_stays_and_the_next_up_has_every_point(start_up, rlcast):
    up = start_up().wait()
    assert rlcast("import", str(CURVE), env=up.env()).returncode == 0
    family = up.family()
    os.kill(up.process.pid, signal.SIGKILL)
    up.process.wait()
    assert wait_until_gone(family) == []
    up = start_up(folder=up.folder).wait()
    with up.client() as client:
        assert client.run("8B-dense-bs2048")["n_evaluations"] == 34


@pytest.mark.parametrize("name", ["API", "Valkey", "PostgreSQL", "worker"])
def test_a_part_that_dies_comes_back(start_up, name):
    up = start_up().wait()
    victim = up.child(name)
    victim.kill()
    deadline = time.monotonic() + 60
    with up.client() as client:
        while True:
            try:
                assert up.child(name).pid != victim.pid
                client.request("GET", "/runs")
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)


def test_a_forecast_is_the_same_from_the_file_and_from_the_service(start_up, rlcast):
    import json

    up = start_up("--jobs-at-once", "0").wait()
    assert rlcast("import", str(CURVE), env=up.env()).returncode == 0
    options = ["--max-compute", "50000", "--at", "100000", "--reach", "0.6", "--json"]
    here = json.loads(rlcast("forecast", str(CURVE), *options).stdout)["forecasts"][0]
    there = json.loads(rlcast("forecast", "8B-dense-bs2048", *options, env=up.env()).stdout)["forecasts"][0]
    for key in ("run", "law", "n_points", "window", "parameters", "at", "reach", "verdict", "inputs_sha256"):
        assert here[key] == there[key], key


def test_a_port_that_is_taken_is_named(start_up, rlcast):
    up = start_up().wait()
    other = rlcast("up", "--data", str(up.folder.parent / "other"), "--port", str(up.port))
    assert other.returncode == 2
    assert f"--port {up.port} is taken" in other.stderr


def test_servers_of_ones_own_are_used(start_up, rlcast, database_url, valkey_url):
    import json

    import psycopg

    up = start_up(RLCAST_DATABASE_URL=database_url, RLCAST_BROKER_URL=valkey_url).wait()
    children = {child["name"] for child in json.loads((up.folder / "up.json").read_text())["children"]}
    assert children == {"API", "worker"}
    assert not (up.folder / "postgres").exists()
    assert rlcast("import", str(CURVE), env=up.env()).returncode == 0
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT count(*) FROM evaluations").fetchone() == (34,)
    up.stop()
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,), "a server that is not ours stays up"
