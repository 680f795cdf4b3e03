"""The report as JUnit XML, as Jenkins and GitLab read it: one test case, whose name says what was asked."""

from __future__ import annotations

from xml.etree import ElementTree

from rlcast.gates.report import GateReport, printable


def to_junit(report: GateReport, text: str) -> str:
    """`text` is the report in words, which both systems show with the case.

    A failure is `<failure>`, so is an inconclusive verdict that counts as one (type "inconclusive");
    neutral is `<skipped>`; a gate without a decision is `<error>`.
    """
    outcome = report.outcome
    counts = {
        "tests": "1",
        "failures": str(int(outcome == "fail")),
        "errors": str(int(outcome == "error")),
        "skipped": str(int(outcome == "neutral")),
    }
    root = ElementTree.Element("testsuites", {"name": "rlcast", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "rlcast gate", **counts, "time": "0"})
    name = printable(f"A of {report.candidate} against {report.baseline}")
    case = ElementTree.SubElement(suite, "testcase", {"classname": "rlcast.gate", "name": name, "time": "0"})
    words = "\n".join(printable(line) for line in text.splitlines())
    tag = {"fail": "failure", "error": "error", "neutral": "skipped"}.get(outcome, "system-out")
    element = ElementTree.SubElement(case, tag)
    element.text = words
    if tag != "system-out":
        element.set("message", printable(f"{report.verdict}: {report.reasons[0]}"))
    if tag in ("failure", "error"):
        element.set("type", report.verdict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
