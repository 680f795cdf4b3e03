"""Logging from a training loop: everything arrives once, whatever dies, and training never notices."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stack_fixtures import free_port, rlcast_command

import rlcast
from rlcast.errors import InputError
from rlcast.tracking import meter

WHAT = {"recipe": "mine", "benchmark": "held-out"}


@pytest.fixture
def start(service: Any, tmp_path: Path) -> Callable[..., rlcast.Run]:
    """Starts runs that log to the real service from one folder."""

    def do(name: str = "a", **fields: Any) -> rlcast.Run:
        where = {"url": service.url, "token": service.token, "folder": tmp_path / "logged"}
        return rlcast.start_run(name=name, **{**WHAT, **where, **fields})

    return do


def points(service: Any, run: str = "a") -> dict[int, tuple[float, float]]:
    """(GPU-hours, pass rate) by step, as the service has them."""
    items = service.api("GET", f"/runs/{run}/evaluations?limit=5000")["items"]
    return {item["step"]: (item["compute"]["gpu_hours"], item["pass_rate"]) for item in items}


def script(service: Any, folder: Path, body: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a training script in a process of its own."""
    head = "import os, rlcast\ndef start(**more):\n    return rlcast.start_run(recipe='mine', "
    head += "benchmark='held-out', name='a', folder=os.environ['FOLDER'], **more)\n"
    env = {
        **os.environ,
        "RLCAST_URL": url or service.url,
        "RLCAST_TOKEN": service.token,
        "FOLDER": str(folder),
    }
    return subprocess.run(
        [sys.executable, "-c", head + body], env=env, capture_output=True, text=True, timeout=60
    )


class Relay:
    """Passes connections on to the service: an address where nobody is until `open`."""

    def __init__(self, target: str) -> None:
        self.target = int(target.rsplit(":", 1)[1])
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            here, _ = listener.accept()
            there = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.close()


def test_what_is_logged_arrives(service, start):
    with start(seed=7, model="tiny", task="sums") as run:
        run.log(step=0, gpu_hours=0.0, pass_rate=0.25)
        run.log(step=np.int64(10), gpu_hours=np.float32(1.5), solved=np.array([16, 4, 0]), samples=16)
        run.log(step=20, gpu_hours=3, pass_rate=0.5, prompts=200, compute={"tokens": 1e6}, truncated=0.1)
    assert points(service) == {0: (0.0, 0.25), 10: (1.5, 20 / 48), 20: (3.0, 0.5)}
    items = service.api("GET", "/runs/a/evaluations")["items"]
    assert [(i["n_prompts"], i["n_samples"]) for i in items] == [(None, None), (3, 16), (200, None)]
    assert items[2]["compute"] == {"gpu_hours": 3.0, "tokens": 1e6}
    stored = service.api("GET", "/runs/a")
    assert (stored["seed"], stored["model"], stored["task"], stored["source"]) == (7, "tiny", "sums", "log")
    assert stored["recipe"]["name"] == "mine"


def test_a_script_without_finish_is_flushed_at_its_exit(service, tmp_path):
    done = script(service, tmp_path, "start().log(step=1, gpu_hours=1, pass_rate=0.5)")
    assert (done.returncode, done.stderr) == (0, "")
    assert points(service) == {1: (1.0, 0.5)}


def test_points_of_a_killed_process_are_sent_by_the_next_one(service, tmp_path):
    body = "import signal, time\nrun = start()\nfor step in range(5):\n"
    body += "    run.log(step=step, gpu_hours=step, pass_rate=0.1 * step)\n"
    killed = script(service, tmp_path, body + "os.kill(os.getpid(), signal.SIGKILL)", "http://127.0.0.1:9")
    assert killed.returncode == -signal.SIGKILL
    # It resumes from its checkpoint of step 3, and gets another score there.
    body = "with start() as run:\n    run.log(step=3, gpu_hours=3, pass_rate=0.9)\n"
    body += "    run.log(step=4, gpu_hours=4, pass_rate=0.4)\n    run.log(step=5, gpu_hours=5, pass_rate=0.5)"
    done = script(service, tmp_path, body)
    assert (done.returncode, done.stderr) == (0, "")
    expected = {step: (float(step), pytest.approx(0.1 * step)) for step in range(6)}
    assert points(service) == {**expected, 3: (3.0, 0.9)}
    assert service.api("GET", "/runs/a")["n_evaluations"] == 6


