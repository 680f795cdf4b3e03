"""The step of the GitHub Action: `python -P -m rlcast.gates.action`, all input from the environment.

Runs the gate once, writes the job's summary and outputs, keeps one comment on the pull request up to date,
and ends with the gate's exit code. Whatever goes wrong, there is a result: a gate that cannot decide is an
ERROR with its reason, and a comment that cannot be written is a warning.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcast.errors import ExitCode, InputError, RlcastError
from rlcast.gates.github import PullRequest
from rlcast.gates.markdown import to_markdown
from rlcast.gates.report import GateReport, report_from_dict
from rlcast.gates.text import to_text
from rlcast.gates.write import write_chart

#: Inputs that are options of `rlcast gate` under the same name.
_OPTIONS = (
    "candidate",
    "baseline",
    "margin",
    "confidence",
    "on-inconclusive",
    "law",
    "min-compute",
    "max-compute",
    "config",
)
_FILES = {"json": "gate.json", "junit": "gate.xml", "sarif": "gate.sarif"}


@dataclass(frozen=True)
class Inputs:
    """The action's inputs and what GitHub tells of the job."""

    environ: Mapping[str, str]

    def get(self, name: str, default: str = "") -> str:
        return self.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip() or default

    @property
    def folder(self) -> Path:
        return Path(self.get("folder", "rlcast-gate"))

    @property
    def timeout_s(self) -> float:
        text = self.get("timeout-minutes", "10")
        try:
            minutes = float(text)
        except ValueError:
            minutes = 0.0
        if not 0 < minutes <= 1440:
            raise InputError(
                f"timeout-minutes is '{text}'; give minutes from above 0 to 1440", "timeout-minutes"
            )
        return minutes * 60

    def event(self) -> dict[str, Any]:
        try:
            found = json.loads(Path(self.environ.get("GITHUB_EVENT_PATH", "")).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def main(environ: Mapping[str, str] | None = None) -> int:
    """Everything in order; the gate's exit code."""
    inputs = Inputs(os.environ if environ is None else environ)
    for number in (signal.SIGINT, signal.SIGTERM):  # GitHub sends one, then the other
        signal.signal(number, _cancel)
    report = _decide(inputs)
    _say(to_text(report), end="")
    markdown = _markdown(inputs, report)
    _append(inputs, "GITHUB_STEP_SUMMARY", markdown)
    _outputs(inputs, report)
    _comment(inputs, markdown)
    return int(report.exit_code)


def _decide(inputs: Inputs) -> GateReport:
    """The gate's report; an error report when there is none, for whatever reason."""
    try:
        return _run_gate(inputs)
    except _Cancelled:
        problem, code = "the job was cancelled before the gate decided", ExitCode.INTERNAL
    except subprocess.TimeoutExpired as error:
        problem, code = (
            f"no decision in {error.timeout / 60:g} minutes (timeout-minutes)",
            ExitCode.UNREACHABLE,
        )
    except RlcastError as error:
        problem, code = str(error), error.exit_code
    except Exception as error:
        problem, code = f"internal error: {type(error).__name__}: {error}", ExitCode.INTERNAL
    candidate, baseline = (inputs.get(name, "–") for name in ("candidate", "baseline"))
    return GateReport("error", candidate, baseline, code, error=problem)


def _run_gate(inputs: Inputs) -> GateReport:
    files = {form: inputs.folder / name for form, name in _FILES.items()}
    for path in (*files.values(), inputs.folder / "gate.svg"):
        path.unlink(missing_ok=True)  # of an earlier run in the same workspace
    # -P: the working directory is the pull request's, and nothing in it may pass for a module.
    argv = [sys.executable, "-P", "-m", "rlcast", "gate", "--format=json", f"--output={files['json']}"]
    for form in ("junit", "sarif"):
        argv.append(f"--also={form}={files[form]}")
    for name in _OPTIONS:
        if value := inputs.get(name):
            argv.append(f"--{name}={value}")  # one word each: a value is never read as an option
    environ = {key: value for key, value in inputs.environ.items() if not key.startswith("INPUT_")}
    for variable, name in (("RLCAST_URL", "url"), ("RLCAST_TOKEN", "token")):
        if value := inputs.get(name):
            environ[variable] = value
    returncode, stderr = _call(argv, environ, inputs.timeout_s)
    try:
        report = report_from_dict(json.loads(files["json"].read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        words = " ".join(stderr.split()).removeprefix("error: ")
        raise _Failed(words or f"the gate ended with {returncode}", returncode) from None
    write_chart(report, inputs.folder / "gate.svg")
    return report


class _Cancelled(Exception):
    """The job is to end; what is left to do is to say so."""


@dataclass
class _Running:
    """What a signal has to know: it may come at any moment, also while the gate is being started."""

    gate: subprocess.Popen[str] | None = None
    cancelled: bool = False


_running = _Running()


def _cancel(number: int, frame: object) -> None:
    _running.cancelled = True
    if _running.gate is not None:
        _running.gate.kill()


def _call(argv: list[str], environ: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
    """Exit code and stderr of the gate. Raises `_Cancelled` or `TimeoutExpired`, and leaves no process."""
    with subprocess.Popen(argv, env=environ, stderr=subprocess.PIPE, text=True) as gate:
        _running.gate = gate
        try:
            if _running.cancelled:
                raise _Cancelled
            _, stderr = gate.communicate(timeout=timeout_s)
        except BaseException:
            gate.kill()
            raise
        finally:
            _running.gate = None
    if _running.cancelled:
        raise _Cancelled
    return gate.returncode, stderr


class _Failed(RlcastError):
    """The gate ended without a report."""

    def __init__(self, message: str, returncode: int) -> None:
        super().__init__(message)
        known = returncode in (ExitCode.USAGE, ExitCode.UNREACHABLE)
        self.exit_code = ExitCode(returncode) if known else ExitCode.INTERNAL


def _markdown(inputs: Inputs, report: GateReport) -> str:
    environ = inputs.environ
    footer = []
    commit = str((inputs.event().get("pull_request") or {}).get("head", {}).get("sha", ""))
    commit = commit or environ.get("GITHUB_SHA", "")
    if commit:
        footer.append(f"Commit {commit[:12]}")
    run, repository = environ.get("GITHUB_RUN_ID"), environ.get("GITHUB_REPOSITORY")
    if run and repository:
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        footer.append(f"[job and chart]({server}/{repository}/actions/runs/{run})")
    return f"{to_markdown(report)}\n{' · '.join(footer)}\n"


def _append(inputs: Inputs, variable: str, text: str) -> None:
    path = inputs.environ.get(variable)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def _outputs(inputs: Inputs, report: GateReport) -> None:
    values = {
        "verdict": report.verdict,
        "exit-code": str(int(report.exit_code)),
        "folder": str(inputs.folder),
    }
    if any("\n" in value for value in values.values()):
        raise InputError("folder must be one line", "folder")
    _append(inputs, "GITHUB_OUTPUT", "".join(f"{key}={value}\n" for key, value in values.items()))


def _comment(inputs: Inputs, markdown: str) -> None:
    """Creates or updates the comment. Its failure is a warning: the verdict stands without it."""
    event = inputs.event()
    number = (event.get("pull_request") or event.get("issue") or {}).get("number")
    if inputs.get("comment", "true") != "true" or not isinstance(number, int):
        return
    repository = inputs.environ.get("GITHUB_REPOSITORY", "")
    api_url = inputs.environ.get("GITHUB_API_URL", "https://api.github.com")
    author = inputs.get("comment-author", "github-actions[bot]")
    try:
        pull = PullRequest(api_url, repository, number, inputs.get("github-token"), author)
        try:
            _say(f"comment: {pull.upsert(inputs.get('comment-id', 'gate'), markdown)}")
        finally:
            pull.close()
    except Exception as error:
        words = str(error).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        _say(f"::warning title=rlcast gate::the comment could not be written: {words}")


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
