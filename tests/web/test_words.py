"""Verdicts as the reader gets them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from web.words import headline, last_crossing, reach_text, verdict_of


def a_forecast(
    name: str, value: float, low: float | None, high: float | None, **extra: Any
) -> dict[str, Any]:
    return {
        "run": name,
        "unit": "gpu_hours",
        "level": 0.9,
        "parameters": {"A": {"value": 0.645, "low": 0.63, "high": 0.66}},
        "at": [{"compute": 1e5, "value": value, "low": low, "high": high}],
        "verdict": {"state": "identified", "reasons": [], "remedy": None},
        "grid": {"compute": [1e3, 1e5], "value": [value, value]},
        **extra,
    }


def test_the_leader_is_named_only_when_intervals_are_apart() -> None:
    better, worse = a_forecast("better", 0.64, 0.63, 0.65), a_forecast("worse", 0.60, 0.59, 0.61)
    text = headline([worse, better])
    assert text is not None
    assert text.startswith("At 100,000 GPU-hours, better leads")
    near = a_forecast("near", 0.635, 0.62, 0.65)
    text = headline([better, near])
    assert text is not None
    assert "cannot be told apart" in text


def test_without_intervals_no_lead_is_claimed() -> None:
    text = headline([a_forecast("a", 0.7, None, None), a_forecast("b", 0.5, 0.49, 0.51)])
    assert text is not None
    assert "leads" not in text
    assert "not shown to be real" in text


def test_a_law_without_an_asymptote_claims_none() -> None:
    for state in ("identified", "lower_bound_only", "not_identified"):
        forecast = a_forecast("a", 0.6, None, None, parameters={}, verdict={"state": state, "reasons": []})
        assert "0." not in verdict_of(forecast).sentence


def test_a_curve_without_a_value_at_the_budget_is_not_ranked() -> None:
    blank = a_forecast("blank", 0.6, None, None)
    blank["at"][0]["value"] = None
    assert headline([blank, a_forecast("a", 0.7, 0.6, 0.8)]) is None


def test_one_curve_has_no_leader() -> None:
    assert headline([a_forecast("a", 0.6, 0.5, 0.7)]) is None


def test_each_state_says_only_what_is_known() -> None:
    assert "0.645 (90% interval 0.630 to 0.660)" in verdict_of(a_forecast("a", 0.6, None, None)).sentence
    bound = a_forecast("a", 0.6, None, None, verdict={"state": "lower_bound_only", "reasons": ["r"]})
    assert "at least 0.630" in verdict_of(bound).sentence
    assert "0.645" not in verdict_of(bound).sentence
    unknown = a_forecast(
        "a",
        0.6,
        None,
        None,
        verdict={"state": "not_identified", "reasons": ["x"], "remedy": "about 2,300 more gpu_hours"},
    )
    verdict = verdict_of(unknown)
    assert "not identified" in verdict.sentence
    assert "0.6" not in verdict.sentence
    assert verdict.remedy == "About 2,300 more GPU-hours."


def test_no_forecast_says_what_is_missing() -> None:
    verdict = verdict_of({"run": "a", "unit": "steps", "error": "points: 2 usable points, 4 are needed"})
    assert verdict.label == "no forecast yet"
    assert "4 are needed" in verdict.sentence


def line(slope: float, middle: float, n: int, to: float = 1e6) -> dict[str, Any]:
    """A law that rises by `slope` a decade and is 0.5 at `middle`."""
    compute = [10 ** (2 + (math.log10(to) - 2) * i / (n - 1)) for i in range(n)]
    value = [0.5 + slope * (math.log10(c) - math.log10(middle)) for c in compute]
    return {"grid": {"compute": compute, "value": value}}


def test_laws_cross_where_they_have_the_same_value() -> None:
    # 0.10 (x - 4) = 0.02 (x - 3) has its solution at x = 4.25.
    assert last_crossing(line(0.10, 1e4, 40), line(0.02, 1e3, 33)) == pytest.approx(10**4.25, rel=1e-3)


def test_no_crossing_is_claimed_where_one_law_was_not_computed() -> None:
    assert last_crossing(line(0.10, 1e4, 40), line(0.02, 1e3, 33, to=1e4)) is None
    assert last_crossing(line(0.1, 1e4, 40), line(0.1, 1e3, 40)) is None


def test_the_lead_says_where_it_changes() -> None:
    steep, flat = a_forecast("steep", 0.60, 0.59, 0.61), a_forecast("flat", 0.50, 0.49, 0.51)
    steep["grid"], flat["grid"] = line(0.10, 1e4, 40)["grid"], line(0.02, 1e3, 33)["grid"]
    text = headline([flat, steep])
    assert text is not None
    assert "steep leads" in text
    assert text.endswith("Below about 18,000 GPU-hours, flat is ahead.")


def test_a_target_that_may_never_be_reached_says_so() -> None:
    assert (
        reach_text({"compute": 12_000.0, "low": 11_000.0, "high": 13_500.0}, 0.9)
        == "12,000 (11,000 to 13,500)"
    )
    assert reach_text({"compute": 12_000.0, "low": 11_000.0, "high": None}, 0.9) == "12,000 (11,000 to never)"
    assert reach_text({"compute": None, "low": None, "high": None}, 0.9) == "not reached"
    assert (
        reach_text({"compute": None, "low": 50_000.0, "high": None}, 0.9) == "not reached; 90%: from 50,000"
    )
