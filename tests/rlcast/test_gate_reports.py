"""The gate's reports as their readers take them: CI systems by exit code and file, people by words."""

from __future__ import annotations

import html
import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from gate_files import write_curve, write_early_curve

from rlcast.cli import main
from rlcast.gates.chart import chart_svg
from rlcast.gates.junit import to_junit
from rlcast.gates.markdown import code, plain, to_markdown
from rlcast.gates.report import GateReport, report_from_dict, report_of
from rlcast.gates.sarif import to_sarif
from rlcast.gates.text import to_text

#: What somebody may call a run, to break a report or to be somebody else in it.
NASTY = [
    "<script>alert(1)</script>",
    "a|b|c",
    "**PASS** [click](http://evil.example)",
    "@org/team look",
    "`x` ![i](y) #1",
    "]]></failure>",
    "line\nbreak\r::error::x",
    "nul\x00bell\x07\ufffe",
    "\u202egnisrever",
    "--> <!-- rlcast-gate:gate -->",
]


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def gate(folder: Path, *arguments: str) -> Done:
    """What the command `rlcast gate` does in `folder`, without the start of a process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    alone = {"RLCAST_URL": "http://127.0.0.1:9", "RLCAST_HOME": "/nonexistent"}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.chdir(folder)
        patch.setattr("sys.argv", ["rlcast", "gate", *arguments])
        for name, value in alone.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    return Done(int(ended.value.code or 0), stdout.getvalue(), stderr.getvalue())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curves")
    write_curve(folder / "good.csv", 0.7)
    write_curve(folder / "bad.csv", 0.5)
    write_early_curve(folder / "early.csv")
    return folder


@pytest.fixture(scope="module")
def decisions(files: Path) -> dict[str, dict[str, Any]]:
    """One decision of each verdict, with both forecasts."""
    asked = {
        "pass": ("good.csv", "0.6"),
        "fail": ("bad.csv", "good.csv"),
        "inconclusive": ("early.csv", "good.csv"),
    }
    found = {}
    for verdict, (candidate, baseline) in asked.items():
        done = gate(files, "--candidate", candidate, "--baseline", baseline, "--format", "json")
        found[verdict] = json.loads(done.stdout)
        assert found[verdict]["verdict"] == verdict
    return found


@pytest.mark.parametrize(
    ("policy", "code", "junit", "level"),
    [("fail", 3, "failure", "warning"), ("pass", 0, "system-out", "note"), ("neutral", 0, "skipped", "note")],
)
def test_what_an_inconclusive_verdict_counts_as(files, policy, code, junit, level):
    done = gate(
        files,
        *("--candidate", "early.csv", "--baseline", "good.csv", "--on-inconclusive", policy),
        *("--also", "junit=out/gate.xml", "--also", "sarif=out/gate.sarif", "--also", "json=out/gate.json"),
    )
    assert done.returncode == code
    assert done.stdout.startswith("INCONCLUSIVE")  # the policy never changes the verdict itself
    assert "(on_inconclusive)" in done.stdout
    [case] = ElementTree.parse(files / "out/gate.xml").getroot().iter("testcase")
    assert [child.tag for child in case] == [junit]
    [result] = json.loads((files / "out/gate.sarif").read_text())["runs"][0]["results"]
    assert result["level"] == level
    report = json.loads((files / "out/gate.json").read_text())
    assert (report["verdict"], report["exit_code"]) == ("inconclusive", code)


def test_the_policy_file_of_the_repository_is_read(files, tmp_path):
    (tmp_path / "rlcast.toml").write_text(f"[gate]\nbaseline = '{files / 'good.csv'}'\nmargin = 0.25\n")
    bad = str(files / "bad.csv")
    assert gate(tmp_path, "--candidate", bad).returncode == 0  # 0.2 below is within this margin
    assert gate(tmp_path, "--candidate", bad, "--margin", "0.02").returncode == 1
    (tmp_path / "rlcast.toml").write_text("[gate]\nmargn = 0.25\n")
    wrong = gate(tmp_path, "--candidate", bad, "--baseline", "0.6")
    assert (wrong.returncode, "did you mean 'margin'?" in wrong.stderr) == (2, True)
    assert wrong.stderr.count("\n") == 1


def test_output_goes_into_a_file_and_the_chart_into_another(files):
    done = gate(
        files,
        *("--candidate", "bad.csv", "--baseline", "good.csv", "--format", "markdown"),
        *("--output", "out/gate.md", "--chart", "out/gate.svg"),
    )
    assert (done.returncode, done.stdout) == (1, "")
    text = (files / "out/gate.md").read_text()
    assert text.startswith("### FAIL")
    assert "(<out/gate.svg>)" in text
    ElementTree.parse(files / "out/gate.svg")
    inline = gate(
        files, *("--candidate", "bad.csv", "--baseline", "0.7", "--format", "markdown", "--chart", "inline")
    )
    assert "](data:image/svg+xml;base64," in inline.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--candidate", "my-run", "--baseline", "0.6"], 4, "no service at"),
        (["--candidate", "no-such.csv", "--baseline", "0.6"], 2, "no such file"),
        (["--candidate", "good.csv", "--baseline", "0.6", "--law", "cubic"], 2, "law 'cubic'"),
    ],
)
def test_a_gate_that_cannot_decide_still_writes_its_reports(files, arguments, code, words):
    forms = ("text", "json", "markdown", "junit", "sarif")
    for form in forms:
        (files / f"error.{form}").write_text("of an earlier run")
    done = gate(files, *arguments, *(f"--also={form}=error.{form}" for form in forms))
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert json.loads((files / "error.json").read_text())["exit_code"] == code
    assert (files / "error.text").read_text().startswith("ERROR")
    assert (files / "error.markdown").read_text().startswith("### ERROR")
    [case] = ElementTree.parse(files / "error.junit").getroot().iter("testcase")
    assert [child.tag for child in case] == ["error"]
    assert words in case[0].get("message")
    [run] = json.loads((files / "error.sarif").read_text())["runs"]
    assert (run["results"], run["invocations"][0]["executionSuccessful"]) == ([], False)
    assert words in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "xml"], "--format is 'xml'"),
        (["--json", "--format", "text"], "--json and --format text differ"),
        (["--also", "junit"], "FORMAT=FILE"),
        (["--also", "html=x"], "FORMAT=FILE"),
        (["--output", "good.csv/x"], "cannot be written"),
    ],
)
def test_wrong_usage_is_one_line(files, arguments, words):
    done = gate(files, "--candidate", "good.csv", "--baseline", "0.6", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_the_verdict_comes_first_in_words(decisions):
    for verdict, decision in decisions.items():
        assert to_text(report_of(decision, "new", "old")).startswith(f"{verdict.upper()}  new against old\n")
        assert to_markdown(report_of(decision, "new", "old")).startswith(f"### {verdict.upper()}: ")


def test_the_numbers_of_the_table_are_those_of_the_decision(decisions):
    decision = decisions["fail"]
    text = to_markdown(report_of(decision, "new", "old"))
    assert "| A of the candidate | 0.500 |" in text
    assert "| A of the baseline | 0.700 |" in text
    assert "| difference | -0.200 |" in text
    assert "| margin | 0.02 |" in text


def test_junit_counts_agree_with_its_case(decisions):
    expected = {"pass": "system-out", "fail": "failure", "inconclusive": "failure"}
    for verdict, decision in decisions.items():
        report = report_of(decision, "new", "old")
        root = ElementTree.fromstring(to_junit(report, to_text(report)))
        [suite] = root
        [case] = suite
        [element] = case
        assert (root.tag, suite.tag, case.tag, element.tag) == (
            "testsuites",
            "testsuite",
            "testcase",
            expected[verdict],
        )
        assert case.get("name") == "A of new against old"
        assert suite.get("tests") == "1"
        assert suite.get("failures") == str(int(element.tag == "failure"))
        assert (suite.get("errors"), suite.get("skipped")) == ("0", "0")
        assert verdict.upper() in element.text  # GitLab shows the text, not the message


def test_sarif_has_what_its_schema_requires(decisions):
    """Required properties of SARIF 2.1.0 (OASIS, section 3), and what GitHub needs besides."""
    for verdict, decision in decisions.items():
        log = json.loads(to_sarif(report_of(decision, "new", "old", location="rlcast.toml")))
        assert log["version"] == "2.1.0"
        [run] = log["runs"]
        driver = run["tool"]["driver"]
        assert driver["name"] == "rlcast gate"
        assert [rule["id"] for rule in driver["rules"]] == ["asymptote-below-baseline"]
        assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
        results = run["results"]
        assert len(results) == (0 if verdict == "pass" else 1)
        for result in results:
            assert result["message"]["text"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            place = result["locations"][0]["physicalLocation"]
            assert place["artifactLocation"]["uri"] == "rlcast.toml"
            assert place["region"]["startLine"] == 1
            assert result["partialFingerprints"]
    assert (
        json.loads(to_sarif(report_of(decisions["fail"], "a", "b")))["runs"][0]["results"][0]["level"]
        == "error"
    )


def test_the_chart_has_points_fit_extrapolation_and_the_line_to_hold(decisions):
    svg = ElementTree.fromstring(chart_svg(report_of(decisions["fail"], "new", "old")))
    tag = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{tag}polygon")) == 2
    lines = svg.findall(f"{tag}polyline")
    assert [line.get("stroke-dasharray") is not None for line in lines] == [False, True] * 2
    assert len(svg.findall(f"{tag}circle")) == 60
    assert "A to hold: 0.680" in [text.text for text in svg.findall(f"{tag}text")]
    assert svg.find(f"{tag}title").text == "new against old: fail"
    xs = [float(pair.split(",")[0]) for line in lines for pair in line.get("points").split()]
    assert 0 <= min(xs) <= max(xs) <= 640


def test_a_report_without_forecasts_has_no_chart(decisions):
    decision = {**decisions["pass"], "candidate_forecast": None, "baseline_forecast": None}
    report = report_of(decision, "new", "old")
    assert chart_svg(report) is None
    assert "![" not in to_markdown(report, "inline")
    assert chart_svg(GateReport("error", "new", "old", 4, error="no service")) is None


@pytest.mark.parametrize("name", NASTY)
def test_a_name_stays_a_name_in_every_form(decisions, name):
    decision = {**decisions["fail"], "reasons": [f"{name}: A is not identified (reason)"]}
    report = report_of(decision, name, name)
    root = ElementTree.fromstring(to_junit(report, to_text(report)))
    assert len(list(root.iter())) == 4
    svg = ElementTree.fromstring(chart_svg(report))
    tags = {element.tag.split("}")[1] for element in svg.iter()}
    assert tags == {"svg", "title", "rect", "path", "text", "polygon", "polyline", "circle"}
    assert json.loads(to_sarif(report))["runs"][0]["results"][0]["message"]["text"]
    assert to_text(report).count("\n") == to_text(report_of(decisions["fail"], "a", "b")).count("\n")
    assert "\u202e" not in to_text(report)
    plain_report = report_of({**decision, "reasons": ["x"]}, "a", "b")
    assert to_markdown(report).count("\n") == to_markdown(plain_report).count("\n")


@pytest.mark.parametrize("name", NASTY)
def test_a_name_makes_no_markup(name):
    """Nothing is left that Markdown reads, and who decodes the entities gets the name back."""
    for written in (code(name), plain(name)):
        inside = written.removeprefix("<code>").removesuffix("</code>")
        assert not re.search(r"[<>|`*_\[\]!@\\~:]|\n|www\.", re.sub(r"&#\d+;", "", inside))
        shown = html.unescape(inside).replace("\u200b", "")
        assert [c for c in shown if c.isalnum()] == [c for c in name if c.isalnum()]
    assert "&#64;&#8203;" in plain("@org")


def test_a_report_survives_its_json(decisions):
    for decision in decisions.values():
        report = report_of(decision, "new", "old", "neutral")
        again = report_from_dict(json.loads(json.dumps(report.to_dict())))
        assert to_markdown(again) == to_markdown(report)
        assert again.exit_code == report.exit_code
