"""docs/logging.md: every block runs as it is printed. The one under "TRL" runs in `test_trl.py`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import blocks_of


@pytest.fixture
def run_block(service: Any, tmp_path: Path) -> Any:
    """Runs a block in a process of its own, with `rlcast` on the path and the service in the environment."""
    command = tmp_path / "bin" / "rlcast"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rlcast "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    env = {**os.environ, "RLCAST_TOKEN": service.token, "RLCAST_HOME": str(tmp_path / "home")}
    env["PATH"] = f"{command.parent}:{os.environ['PATH']}"

    def run(text: str, language: str = "python", url: str = service.url) -> str:
        argv = [sys.executable, "-c", text] if language == "python" else ["sh", "-ec", text]
        done = subprocess.run(
            argv, env={**env, "RLCAST_URL": url}, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_block_of_the_page_has_its_test():
    assert [(b.heading, b.language) for b in blocks_of("logging.md")] == [
        ("Three calls", "python"),
        ("Measured GPU-hours", "python"),
        ("When the service is away", "sh"),
        ("What can go wrong", "python"),
        ("TRL", "python"),
    ]


def test_three_calls_and_a_metered_loop(service, run_block):
    for block in blocks_of("logging.md")[:2]:
        assert run_block(block.text) == ""
    [first, second] = service.api("GET", "/runs/my-recipe-seed-1/evaluations")["items"]
    assert (first["step"], first["pass_rate"], first["compute"]) == (0, 0.31, {"gpu_hours": 0.0})
    assert (second["step"], second["pass_rate"], second["n_samples"]) == (100, 28 / 64, 16)
    metered = service.api("GET", "/runs/metered/evaluations")["items"]
    assert [item["pass_rate"] for item in metered] == [0.3, 0.4, 0.5]
    assert [item["compute"]["gpu_hours"] > 0 for item in metered] == [True, True, True]


def test_sync_after_an_outage(service, run_block):
    calls, sync = blocks_of("logging.md")[0], blocks_of("logging.md")[2]
    run_block(calls.text, url="http://127.0.0.1:9")
    assert run_block(sync.text, "sh") == "my-recipe-seed-1: 2 points sent\n"
    assert service.api("GET", "/runs/my-recipe-seed-1")["n_evaluations"] == 2


def test_strict_prints_what_the_page_says(run_block):
    block = blocks_of("logging.md")[3]
    promised = block.text.split("print(error)  # ")[1]
    assert run_block(block.text) == promised
