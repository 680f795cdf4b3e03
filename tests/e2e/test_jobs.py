"""Jobs as their owner meets them: submit, watch, cancel, and a service that is stopped in between."""

from __future__ import annotations

import json
import time

import psutil
import pytest
from stack_fixtures import Watch

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.xdist_group("stack")]


def trainers(folder: object) -> list[psutil.Process]:
    """The training processes over this data folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if "runners.trainer" in words and str(folder) in words:
            found.append(process)
    return found


def test_submit_and_wait_until_the_end(start_up, rlcast, small_recipe):
    up = start_up().wait()
    done = rlcast("submit", str(small_recipe), "--set", "steps=40", "--name", "mine", "--wait", env=up.env())
    assert (done.returncode, "finished" in done.stdout) == (0, True), done.stdout + done.stderr
    listed = rlcast("jobs", "--json", env=up.env())
    [job] = json.loads(listed.stdout)["jobs"]
    assert (job["run_name"], job["state"], job["attempt"]) == ("mine", "finished", 1)
    with up.client() as client:
        steps = [item["step"] for item in client.evaluations("mine")]
    assert steps == [0, 1, 2, 4, 8, 16, 20, 40]


def test_cancel_stops_the_training_within_twenty_seconds(start_up, rlcast, small_recipe):
    up = start_up().wait()
    submitted = rlcast("submit", str(small_recipe), "--set", "steps=100000", "--json", env=up.env())
    job_id = json.loads(submitted.stdout)["id"]
    with up.client() as client:
        watch = Watch(client, job_id)
        watch.until(lambda: len(watch.seen) >= 3, "the first points")
        assert len(trainers(up.folder)) >= 1
        asked = time.monotonic()
        assert rlcast("cancel", job_id, env=up.env()).returncode == 0
        watch.until(lambda: watch.job["state"] == "cancelled", "the cancellation", timeout_s=30)
        assert time.monotonic() - asked < 20
        assert trainers(up.folder) == []
        kept = {item["step"] for item in client.evaluations(watch.job["run_id"], limit=1000)}
    assert watch.seen.keys() <= kept


def test_a_job_goes_on_after_the_service_was_stopped(start_up, rlcast, small_recipe):
    up = start_up().wait()
    job_id = json.loads(rlcast("submit", str(small_recipe), "--json", env=up.env()).stdout)["id"]
    with up.client() as client:
        watch = Watch(client, job_id)
        watch.until(lambda: len(watch.seen) >= 5, "the first points")
    assert up.stop() == 0
    assert trainers(up.folder) == []
    seen = dict(watch.seen)

    up = start_up(folder=up.folder).wait()
    with up.client() as client:
        watch = Watch(client, job_id)
        watch.until(lambda: watch.job.get("state") == "finished", "the end of the job")
        stored = {i["step"]: i["pass_rate"] for i in client.evaluations(watch.job["run_id"], limit=1000)}
    assert watch.job["attempt"] == 2
    # Resumed from a checkpoint, bit for bit: what was measured before stands.
    assert {step: stored[step] for step in seen} == seen
    assert {0, 600, 1200} <= stored.keys()


def test_a_recipe_that_cannot_train_fails_with_its_reason(start_up, rlcast, small_recipe):
    up = start_up().wait()
    # The warm start cannot reach 99% within three steps.
    impossible = ["--set", "model.warm_start.pass_rate=0.99", "--set", "model.warm_start.max_steps=3"]
    done = rlcast("submit", str(small_recipe), *impossible, "--wait", "--json", env=up.env())
    job = json.loads(done.stdout)
    assert (done.returncode, job["state"]) == (1, "failed")
    assert "warm" in job["error"]
    assert "exit code 1" in job["error"]
