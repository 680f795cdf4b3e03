"""The report as SARIF 2.1.0, for code-scanning views. A pass is a run without results."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rlcast import __version__
from rlcast.gates.report import GateReport, printable

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE = "asymptote-below-baseline"
_LEVELS = {"fail": "error", "neutral": "note", "pass": "note"}


def to_sarif(report: GateReport) -> str:
    """Levels: error for a failure, warning for an inconclusive verdict that counts as one, else note."""
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "invocations": [_invocation(report)],
        "results": [_result(report)] if report.verdict in ("fail", "inconclusive") else [],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver() -> dict[str, Any]:
    rule = {
        "id": _RULE,
        "name": "AsymptoteBelowBaseline",
        "shortDescription": {"text": "The predicted ceiling of the recipe falls below the baseline"},
        "fullDescription": {
            "text": "A, the asymptote of the fitted compute-performance law, is below the baseline's by more "
            "than the margin, at the confidence asked for."
        },
        "help": {"text": "See docs/gates.md and docs/forecasting.md of rlcast."},
        "defaultConfiguration": {"level": "error"},
    }
    return {"name": "rlcast gate", "version": __version__, "semanticVersion": __version__, "rules": [rule]}


def _invocation(report: GateReport) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": report.verdict != "error"}
    invocation["exitCode"] = int(report.exit_code)
    if report.verdict == "error":
        notification = {"level": "error", "message": {"text": printable(report.reasons[0])}}
        invocation["toolExecutionNotifications"] = [notification]
    return invocation


def _result(report: GateReport) -> dict[str, Any]:
    subject = printable(f"{report.candidate} against {report.baseline}")
    level = _LEVELS[report.outcome]
    if report.verdict == "inconclusive" and report.outcome == "fail":
        level = "warning"
    result: dict[str, Any] = {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": level,
        "message": {"text": f"{subject}: {report.verdict}. {printable('; '.join(report.reasons))}"},
        "partialFingerprints": {"rlcastGate/v1": hashlib.sha256(subject.encode()).hexdigest()},
    }
    if report.location is not None:
        place = {"artifactLocation": {"uri": report.location}, "region": {"startLine": 1}}
        result["locations"] = [{"physicalLocation": place}]
    return result
