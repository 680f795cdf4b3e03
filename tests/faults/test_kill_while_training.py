"""kill -9 of the API or the worker while a recipe trains: no acknowledged point is lost, the job ends."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rlcast.client import Client
from rlcast.errors import ServiceError, ServiceUnreachable

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.xdist_group("stack")]

RECIPE = """
name: fault-recipe
steps: 1200
seed: 3
model: {hidden_size: 32, layers: 1, heads: 2, kv_heads: 1, head_dim: 16, intermediate_size: 64,
        warm_start: {pass_rate: 0.05, max_steps: 400}}
task: {digits: 1, train_prompts: 20, heldout_prompts: 10}
sampling: {prompts_per_step: 8, samples_per_prompt: 8, max_new_tokens: 4}
evaluation: {every_steps: 20, samples_per_prompt: 4}
checkpoint: {every_steps: 100}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


class Watch:
    """Reads a job's evaluations again and again and remembers every point that was ever acknowledged."""

    def __init__(self, client: Client, job_id: str) -> None:
        self.client = client
        self.job_id = job_id
        self.seen: dict[int, float] = {}
        self.job: dict[str, Any] = {}

    def look(self) -> None:
        try:
            self.job = self.client.job(self.job_id)
            for item in self.client.evaluations(self.job["run_id"], limit=1000):
                self.seen.setdefault(item["step"], item["pass_rate"])
        except (ServiceUnreachable, ServiceError):
            pass

    def until(self, condition: Any, what: str, timeout_s: float = 150.0) -> None:
        deadline = time.monotonic() + timeout_s
        self.look()
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.job}"
            assert self.job.get("state") != "failed", self.job
            time.sleep(0.2)
            self.look()


@pytest.mark.parametrize("victim", ["API", "worker"])
def test_no_acknowledged_point_is_lost(start_up, rlcast, recipe, victim):
    # A short lease, so that the test need not wait the default 90 s for the job of a killed worker.
    up = start_up(RLCAST_LEASE_S="8", RLCAST_SWEEP_S="1").wait()
    submitted = rlcast("submit", str(recipe), "--json", env=up.env())
    assert submitted.returncode == 0, submitted.stderr
    job_id = json.loads(submitted.stdout)["id"]
    with up.client() as client:
        watch = Watch(client, job_id)
        watch.until(lambda: len(watch.seen) >= 4, "the first points")
        assert watch.job["state"] == "running"
        before = dict(watch.seen)
        up.child(victim).kill()
        watch.until(lambda: watch.job["state"] == "finished", "the end of the job")
        stored = {item["step"]: item for item in client.evaluations(watch.job["run_id"], limit=1000)}

    assert before.keys() <= stored.keys()
    assert {0, 20, 40, 600, 1200} <= stored.keys()
    if victim == "API":
        assert watch.job["attempt"] == 1
        assert {step: item["pass_rate"] for step, item in stored.items() if step in before} == before
    else:
        assert watch.job["attempt"] == 2, "a killed worker's job goes on as the next attempt"
