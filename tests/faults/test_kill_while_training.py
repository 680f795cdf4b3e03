"""kill -9 of the API or the worker while a recipe trains: no acknowledged point is lost, the job ends."""

from __future__ import annotations

import json

import pytest
from stack_fixtures import Watch

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.xdist_group("stack")]


@pytest.mark.parametrize("victim", ["API", "worker"])
def test_no_acknowledged_point_is_lost(start_up, rlcast, small_recipe, victim):
    # A short lease, so that the test need not wait the default 90 s for the job of a killed worker.
    up = start_up(RLCAST_LEASE_S="8", RLCAST_SWEEP_S="1").wait()
    submitted = rlcast("submit", str(small_recipe), "--json", env=up.env())
    assert submitted.returncode == 0, submitted.stderr
    job_id = json.loads(submitted.stdout)["id"]
    with up.client() as client:
        watch = Watch(client, job_id)
        watch.until(lambda: len(watch.seen) >= 4 and watch.job["state"] != "starting", "the first points")
        assert watch.job["state"] == "running", "the kill must come while the recipe trains"
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
