"""The command line as its user meets it: no server, a process of its own, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from stack_fixtures import rlcast_command

CURVES = Path(__file__).parents[2] / "rlcast" / "data" / "curves"
SCALERL = CURVES / "scalerl_8b_gpu_hours.csv"


def rlcast(*arguments: str, **env: str):
    # No service is reachable at this address, and no data folder names another.
    alone = {"RLCAST_URL": "http://127.0.0.1:9", "RLCAST_HOME": "/nonexistent", "COLUMNS": "100"}
    return rlcast_command(*arguments, env={**os.environ, **alone, **env})


@pytest.fixture
def sigmoid_file(tmp_path: Path):
    """A file of one noiseless run: A, B, Cmid, R0 as given."""

    def write(
        name: str, a: float, b: float = 2.0, cmid: float = 2000.0, r0: float = 0.3, end: float = 40_000.0
    ) -> Path:
        compute = np.geomspace(200.0, end, 30)
        rate = r0 + (a - r0) / (1.0 + (cmid / compute) ** b)
        lines = ["run,compute,compute_unit,pass_rate"]
        lines += [
            f"{name},{c!r},gpu_hours,{r!r}" for c, r in zip(compute.tolist(), rate.tolist(), strict=True)
        ]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def test_json_has_the_promised_shape_and_the_laws_numbers(sigmoid_file):
    path = sigmoid_file("known", a=0.7)
    done = rlcast(
        *("forecast", str(path), "--law", "sigmoid", "--at", "80000", "--reach", "0.5", "--reach", "0.9"),
        *("--level", "0.8", "--json"),
    )
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["forecasts"]
    assert (found["run"], found["law"], found["n_points"]) == ("known", "sigmoid", 30)
    assert {name: p["value"] for name, p in found["parameters"].items()} == pytest.approx(
        {"A": 0.7, "B": 2.0, "Cmid": 2000.0, "R0": 0.3}, rel=1e-4
    )
    for part in found["parameters"].values():
        assert part.keys() == {"value", "low", "high"}
        assert part["low"] <= part["value"] <= part["high"]
    [at] = found["at"]
    assert at.keys() == {"compute", "value", "low", "high"}
    # 80,000 = 40 Cmid: 0.3 + 0.4 / (1 + 1/1600)
    assert at["value"] == pytest.approx(0.3 + 0.4 / (1 + 1 / 1600), abs=1e-6)
    # Half of the gain is reached at Cmid; 0.9 lies above A.
    assert [r["compute"] for r in found["reach"]] == [pytest.approx(2000.0, rel=1e-4), None]
    assert found["verdict"]["state"] == "identified"
    assert found["verdict"]["reasons"]


def test_the_published_run_from_its_first_half():
    done = rlcast("forecast", str(SCALERL), "--max-compute", "50000", "--at", "100000", "--json")
    [found] = json.loads(done.stdout)["forecasts"]
    assert found["parameters"]["A"]["value"] == pytest.approx(0.645, abs=0.02)
    assert (
        rlcast("forecast", str(SCALERL), "--max-compute", "50000", "--at", "100000", "--json").stdout
        == done.stdout
    )


def test_words_come_first_in_the_table():
    done = rlcast("forecast", str(SCALERL), "--max-compute", "10000")
    assert done.returncode == 0
    assert done.stdout.index("A is not identified yet") < done.stdout.index("90% interval")


def test_one_run_of_a_file_can_be_chosen():
    qwen = str(CURVES / "qwen2.5_base_grpo_flops.csv")
    done = rlcast("forecast", qwen, "--run", "Qwen2.5-7B-base", "--json")
    assert [f["run"] for f in json.loads(done.stdout)["forecasts"]] == ["Qwen2.5-7B-base"]
    wrong = rlcast("forecast", qwen, "--run", "Qwen3")
    assert wrong.returncode == 2
    assert "Qwen2.5-7B-base" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run,compute,compute_unit\na,1,gpu_hours\n", "no pass_rate column"),
        ("gpu_hours,pass_rate\n1,0.1\n2,nan\n3,0.2\n4,0.3\n5,0.3\n", "line 3: pass_rate is 'nan'"),
        ("gpu_hours,pass_rate\n1,10\n2,20\n3,30\n4,40\n", "--percent"),
        ("gpu_hours,pass_rate\n1,0.1\n2,0.2\n3,0.3\n", "at least 4"),
        ("run,compute,compute_unit,pass_rate\na,1,gpu_hours,0.1\na,2,flops,0.2\n", "gpu_hours and in flops"),
        ("run,compute,compute_unit,pass_rate\na,1,gpu_hours,0.1\nb,2,flops,0.2\n", "one unit at a time"),
        ("gpu_hours,pass_rate\n1,0.1\n2,1.7e308\n", "outside 0 to 1"),
    ],
)
def test_bad_files_get_one_line_and_exit_code_2(tmp_path, text, words):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = rlcast("forecast", str(path))
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["forecast", "no-such-file.csv"], "no such file"),
        (["forecast", str(SCALERL), "--law", "cubic"], "law 'cubic' is not known"),
        (["forecast", str(SCALERL), "--level", "90"], "level"),
        (["forecast", str(SCALERL), "--at", "0"], "at must be"),
        (["forecast", str(SCALERL), "--min-compute", "5", "--max-compute", "4"], "max_compute"),
        (["forecast", str(SCALERL), "--frobnicate"], "No such option"),
        (["forecast"], "Missing argument"),
        (["gate", "--candidate", str(SCALERL), "--baseline", "1.5"], "--baseline is 1.5"),
        (["gate", "--candidate", str(SCALERL), "--baseline", "0.6", "--margin", "2"], "--margin"),
        (["train", "no-such-recipe.yaml"], "cannot read"),
        (["submit", "no-such-recipe.yaml"], "cannot read"),
    ],
)
def test_wrong_usage_gets_one_line_and_exit_code_2(arguments, words):
    done = rlcast(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_exit_codes_of_the_gate(sigmoid_file):
    good, bad = str(sigmoid_file("good", a=0.7)), str(sigmoid_file("bad", a=0.5))
    early = str(sigmoid_file("early", a=0.7, cmid=30_000.0, end=9_000.0))
    expected = {(good, bad): 0, (good, "0.6"): 0, (bad, good): 1, (bad, "0.7"): 1, (early, good): 3}
    for (candidate, baseline), code in expected.items():
        done = rlcast("gate", "--candidate", candidate, "--baseline", baseline, "--json")
        word = {0: "pass", 1: "fail", 3: "inconclusive"}[code]
        assert (done.returncode, json.loads(done.stdout)["verdict"]) == (code, word)
        said = rlcast("gate", "--candidate", candidate, "--baseline", baseline)
        assert (said.returncode, said.stdout.split()[0]) == (code, word.upper())


@pytest.mark.parametrize(
    "arguments",
    [
        ["gate", "--candidate", "run-a", "--baseline", "run-b"],
        ["forecast", "run-a"],
        ["jobs"],
        ["import", str(SCALERL)],
    ],
)
def test_a_service_that_is_not_there_is_exit_code_4(arguments):
    done = rlcast(*arguments)
    assert done.returncode == 4
    assert "rlcast up" in done.stderr
    assert done.stderr.count("\n") == 1


def test_recipes_are_refused_with_the_field_and_the_remedy(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: r\nstepz: 10\n")
    done = rlcast("train", str(recipe))
    assert done.returncode == 2
    assert "stepz" in done.stderr
    assert "`steps`" in done.stderr
    recipe.write_text("name: r\n")
    done = rlcast("train", str(recipe), "--set", "loss.kind=ppo")
    assert done.returncode == 2
    assert "loss: kind 'ppo' is not known; use one of `cispo`" in done.stderr
    done = rlcast("train", str(recipe), "--set", "length.penalty=4")
    assert done.returncode == 2
    assert "length: say which one with `kind`" in done.stderr


def test_every_command_explains_itself():
    for command in ("forecast", "gate", "import", "submit", "jobs", "cancel", "train", "up", "demo"):
        done = rlcast(command, "--help")
        assert done.returncode == 0
        assert "Usage: rlcast" in done.stdout


def test_a_preset_becomes_a_recipe_file_that_is_valid(tmp_path):
    assert {"scalerl", "grpo-deepseek", "loo-dapo"} <= set(rlcast("recipe", "presets").stdout.split())
    shown = rlcast("recipe", "show", "scalerl", "--tiny")
    path = tmp_path / "mine.yaml"
    path.write_text(shown.stdout)
    assert rlcast("recipe", "validate", str(path)).returncode == 0
    assert rlcast("recipe", "diff", str(path), "scalerl", "--tiny").stdout == "no difference\n"
    wrong = rlcast("recipe", "validate", str(path), "--set", "loss.cispo_cap=0.5")
    assert (wrong.returncode, "loss.cispo_cap" in wrong.stderr) == (2, True)
    assert rlcast("recipe", "show", "no-such-preset").returncode == 2


def test_diff_names_the_ingredient():
    differing = rlcast("recipe", "diff", "scalerl", "loo-fp32").stdout.splitlines()
    assert "precision.fp32_head: True → False" in differing
    assert len(differing) == 2  # and the name
