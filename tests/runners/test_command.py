"""Training commands that are not ours, from `rlcast submit --command` to their points in the service."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.allocation import Allocation
from runners.command import CommandWatch
from runners.process import WorkFolder
from runners.readers import JsonLines, Point


@pytest.fixture
def service_settings(broker_url: str) -> dict[str, Any]:
    quick = {"relay_s": 0.05, "sweep_s": 0.2, "worker_beat_s": 0.3}
    return {"broker_url": broker_url, "allow_commands": True, **quick}


@pytest.fixture
def env(service: Any) -> dict[str, str]:
    """Of a user's shell."""
    return {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token, "COLUMNS": "200"}


@pytest.fixture
def job_until(service: Any) -> Callable[..., Any]:
    def wait(job_id: str, condition: Callable[[Any], bool], timeout_s: float = 30.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not condition(job := service.api("GET", f"/jobs/{job_id}")):
            assert time.monotonic() < deadline, job
            time.sleep(0.05)
        return job

    return wait


def in_state(*states: str) -> Callable[[Any], bool]:
    return lambda job: job["state"] in states


def command(service: Any, code: str, *arguments: str, **body: Any) -> Any:
    """Submits a Python program."""
    argv = [sys.executable, "-u", "-c", code, *arguments]
    return service.api("POST", "/jobs", expect=201, json={"command": {"argv": argv}, **body})


TRAIN = """
import json, os, sys
print("loading model ...")
for step in range(0, 4):
    print(json.dumps({"step": step * 10, "pass_rate": (2 + step) / 10, "loss": 1.5, "n_prompts": 50}))
print(json.dumps({"step": 50, "pass_rate": 51.0}))
print("args", sys.argv[1:], "cwd", os.path.basename(os.getcwd()), sorted(os.listdir(".")))
print("secrets", [k for k in os.environ if "TOKEN" in k or "BROKER" in k], os.environ["RLCAST_RUN_NAME"])
"""


def test_a_program_s_lines_become_points(
    service: Any, start_worker: Any, rlcast: Any, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    start_worker()
    words = ["--file", str(tmp_path / "train.py"), "--name", "mine", "--wait", "--json", "--command", "--"]
    done = rlcast("submit", *words, sys.executable, "train.py", "$(id)", "a b", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads(done.stdout)
    assert (job["state"], job["kind"], job["queue"], job["exit_code"]) == ("finished", "command", "cpu", 0)
    points = service.api("GET", "/runs/mine/evaluations")["items"]
    assert [(p["step"], p["pass_rate"], p["n_prompts"]) for p in points] == [
        (0, 0.2, 50), (10, 0.3, 50), (20, 0.4, 50), (30, 0.5, 50)
    ]  # fmt: skip
    metered = [p["compute"]["cpu_hours"] for p in points]
    assert 0 < metered[0] <= metered[-1] < 60 / 3600
    assert "args ['$(id)', 'a b'] cwd work ['train.py']" in job["log_tail"]  # no shell has seen them
    assert "secrets [] mine" in job["log_tail"]
    folder = WorkFolder(tmp_path / "home" / "jobs" / job["id"])
    [refused] = [json.loads(line) for line in folder.refused.read_text().splitlines()]
    assert refused["reason"] == "pass_rate: must be a fraction from 0 to 1, not 51.0"


def test_a_drained_worker_finishes_its_job_and_takes_no_more(
    service: Any, start_worker: Any, job_until: Any, until: Any, tmp_path: Path
) -> None:
    worker = start_worker("--name", "w1")
    until("w1", "idle")
    code = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)"
    first = command(service, code, str(tmp_path / "go"))
    job_until(first["id"], in_state("running"))
    assert until("w1", "busy")["jobs"] == [first["id"]]
    second = command(service, "pass")
    service.api("POST", "/workers/w1/drain")
    until("w1", "draining")
    (tmp_path / "go").touch()
    assert worker.ended() == 0
    assert service.api("GET", f"/jobs/{first['id']}")["state"] == "finished"
    assert service.api("GET", f"/jobs/{second['id']}")["state"] == "queued"
    start_worker("--name", "w2")  # that the message is still there for
    assert job_until(second["id"], in_state("finished"))["runner"] == "w2"


def test_sigterm_gives_the_job_back_and_the_next_attempt_goes_on(
    service: Any, start_worker: Any, job_until: Any, until: Any
) -> None:
    code = """
import json, os, time
attempt = int(os.environ["RLCAST_ATTEMPT"])
print(json.dumps({"step": attempt, "pass_rate": 0.5}))
time.sleep(0 if attempt == 2 else 600)
"""
    worker = start_worker("--name", "w1")
    job = command(service, code, name="twice")
    job_until(job["id"], lambda found: (found["progress"] or {}).get("step") == 1)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.ended() == 0
    queued = service.api("GET", f"/jobs/{job['id']}")
    assert (queued["state"], queued["attempt"], queued["used_hours"] > 0) == ("queued", 2, True)
    start_worker("--name", "w1")
    assert job_until(job["id"], in_state("finished"))["attempt"] == 2
    first, second = service.api("GET", "/runs/twice/evaluations")["items"]
    assert second["compute"]["cpu_hours"] > queued["used_hours"] >= first["compute"]["cpu_hours"]


def test_a_budget_stops_a_job_with_its_name(service: Any, start_worker: Any, job_until: Any) -> None:
    start_worker()
    code = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(0))\ntime.sleep(600)"
    job = command(service, code, max_hours=1.0 / 3600)
    stopped = job_until(job["id"], in_state("stopped", "finished", "failed"))
    assert (stopped["state"], stopped["stop_reason"], stopped["error"]) == ("stopped", "max_hours", None)
    assert stopped["used_hours"] >= 1.0 / 3600


def test_a_program_that_is_not_there_fails_with_its_name(
    service: Any, start_worker: Any, job_until: Any
) -> None:
    start_worker()
    body = {"command": {"argv": ["no-such-trainer", "--lr", "1"]}}
    job = service.api("POST", "/jobs", expect=201, json=body)
    assert job["run_name"] == "no-such-trainer-1"
    failed = job_until(job["id"], in_state("failed"))
    assert failed["error"] == "cannot start 'no-such-trainer': No such file or directory"


def test_gpu_hours_are_metered_from_the_allocation_and_gpu_budgets_count_devices() -> None:
    hour = 3600.0
    began = time.monotonic() - hour
    held = Allocation(n_gpus=4, cpus=2, used_hours=0.5, max_gpu_hours=7.0, _began=began)
    assert held.compute()["gpu_hours"] == pytest.approx(6.0, abs=0.01)
    assert held.compute()["cpu_hours"] == pytest.approx(3.0, abs=0.01)
    assert held.spent() is None
    later = Allocation(n_gpus=4, cpus=2, used_hours=0.5, max_gpu_hours=6.0, _began=began)
    assert later.spent() == "max_gpu_hours"
    assert Allocation(n_gpus=0, cpus=1, used_hours=2.0, max_hours=2.0).spent() == "max_hours"


def test_a_results_file_is_followed_across_attempts_without_loss(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path)
    folder.work.mkdir()
    results = folder.work / "results.jsonl"
    spec = {"compute_unit": "gpu_hours", "results_file": "results.jsonl"}

    def steps() -> list[tuple[int, float]]:
        events = [json.loads(line) for line in folder.events.read_text().splitlines()]
        found = [event["data"] for event in events if event["kind"] == "evaluation"]
        return [(data["step"], round(data["compute"]["gpu_hours"], 3)) for data in found]

    first = CommandWatch(folder, spec, Allocation(n_gpus=2, cpus=1))
    results.write_text('{"step": 1, "pass_rate": 0.1, "gpu_hours": 3.5}\n{"step": 2, "pass')
    first.poll()
    assert steps() == [(1, 3.5)]  # a line that is being written is left for later
    with results.open("a") as file:
        file.write(
            '_rate": 0.2}\n{"step": 3, "pass_rate": 0.3}\n'
        )  # and the runner is killed before it reads
    second = CommandWatch(folder, spec, Allocation(n_gpus=2, cpus=1, used_hours=4.0))
    assert steps() == [(1, 3.5), (2, 8.0), (3, 8.0)]
    second.poll(to_end=True)
    assert len(steps()) == 3


def test_only_lines_with_step_and_pass_rate_are_points() -> None:
    reader = JsonLines()
    for line in ("", "step 3", "{", "[1]", '{"step": 1}', '{"pass_rate": 0.5}', "{" * 100_000):
        assert reader.feed(line) == []
    full = (
        '{"step": 8, "pass_rate": 0.25, "gpu_hours": 2, "n_samples": 4, "n_prompts": 9, "benchmark": "aime"}'
    )
    assert reader.feed(full) == [Point(8, 0.25, 2.0, 9, 4, "aime")]
    for line, field in (
        ('{"step": 1.5, "pass_rate": 0.5}', "step"),
        ('{"step": 1, "pass_rate": NaN}', "pass_rate"),
        ('{"step": true, "pass_rate": 0.5}', "step"),
        ('{"step": 1, "pass_rate": 0.5, "gpu_hours": -1}', "gpu_hours"),
    ):
        with pytest.raises(ValueError, match=f"^{field}: must be"):
            reader.feed(line)


def test_a_job_file_is_read_with_its_files_beside_it(
    service: Any, rlcast: Any, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: from-file\nrecipe: trl-grpo\ncommand: [python, train.py, --lr, 1.0e-6]\nfiles: [train.py]\n"
        "benchmark: aime\nresources: {gpus: 2, labels: {zone: a}}\nmax_gpu_hours: 12\n"
    )
    done = rlcast("submit", str(path), "--json", "--max-hours", "3", env=env)
    job = json.loads(done.stdout)
    assert (job["queue"], job["max_gpu_hours"], job["max_hours"]) == ("gpu", 12, 3)
    assert (job["resources"]["gpus"], job["resources"]["labels"]) == (2, {"zone": "a"})
    run = service.api("GET", "/runs/from-file")
    assert (run["benchmark"], run["compute_unit"], run["recipe"]["name"]) == ("aime", "gpu_hours", "trl-grpo")
    path.write_text("command: python train.py\n")
    refused = rlcast("submit", str(path), env=env)
    assert (refused.returncode, "write it as a list" in refused.stderr) == (2, True)
