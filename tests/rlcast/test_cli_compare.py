"""`rlcast compare` and `rlcast backtest` as a user runs them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


def rlcast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlcast", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Two runs of the sigmoid: `high` to 0.70, `low` to 0.60."""
    path = tmp_path_factory.mktemp("curves") / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "compute", "compute_unit", "pass_rate"])
        for seed, (name, a) in enumerate((("high", 0.70), ("low", 0.60))):
            rng = np.random.default_rng(seed)
            for c in np.geomspace(200, 40_000, 40):
                rate = 0.3 + (a - 0.3) / (1 + (2_000 / c) ** 1.8) + rng.normal(0, 0.003)
                writer.writerow([name, f"{c:.1f}", "gpu_hours", f"{rate:.5f}"])
    return path


def test_compare_says_first_what_the_change_does(runs):
    done = rlcast("compare", f"{runs}:high", f"{runs}:low")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("ceiling mover")
    assert "high against low" in first
    [line] = [line for line in rest if "difference of A" in line]
    assert 0.08 < float(line.split("difference of A ")[1].split()[0]) < 0.12


def test_compare_as_json(runs):
    found = json.loads(rlcast("compare", f"{runs}:high", f"{runs}:low", "--reach", "0.55", "--json").stdout)
    assert found["difference"]["value"] == pytest.approx(0.10, abs=0.02)
    assert found["reach"]["pass_rate"] == 0.55
    assert found["winners"][-1]["winner"] == "candidate"


def test_compare_names_what_is_missing(runs):
    done = rlcast("compare", f"{runs}:high", f"{runs}:other")
    assert done.returncode == 2
    assert "no run 'other'" in done.stderr
    done = rlcast("compare", f"{runs}:high", f"{runs}:low", "--different-prompts")
    assert done.returncode == 2
    assert "number of prompts" in done.stderr


def test_backtest_prints_every_law_and_draws(runs, tmp_path):
    figure = tmp_path / "backtest.html"
    done = rlcast("backtest", str(runs), "--seen", "0.5", "--figure", str(figure))
    assert done.returncode == 0, done.stderr
    for law in ("auto", "sigmoid", "saturating-power", "power", "log-linear", "exponential", "last-value"):
        assert law in done.stdout
    assert "50% of the evaluations seen" in done.stdout
    assert "testing on high" in done.stderr
    assert figure.read_text().count("mean absolute error") >= 1


def test_backtest_as_json_lists_what_was_skipped(runs):
    done = rlcast("backtest", str(runs), "--seen", "0.05", "--seen", "0.7", "--law", "sigmoid", "--json")
    found = json.loads(done.stdout)
    assert {row["method"] for row in found["summary"]} == {"sigmoid"}
    assert {(row["run"], row["seen"]) for row in found["skipped"]} == {("high", 0.05), ("low", 0.05)}
    assert all(abs(score["error"]) < 0.1 for score in found["scores"])


def test_backtest_refuses_an_unknown_law(runs):
    done = rlcast("backtest", str(runs), "--law", "cubic")
    assert done.returncode == 2
    assert "law 'cubic' is not known" in done.stderr


def test_a_forecast_shows_laws_value_and_details(runs):
    done = rlcast("forecast", str(runs), "--run", "high", "--details", "--price", "2", "--worth", "500")
    assert done.returncode == 0, done.stderr
    assert "laws by how they have forecast this run: sigmoid" in done.stdout
    assert "10% more compute gains" in done.stdout
    assert "profile likelihood" in done.stdout
    assert "at this price" in done.stdout
    done = rlcast("forecast", str(runs), "--run", "high", "--min-compute", "soon")
    assert done.returncode == 2
    assert "--min-compute" in done.stderr
