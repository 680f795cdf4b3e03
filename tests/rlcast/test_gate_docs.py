"""docs/gates.md and the CI examples: what they show runs, and gives what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from doc_blocks import blocks_of
from gate_files import write_curve

from rlcast.gates.policy import resolve

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository as the examples mean it, with `rlcast` installed."""
    write_curve(tmp_path / "curves/candidate.csv", 0.5)
    write_curve(tmp_path / "curves/baseline.csv", 0.7)
    command = tmp_path / ".venv" / "bin" / "rlcast"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rlcast "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.fixture
def sh(checkout: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(script: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = f"{checkout}/.venv/bin:{os.environ['PATH']}"
        environ = {**os.environ, "PATH": path, "RLCAST_URL": "http://127.0.0.1:9", **env}
        argv = ["sh", "-ec", script]
        return subprocess.run(argv, env=environ, cwd=checkout, capture_output=True, text=True, timeout=60)

    return run


def block(heading: str) -> str:
    [found] = [b.text for b in blocks_of("gates.md") if b.heading == heading]
    return found


def test_every_block_of_the_page_has_its_test():
    assert [b.heading for b in blocks_of("gates.md")] == ["One command", "Policy", "Reports", "Baselines"]


def test_the_commands_and_the_policy_of_the_page(sh, checkout, monkeypatch):
    one = sh(block("One command"))
    assert (one.returncode, one.stdout.split()[0]) == (1, "FAIL")
    assert sh(block("Reports")).returncode == 1
    assert {"gate.md", "gate.xml", "gate.sarif", "gate.svg"} <= {path.name for path in checkout.iterdir()}
    (checkout / "rlcast.toml").write_text(block("Policy"))
    monkeypatch.chdir(checkout)
    policy = resolve({"candidate": "x"})
    assert (policy.baseline, policy.on_inconclusive) == ("curves/baseline.csv", "neutral")


def test_baselines_are_pinned_listed_and_used(service, sh, checkout):
    good = write_curve(checkout / "good.csv", 0.65, run="seed-1")
    env = {"RLCAST_URL": service.url, "RLCAST_TOKEN": service.token, "COLUMNS": "160"}
    assert sh(f"rlcast import {good} --recipe my-recipe", **env).returncode == 0
    done = sh(block("Baselines"), **env)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "release-1 is 0.620; use it with: rlcast gate --baseline release-1"
    assert lines[1].startswith("release-2 is the forecast of my-recipe")
    rows = [line.split() for line in lines[3:5]]
    assert [row[0] for row in rows] == ["release-2", "release-1"]
    assert rows[1][1] == "0.620"
    assert "what users have today" in lines[4]
    assert lines[5].startswith("PASS")  # A is 0.65 there
    [two, one] = service.api("GET", "/baselines")["items"]
    assert (one["pass_rate"], one["reason"]) == (0.62, "what users have today")
    stored = service.api("GET", f"/forecasts/{two['forecast_id']}")
    assert stored["name"] == "my-recipe"
    taken = sh("rlcast baseline set release-1 0.5", **env)
    assert (taken.returncode, "never change" in taken.stderr) == (2, True)
    wrong = sh("rlcast baseline set release-3 no-such-run", **env)
    assert (wrong.returncode, "no-such-run" in wrong.stderr) == (2, True)
    assert "pass rate from 0 to 1" in sh("rlcast baseline set release-4 62", **env).stderr


def reports_a_failure(path: Path) -> bool:
    [case] = ElementTree.parse(path).getroot().iter("testcase")
    return [child.tag for child in case] == ["failure"]


def test_the_gitlab_example_runs(sh, checkout):
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["gate"]
    (checkout / "rlcast.toml").write_text(block("Policy"))
    assert sh("\n".join(job["script"])).returncode == 1
    assert reports_a_failure(checkout / job["artifacts"]["reports"]["junit"])
    assert all((checkout / name).is_file() for name in job["artifacts"]["paths"])


def test_the_jenkins_example_runs(sh, checkout):
    text = (EXAMPLES / "Jenkinsfile").read_text()
    steps = [step for step in re.findall(r"^ *sh '(.*)'$", text, re.M) if " gate " in step]
    (checkout / "rlcast.toml").write_text(block("Policy"))
    assert [sh(step).returncode for step in steps] == [1]
    [report] = re.findall(r"junit '(.*)'", text)
    assert reports_a_failure(checkout / report)
    [artifacts] = re.findall(r"artifacts: '(.*?)'", text)
    assert all((checkout / name).is_file() for name in artifacts.split(", "))
    assert text.count("{") == text.count("}")


def test_the_github_example_uses_the_action_as_it_is():
    workflow = yaml.safe_load((EXAMPLES / "github-gate.yml").read_text())
    steps = workflow["jobs"]["gate"]["steps"]
    [gate] = [step for step in steps if "rlcast" in step.get("uses", "")]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert gate["with"].keys() <= inputs.keys()
    assert workflow["permissions"]["pull-requests"] == "write"
    [upload] = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["path"].rstrip("/") == inputs["folder"]["default"]
