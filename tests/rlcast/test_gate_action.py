"""The GitHub Action: the steps of action.yml as a runner would run them, against a GitHub on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_github import BOT, TOKEN, FakeGitHub, github
from gate_files import write_curve, write_early_curve

from rlcast.errors import InputError
from rlcast.gates.github import CommentRefused, PullRequest, marker

__all__ = ["github"]

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
SHA = "0123456789abcdef0123456789abcdef01234567"


class Job:
    """A job with a checkout, whose runner runs the steps of the action."""

    def __init__(self, folder: Path, github: FakeGitHub) -> None:
        self.workspace = folder / "workspace"
        self.summary, self.output, event = (folder / name for name in ("summary.md", "output", "event.json"))
        binary = folder / "temp" / "rlcast-gate" / "bin" / "python"
        binary.parent.mkdir(parents=True)
        # What the step "Install" makes:
        binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        binary.chmod(0o755)
        self.workspace.mkdir()
        write_curve(self.workspace / "good.csv", 0.7)
        write_curve(self.workspace / "bad.csv", 0.5)
        write_early_curve(self.workspace / "early.csv")
        event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": SHA}}}))
        self.event = event
        self.environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "RUNNER_TEMP": str(folder / "temp"),
            "RLCAST_URL": "http://127.0.0.1:9",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": github.url,
            "GITHUB_REPOSITORY": "org/repo",
            "GITHUB_RUN_ID": "99",
        }

    def step_environ(self, step: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
        """The step's `env` with its expressions filled in, as GitHub does it."""
        inputs = {name: str(known.get("default", "")) for name, known in ACTION["inputs"].items()}
        assert given.keys() <= inputs.keys()
        inputs |= given
        inputs["github-token"] = inputs["github-token"].replace("${{ github.token }}", TOKEN)

        def fill(text: str) -> str:
            filled = re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)
            assert "${{" not in filled
            return filled

        return {name: fill(text) for name, text in step.get("env", {}).items()}

    def start(self, **given: str) -> subprocess.Popen[str]:
        [step] = [step for step in ACTION["runs"]["steps"] if step.get("id") == "gate"]
        environ = self.environ | self.step_environ(step, {k.replace("_", "-"): v for k, v in given.items()})
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, env=environ, cwd=self.workspace, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def run(self, **given: str) -> tuple[int, str]:
        process = self.start(**given)
        log, _ = process.communicate(timeout=60)
        return process.returncode, log

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


@pytest.fixture
def job(tmp_path: Path, github: FakeGitHub) -> Job:
    return Job(tmp_path, github)


def test_one_comment_is_made_and_then_updated(job, github):
    github.add("somebody", f"{marker('gate')}\nPASS, says somebody else")
    code, log = job.run(candidate="bad.csv", baseline="good.csv")
    assert code == 1
    assert log.startswith("FAIL  bad.csv against good.csv")
    [theirs, ours] = github.comments
    assert ours["body"].startswith(f"{marker('gate')}\n### FAIL")
    assert f"Commit {SHA[:12]}" in ours["body"]
    assert "(https://github.com/org/repo/actions/runs/99)" in ours["body"]
    assert job.outputs() == {"verdict": "fail", "exit-code": "1", "folder": "rlcast-gate"}
    assert job.summary.read_text().startswith("### FAIL")
    names = sorted(path.name for path in (job.workspace / "rlcast-gate").iterdir())
    assert names == ["gate.json", "gate.sarif", "gate.svg", "gate.xml"]

    assert job.run(candidate="good.csv", baseline="0.6")[0] == 0
    assert [theirs, ours] == github.comments
    assert ours["body"].startswith(f"{marker('gate')}\n### PASS")
    assert theirs["body"].endswith("says somebody else")


def test_the_policy_of_the_repository_decides(job):
    (job.workspace / "rlcast.toml").write_text("[gate]\nbaseline = 'good.csv'\non_inconclusive = 'neutral'\n")
    code, log = job.run(candidate="early.csv")
    assert (code, job.outputs()["verdict"]) == (0, "inconclusive")
    assert "neither pass nor failure" in log


def test_a_service_that_is_away_is_a_result_too(job, github):
    code, log = job.run(candidate="my-recipe", baseline="0.6", url="http://127.0.0.1:9", token="rl_secret")
    assert code == 4
    assert job.outputs()["verdict"] == "error"
    assert "no service at" in job.summary.read_text()
    [comment] = github.comments
    assert "### ERROR" in comment["body"]
    assert not any("rl_secret" in text for text in (log, job.summary.read_text(), comment["body"]))


