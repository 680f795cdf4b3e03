"""Verdicts as sentences: what is known, how sure it is, and what would tell more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlcast.figure_style import number_text, unit_label

ForecastDict = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """`label` and `tone` make the badge, `sentence` says it, `reasons` and `remedy` say why and what next."""

    state: str
    label: str
    tone: str
    sentence: str
    reasons: tuple[str, ...] = ()
    remedy: str | None = None


_BADGES = {
    "identified": ("A identified", "good"),
    "lower_bound_only": ("lower bound only", "warn"),
    "not_identified": ("not identified", "bad"),
}


def verdict_of(forecast: ForecastDict) -> Verdict:
    """The forecast's verdict in words. A forecast that could not be made says what is missing."""
    if forecast.get("error"):
        return Verdict("no_forecast", "no forecast yet", "", _sentence(str(forecast["error"]), forecast))
    verdict = forecast["verdict"]
    state = str(verdict["state"])
    label, tone = _BADGES[state]
    sentences = {
        "identified": _identified,
        "lower_bound_only": _lower_bound,
        "not_identified": _not_identified,
    }
    return Verdict(
        state,
        label,
        tone,
        sentences[state](forecast),
        tuple(_sentence(str(reason), forecast) for reason in verdict.get("reasons") or ()),
        _sentence(str(verdict["remedy"]), forecast) if verdict.get("remedy") else None,
    )


def _identified(forecast: ForecastDict) -> str:
    a = forecast["parameters"]["A"]
    return f"The asymptote A is {a['value']:.3f}{_between(a, forecast['level'])}."


def _lower_bound(forecast: ForecastDict) -> str:
    low = forecast["parameters"]["A"]["low"]
    bound = f"at least {low:.3f}" if low is not None else "above what was measured"
    return f"The asymptote A is {bound}; how much higher, these points do not tell."


def _not_identified(forecast: ForecastDict) -> str:
    return "The asymptote A is not identified yet: the curve has not bent enough to tell it."


def _between(interval: Mapping[str, float | None], level: float) -> str:
    low, high = interval.get("low"), interval.get("high")
    if low is None or high is None:
        return ""
    return f" ({level:.0%} interval {low:.3f} to {high:.3f})"


def _sentence(text: str, forecast: ForecastDict) -> str:
    """A message of `fitting` or the service as a sentence, with the unit as people write it."""
    unit = str(forecast["unit"])
    text = text.replace(unit, unit_label(unit)) if "_" in unit else text
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def headline(forecasts: Sequence[ForecastDict]) -> str | None:
    """Which curve leads at the budget, and whether the intervals let one say so.

    None when fewer than two curves have a value there. Intervals that overlap do not prove equality, so
    the sentence says "cannot be told apart", not "are equal".
    """
    ranked = sorted(
        ((f["at"][0], str(f["run"])) for f in forecasts if f.get("at")),
        key=lambda pair: -float(pair[0]["value"]),
    )
    if len(ranked) < 2:
        return None
    (first, first_name), (second, second_name) = ranked[:2]
    unit = unit_label(str(forecasts[0]["unit"]))
    place = f"At {number_text(first['compute'])} {unit}"
    lead = f"{first_name} is forecast at {first['value']:.3f}, {second_name} at {second['value']:.3f}"
    lows = (first.get("low"), second.get("high"))
    if None in lows:
        return f"{place}, {lead}; without intervals for both, the lead is not shown to be real."
    if float(first["low"]) > float(second["high"]):
        return f"{place}, {first_name} leads: {lead}, and their intervals do not overlap."
    return f"{place}, the leaders cannot be told apart: {lead}, and their intervals overlap."


def figure_summary(forecasts: Sequence[ForecastDict]) -> str:
    """The chart in a sentence, for those who do not see it."""
    if not forecasts:
        return "No curves chosen."
    unit = unit_label(str(forecasts[0]["unit"]))
    curves = "1 curve" if len(forecasts) == 1 else f"{len(forecasts)} curves"
    text = f"Held-out pass rate against compute in {unit}, logarithmic, {curves}."
    for forecast in forecasts[:6]:
        points = forecast["points"]["pass_rate"]
        if points:
            text += f" {forecast['run']}: {len(points)} points from {min(points):.3f} to {max(points):.3f}."
    return text
