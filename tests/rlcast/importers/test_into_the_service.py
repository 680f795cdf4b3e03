"""Imports into a real service: twice adds nothing, a longer log adds its rest, a restart supersedes."""

from __future__ import annotations

import json
import os

import pytest
from stack_fixtures import rlcast_command

from rlcast.client import Client
from rlcast.importers import Options, read_logs
from rlcast.imports import import_run


def verl(step: int, score: float | None = None) -> str:
    scored = f"val-core/m/acc/mean@8:{score} - " if score is not None else ""
    return f"step:{step} - {scored}timing_s/step:3600 - perf/total_num_tokens:1000\n"


def test_a_growing_log_with_a_restart(service, log):
    first = verl(1) + verl(2, 0.2) + verl(3, 0.3) + verl(4, 0.9) + verl(5)
    second = verl(3) + verl(4, 0.4)

    def send(text: str) -> tuple[int, int, int]:
        [found] = read_logs([log(text)], options=Options(devices=2))
        with Client(service.url, service.token) as client:
            done = import_run(client, found.rows)
        return done.created, done.duplicates, done.superseded

    assert send(first) == (3, 0, 0)
    assert send(first) == (0, 3, 0)
    assert send(first + second) == (0, 1, 1)
    assert send(first + second) == (0, 2, 0)
    items = {item["step"]: item for item in service.api("GET", "/runs/run/evaluations")["items"]}
    assert {step: item["pass_rate"] for step, item in items.items()} == {2: 0.2, 3: 0.3, 4: 0.4}
    # 7 hours ran on 2 devices when step 4 was reached again.
    assert items[4]["compute"] == {"gpu_hours": 14.0, "tokens": 7000.0, "steps": 4.0}
    assert (items[4]["attempt"], items[4]["n_samples"]) == (2, 8)


def test_the_command_shows_what_it_understood_before_it_sends(service, log):
    path = str(log(verl(1) + verl(2, 0.2) + "step:3 - val-core/m/acc/mean@8:oops\n" + verl(4, 0.5)))
    env = {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token, "COLUMNS": "200"}
    shown = rlcast_command("import", path, "--devices", "4", "--dry-run", env=env)
    assert shown.returncode == 0, shown.stderr
    for words in (
        "run: 2 evaluations, 8 to 12 GPU-hours",
        "verl console",
        "val-core/m/acc/mean@8 (verl's accuracy; as fractions)",
        "times 4 devices (--devices)",
        "1 of 4 lines are broken and were left out (line 3)",
    ):
        assert words in shown.stdout
    assert service.api("GET", "/runs")["items"] == []
    sent = rlcast_command("import", path, "--devices", "4", "--recipe", "r", env=env)
    assert sent.stdout == "run: 2 evaluations added, 0 already there\n"
    assert "4 devices" in sent.stderr
    assert service.api("GET", "/runs")["items"][0]["recipe"]["name"] == "r"


def test_a_log_is_forecast_without_a_service(log):
    law = {step: 0.1 + 0.6 / (1 + (20 / step) ** 2) for step in range(5, 101, 5)}
    path = str(log("".join(verl(step, law.get(step)) for step in range(1, 101)), "train.log"))
    env = {**os.environ, "RLCAST_URL": "http://127.0.0.1:9", "RLCAST_HOME": "/nonexistent"}
    done = rlcast_command("forecast", path, "--devices", "8", "--json", env=env)
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["forecasts"]
    assert (found["unit"], found["n_points"]) == ("gpu_hours", 20)
    # Half of the gain at step 20, which took 20 hours on 8 devices.
    assert found["parameters"]["Cmid"]["value"] == pytest.approx(160.0, rel=1e-3)
    assert found["parameters"]["A"]["value"] == pytest.approx(0.7, abs=1e-3)