def test_it_goes_on_without_a_service_and_sends_when_there_is_one(service, start, caplog):
    relay = Relay(service.url)
    run = start(url=relay.url)
    run.log(step=1, gpu_hours=1, pass_rate=0.1)
    assert not run.flush(20)
    assert "no service at" in str(run.problem)
    assert "Training goes on" in caplog.text
    relay.open()
    run.log(step=2, gpu_hours=2, pass_rate=0.2)
    assert run.flush(20)
    assert run.problem is None
    assert "nothing was lost" in caplog.text
    assert points(service) == {1: (1.0, 0.1), 2: (2.0, 0.2)}
    run.finish()


def test_a_service_that_never_answers_holds_nobody_up(start, caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = start(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        for step in range(2000):
            run.log(step=step, gpu_hours=step, pass_rate=0.5)
        run.finish(timeout_s=0.2)
    assert "the service is slow" in caplog.text
    assert len((run.folder / "events.jsonl").read_text().splitlines()) == 2000


def test_sync_sends_what_is_left_and_doubles_nothing(service, start, tmp_path, caplog):
    for name in ("a", "b"):
        with start(name, url="http://127.0.0.1:9") as run:
            run.log(step=1, gpu_hours=1, pass_rate=0.5)
        assert f"rlcast sync {run.folder}" in caplog.text
    env = {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token}
    folder = str(tmp_path / "logged")
    down = rlcast_command("sync", folder, env={**env, "RLCAST_URL": "http://127.0.0.1:9"})
    assert down.returncode == 4
    first = rlcast_command("sync", folder, env=env)
    assert (first.returncode, first.stdout) == (0, "a: 1 points sent\nb: 1 points sent\n")
    assert rlcast_command("sync", folder, env=env).stdout == "a: 0 points sent\nb: 0 points sent\n"
    again = rlcast_command("sync", str(run.folder), "--again", env=env)
    assert (again.returncode, again.stdout) == (0, "b: 1 points sent\n")
    assert points(service, "a") == points(service, "b") == {1: (1.0, 0.5)}


def test_sync_leaves_a_folder_to_the_process_that_is_sending_it(service, start):
    with start() as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
        assert run.flush()
        env = {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token}
        done = rlcast_command("sync", str(run.folder), env=env)
        assert (done.returncode, done.stdout) == (0, "")
        assert "a running process is sending it" in done.stderr


def test_one_value_that_the_service_refuses_does_not_hold_back_the_others(service, start, caplog):
    with start() as run:
        for step in range(8):
            run.log(step=step, gpu_hours=step, pass_rate=0.5)
        run.log(step=3, gpu_hours=3, pass_rate=0.6)  # the same checkpoint measured twice, differently
        run.log(step=9, gpu_hours=9, pass_rate=0.9)
    assert points(service) == {**{step: (float(step), 0.5) for step in range(8)}, 9: (9.0, 0.9)}
    [line] = (run.folder / "refused.jsonl").read_text().splitlines()
    refused = json.loads(line)
    assert (refused["evaluation"]["step"], refused["evaluation"]["pass_rate"]) == (3, 0.6)
    assert "another pass_rate" in refused["reason"]
    assert "the evaluation of step 3 was refused" in caplog.text


def test_a_name_that_belongs_to_another_run_keeps_the_points_for_another_name(service, start, caplog):
    with start(seed=1) as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    with start(seed=2) as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.7)
    assert "exists with another seed" in caplog.text
    assert points(service) == {1: (1.0, 0.5)}
    env = {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token}
    refused = rlcast_command("sync", str(run.folder), env=env)
    assert (refused.returncode, "--name" in refused.stderr) == (2, True)
    assert rlcast_command("sync", str(run.folder), "--name", "a-2", env=env).returncode == 0
    assert points(service, "a-2") == {1: (1.0, 0.7)}
    assert service.api("GET", "/runs/a-2")["seed"] == 2


def test_large_evaluations_are_sent_in_requests_that_the_service_takes(service, start):
    solved = [7] * 60_000  # 180 kB each; a request may have 1 MB
    with start() as run:
        for step in range(12):
            run.log(step=step, gpu_hours=step, solved=solved, samples=14)
    assert points(service) == {step: (float(step), 0.5) for step in range(12)}


def test_a_forked_child_logs_into_the_same_run(service, start):
    run = start()
    run.log(step=1, gpu_hours=1, pass_rate=0.1)
    for step, rank in ((2, "0"), (3, "1")):  # the second is another rank, which does not log
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = rank
            run.log(step=step, gpu_hours=step, pass_rate=0.1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    run.log(step=4, gpu_hours=4, pass_rate=0.1)
    run.finish()
    assert list(points(service)) == [1, 2, 4]


def test_a_forked_child_takes_over_from_a_dead_parent(service, tmp_path):
    body = """
import time
run = start()
run.log(step=1, gpu_hours=1, pass_rate=0.1)
parent = os.getpid()
if os.fork():
    os._exit(0)  # the launcher is gone, without a flush
while os.getppid() == parent:
    time.sleep(0.01)
run.log(step=2, gpu_hours=2, pass_rate=0.2)
run.finish()
"""
    done = script(service, tmp_path, body)  # waits for the child too: it holds the pipes
    assert done.stderr == ""
    assert points(service) == {1: (1.0, 0.1), 2: (2.0, 0.2)}


@pytest.mark.parametrize("variable", ["RANK", "SLURM_PROCID"])
def test_only_rank_0_logs(start, tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, "3")
    with start() as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    assert run.name is None
    assert not (tmp_path / "logged").exists()
    with start(rank=0) as run:
        assert run.name == "a"


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The meter's clock, in seconds, moved by the test."""
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(meter, "time", SimpleNamespace(monotonic=lambda: now.s))
    return now


def test_gpu_hours_are_measured_over_a_resume(service, start, clock):
    with start(devices=16) as run:  # 16 GPUs for 3,600 s and then 5,400 s are 40 GPU-hours
        clock.s = 3600.0
        run.log(step=1, pass_rate=0.1)
        with run.evaluating():
            clock.s = 4600.0
            run.log(step=2, pass_rate=0.2)
    clock.s = 90_000.0  # waiting in the queue costs nothing
    with start(devices=16) as run:
        clock.s += 5400.0
        run.log(step=3, pass_rate=0.3)
        assert run.device_hours == pytest.approx(40.0)
    assert points(service) == {1: (16.0, 0.1), 2: (16.0, 0.2), 3: (pytest.approx(40.0), 0.3)}


def test_a_resume_on_a_machine_without_the_folder_goes_on_behind_what_the_service_has(
    service, start, clock, tmp_path
):
    with start(devices=8) as run:
        clock.s = 3600.0
        run.log(step=1, pass_rate=0.1)
        run.log(step=2, pass_rate=0.2)
    with start(devices=8, folder=tmp_path / "other machine") as run:
        clock.s += 1800.0
        run.log(step=2, pass_rate=0.3)  # again, from the checkpoint of step 1
    assert points(service) == {1: (8.0, 0.1), 2: (12.0, 0.3)}


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"gpu_hours": 1}, "pass_rate", "give pass_rate"),
        ({"pass_rate": 0.5}, "gpu_hours", "has no gpu_hours"),
        ({"gpu_hours": 1, "pass_rate": float("nan")}, "pass_rate", "pass_rate is nan"),
        ({"gpu_hours": 1, "pass_rate": 55.0}, "pass_rate", "fraction from 0 to 1"),
        ({"gpu_hours": -1, "pass_rate": 0.5}, "gpu_hours", "from 0"),
        ({"gpu_hours": 1, "pass_rate": "high"}, "pass_rate", "give a number"),
        ({"gpu_hours": 1, "solved": [1, 2]}, "samples", "samples"),
        ({"gpu_hours": 1, "solved": [1, 17], "samples": 16}, "solved", "17 passes of 16"),
        ({"gpu_hours": 1, "solved": [], "samples": 16}, "solved", "0 prompts"),
        (
            {"gpu_hours": 1, "solved": [8, 8], "samples": 16, "pass_rate": 0.4},
            "pass_rate",
            "solved gives 0.5",
        ),
        ({"gpu_hours": 1, "pass_rate": 0.5, "compute": {"hours": 1}}, "hours", "no unit of compute"),
        ({"gpu_hours": 1, "pass_rate": 0.5, "step": 1.5}, "step", "whole number"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_warning_or_an_error_when_strict(
    start, caplog, values, field, words
):
    with start() as run:
        run.log(**{"step": 1, **values})
        assert "NOT LOGGED" in caplog.text
        assert words in caplog.text
        assert (run.folder / "events.jsonl").read_text() == ""
        run.strict = True
        with pytest.raises(InputError, match=words) as caught:
            run.log(**{"step": 1, **values})
        assert caught.value.field == field


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"recipe": "a/b"}, "recipe"),
        ({"benchmark": ""}, "benchmark"),
        ({"unit": "hours"}, "unit"),
        ({"devices": 0}, "devices"),
        ({"devices": 8, "unit": "tokens"}, "devices"),
    ],
)
def test_a_run_that_cannot_be_logged_does_not_stop_the_training(start, caplog, fields, words):
    with start(**fields) as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    assert "NOTHING OF THIS RUN IS LOGGED" in caplog.text
    assert words in caplog.text
    with pytest.raises(InputError, match=words):
        start(strict=True, **fields)


