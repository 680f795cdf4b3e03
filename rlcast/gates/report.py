"""The decision with what CI makes of it: one object that every form of report is written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlcast.errors import ExitCode
from rlcast.gates.policy import OnInconclusive

Verdict = Literal["pass", "fail", "inconclusive", "error"]

_EXIT_CODES = {"pass": ExitCode.OK, "fail": ExitCode.GATE_FAILED, "inconclusive": ExitCode.INCONCLUSIVE}


@dataclass(frozen=True)
class GateReport:
    """`verdict` is the truth; `outcome` is what the policy makes of it for CI.

    `decision` is `GateDecision.to_dict()` with both forecasts; None when the gate could not decide, and
    then `error` says why.
    """

    verdict: Verdict
    candidate: str
    baseline: str
    exit_code: int
    on_inconclusive: OnInconclusive = "fail"
    decision: Mapping[str, Any] | None = None
    error: str | None = None
    #: File of the repository that the decision is about, for reports that need a place.
    location: str | None = None

    @property
    def outcome(self) -> Literal["pass", "fail", "neutral", "error"]:
        if self.verdict == "inconclusive":
            return self.on_inconclusive
        return self.verdict

    @property
    def reasons(self) -> list[str]:
        if self.decision is None:
            return [self.error or "the gate did not come to a decision"]
        return [str(reason) for reason in self.decision["reasons"]]

    @property
    def policy_note(self) -> str | None:
        """How an inconclusive verdict counts; None for the others."""
        if self.verdict != "inconclusive":
            return None
        word = {"fail": "a failure", "pass": "a pass", "neutral": "neither pass nor failure"}
        return f"inconclusive counts as {word[self.on_inconclusive]} here (on_inconclusive)"

    def to_dict(self) -> dict[str, Any]:
        """The decision as JSON-ready data, with names, policy and exit code."""
        names = {"candidate_name": self.candidate, "baseline_name": self.baseline}
        policy = {"on_inconclusive": self.on_inconclusive, "exit_code": int(self.exit_code)}
        if self.decision is None:
            return {"verdict": self.verdict, **names, **policy, "error": self.error}
        return {**self.decision, **names, **policy}


def report_of(
    decision: Mapping[str, Any],
    candidate: str,
    baseline: str,
    on_inconclusive: OnInconclusive = "fail",
    location: str | None = None,
) -> GateReport:
    """The report of a decision. An inconclusive one exits with 3 when it counts as a failure, else with 0."""
    verdict: Verdict = decision["verdict"]
    exit_code = _EXIT_CODES[verdict]
    if verdict == "inconclusive" and on_inconclusive != "fail":
        exit_code = ExitCode.OK
    return GateReport(verdict, candidate, baseline, exit_code, on_inconclusive, decision, location=location)


def report_from_dict(document: Mapping[str, Any]) -> GateReport:
    """The report that `to_dict` wrote. Raises `KeyError` or `ValueError` for anything else."""
    error = document.get("error")
    return GateReport(
        verdict=document["verdict"],
        candidate=document["candidate_name"],
        baseline=document["baseline_name"],
        exit_code=ExitCode(document["exit_code"]),
        on_inconclusive=document["on_inconclusive"],
        decision=None if document["verdict"] == "error" else document,
        error=error,
    )


def printable(text: str) -> str:
    """Text of others on one line, without control characters or those that turn the writing direction."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
