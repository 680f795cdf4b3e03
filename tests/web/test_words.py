"""Verdicts as the reader gets them."""

from __future__ import annotations

from typing import Any

from web.words import headline, verdict_of


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