def test_a_folder_or_disk_that_takes_nothing_does_not_stop_the_training(start, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with start(folder=tmp_path / "file") as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    assert "NOTHING OF THIS RUN IS LOGGED" in caplog.text
    with pytest.raises(OSError, match="director"):
        start(folder=tmp_path / "file", strict=True)
    first = start("full")
    first.finish()
    (first.folder / "events.jsonl").unlink()
    (first.folder / "events.jsonl").symlink_to("/dev/full")  # every write says: no space left
    with start("full") as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
        assert "No space left" in caplog.text
    assert "LOST 1 points" in caplog.text


def test_a_line_cut_by_a_loss_of_power_costs_itself_only(service, start, caplog):
    with start(url="http://127.0.0.1:9") as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.1)
        run.log(step=2, gpu_hours=2, pass_rate=0.2)
    events = run.folder / "events.jsonl"
    os.truncate(events, events.stat().st_size - 9)
    with start() as run:
        run.log(step=3, gpu_hours=3, pass_rate=0.3)
    assert points(service) == {1: (1.0, 0.1), 3: (3.0, 0.3)}
    assert "a torn line" in caplog.text


def test_a_token_is_never_written(service, start, tmp_path):
    with start() as run:
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    files = [path for path in (tmp_path / "logged").rglob("*") if path.is_file()]
    assert len(files) > 3
    assert not any(service.token.encode() in path.read_bytes() for path in files)


def test_strict_says_at_the_end_what_was_not_delivered(start):
    run = start(url="http://127.0.0.1:9", strict=True)
    run.log(step=1, gpu_hours=1, pass_rate=0.5)  # an outage is no reason to stop, even so
    with pytest.raises(InputError, match="rlcast sync"):
        run.finish()


def test_a_finished_run_takes_no_more(start, caplog):
    run = start()
    run.finish()
    run.finish()
    with caplog.at_level(logging.WARNING):
        run.log(step=1, gpu_hours=1, pass_rate=0.5)
    assert "was finished" in caplog.text


def test_logging_loads_neither_fitting_nor_plots():
    code = "import sys, rlcast; rlcast.start_run; print([m for m in "
    code += "('numpy', 'scipy', 'fitting', 'plotly', 'torch', 'pydantic', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"