def test_a_mistake_in_the_inputs_is_a_result_too(job, github):
    assert job.run(candidate="good.csv", baseline="0.6", margin="wide")[0] == 2
    assert "margin" in github.comments[0]["body"]
    assert job.run(candidate="good.csv", baseline="0.6", timeout_minutes="soon")[0] == 2
    assert "timeout-minutes" in github.comments[0]["body"]
    assert job.run(candidate="good.csv", baseline="0.6", timeout_minutes="0.0001")[0] == 4
    assert "no decision in 0.0001 minutes" in github.comments[0]["body"]
    assert len(github.comments) == 1


def test_a_cancelled_job_says_so(job, github):
    (job.workspace / "slow.csv").symlink_to("pipe")
    os.mkfifo(job.workspace / "pipe")  # the gate waits for a writer that never comes
    process = job.start(candidate="slow.csv", baseline="0.6")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")  # bash made way for the action
    deadline = time.monotonic() + 30
    while not children.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 5
    assert "was cancelled" in job.summary.read_text()
    assert "was cancelled" in github.comments[0]["body"]


def test_a_comment_that_github_refuses_changes_no_verdict(job, github):
    github.broken = [403]
    code, log = job.run(candidate="bad.csv", baseline="good.csv")
    assert (code, job.outputs()["verdict"], github.comments) == (1, "fail", [])
    assert "::warning title=rlcast gate::" in log
    assert "pull-requests: write" in log


def test_without_a_pull_request_there_is_no_comment(job, github):
    job.event.write_text("{}")
    assert job.run(candidate="good.csv", baseline="0.6")[0] == 0
    assert github.requests == []
    job.event.unlink()
    assert job.run(candidate="good.csv", baseline="0.6", comment="false")[0] == 0
    assert job.summary.read_text().count("### PASS") == 2


def test_inputs_are_no_shell_and_no_options(job, github):
    code, log = job.run(candidate="good.csv; touch owned", baseline="--help")
    assert code == 4  # it is the name of a run, sought in the service that is away
    assert log.startswith("ERROR  good.csv; touch owned against --help")
    assert not (job.workspace / "owned").exists()
    assert job.outputs()["verdict"] == "error"


def test_modules_of_the_checkout_are_not_run(job):
    """A pull request must not get the job's tokens by bringing a module of its own."""
    (job.workspace / "rlcast").mkdir()
    for name in ("rlcast/__init__.py", "json.py", "typer.py", "sitecustomize.py"):
        (job.workspace / name).write_text("open('owned', 'w').close(); raise SystemExit(0)")
    assert job.run(candidate="bad.csv", baseline="good.csv")[0] == 1
    assert not (job.workspace / "owned").exists()


def test_a_gate_that_could_not_start_has_a_result(job):
    last = ACTION["runs"]["steps"][-1]
    assert last["if"] == "always() && steps.gate.outputs.verdict == ''"
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", last["run"]], env=job.environ)
    assert done.returncode == 5
    assert "ERROR" in job.summary.read_text()


def test_every_input_reaches_its_step():
    [step] = [step for step in ACTION["runs"]["steps"] if step.get("id") == "gate"]
    wired = {text: name for name, text in step["env"].items()}
    for name in ACTION["inputs"]:
        expected = f"INPUT_{name.upper().replace('-', '_')}"
        assert wired[f"${{{{ inputs.{name} }}}}"] == expected
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


@pytest.fixture
def pull(github):
    found = PullRequest(github.url, "org/repo", 7, TOKEN, BOT, wait_s=0.0)
    yield found
    found.close()


def test_the_comment_is_found_behind_many_others(pull, github):
    for i in range(230):
        github.add("somebody", f"comment {i}")
    pull.upsert("gate", "first")
    for i in range(120):
        github.add("somebody", f"more {i}")
    pull.upsert("gate", "second")
    pull.upsert("other", "of another gate")
    bodies = [c["body"] for c in github.comments if c["user"]["login"] == BOT]
    assert bodies == [f"{marker('gate')}\nsecond", f"{marker('other')}\nof another gate"]


def test_a_troubled_github_is_asked_again(pull, github):
    github.broken = [502, 429]
    assert pull.upsert("gate", "text").endswith("#issuecomment-1")
    github.broken = [500, 500, 500]
    with pytest.raises(CommentRefused, match="HTTP 500"):
        pull.upsert("gate", "text")
    assert len(github.comments) == 1


def test_a_long_comment_is_cut_to_what_github_takes(pull, github):
    pull.upsert("gate", "x" * 100_000)
    assert len(github.comments[0]["body"]) < 65_536
    assert github.comments[0]["body"].endswith("(cut: the whole report is in the job's summary)")


@pytest.mark.parametrize("comment_id", ["", "a b", "--><script>", "x" * 61])
def test_a_marker_cannot_be_broken_out_of(comment_id):
    with pytest.raises(InputError, match="comment-id"):
        marker(comment_id)
