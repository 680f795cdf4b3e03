"""One run of the demo's path, as a newcomer would see it."""

from __future__ import annotations

import os

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.xdist_group("stack")]


def test_the_demo_runs_through_and_leaves_nothing_running(rlcast, tmp_path):
    env = {**os.environ, "RLCAST_CACHE": str(tmp_path / "cache"), "COLUMNS": "120"}
    folder = tmp_path / "data"
    done = rlcast("demo", "--exit", "--data", str(folder), env=env, timeout_s=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "at 100,000 GPU-hours" in done.stdout
    assert "beside what really happened" in done.stdout
    assert "later points inside the interval" in done.stdout
    for run in ("tiny-cispo", "tiny-reinforce"):
        [line] = [text for text in done.stdout.splitlines() if text.startswith(run) and " → " in text][-1:]
        assert "finished" in line
    assert any(word in done.stdout for word in ("PASS  ", "FAIL  ", "INCONCLUSIVE  "))
    left = [p for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])]
    assert left == []
