"""Verdicts as sentences: what is known, how sure it is, and what would tell more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.units import unit_label
from rlcast.figure_style import number_text

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
    a = forecast["parameters"].get("A")
    if not a or a["value"] is None:
        return "The law is settled by these points."  # a law without an asymptote
    return f"The asymptote A is {a['value']:.3f}{_between(a, forecast['level'])}."


def _lower_bound(forecast: ForecastDict) -> str:
    low = (forecast["parameters"].get("A") or {}).get("low")
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


def headline(forecasts: Sequence[ForecastDict], pair: Mapping[str, Any] | None = None) -> str | None:
    """Which curve leads at the budget, whether the intervals let one say so, and where the lead changes.

    Where the two curves were compared by the service (`pair`), the lead changes where that says.

    None when fewer than two curves have a value there. Intervals that overlap do not prove equality, so
    the sentence says "cannot be told apart", not "are equal".
    """
    known = [f for f in forecasts if f.get("at") and f["at"][0]["value"] is not None]
    ranked = sorted(known, key=lambda f: -float(f["at"][0]["value"]))
    if len(ranked) < 2:
        return None
    first, second = ranked[:2]
    crossing = (pair["crossing"] or {}).get("compute") if pair else last_crossing(first, second)
    return f"{_lead(first, second)}{_crossing_sentence(first, second, crossing)}"


def _lead(first: ForecastDict, second: ForecastDict) -> str:
    best, next_best = first["at"][0], second["at"][0]
    place = f"At {number_text(best['compute'])} {unit_label(str(first['unit']))}"
    values = f"{first['run']} is forecast at {best['value']:.3f}, {second['run']} at {next_best['value']:.3f}"
    if best.get("low") is None or next_best.get("high") is None:
        return f"{place}, {values}; without intervals for both, the lead is not shown to be real."
    if float(best["low"]) > float(next_best["high"]):
        return f"{place}, {first['run']} leads: {values}, and their intervals do not overlap."
    return f"{place}, the leaders cannot be told apart: {values}, and their intervals overlap."


def _crossing_sentence(first: ForecastDict, second: ForecastDict, crossing: float | None) -> str:
    if crossing is None:
        return ""
    compute = f"{number_text(float(f'{crossing:.2g}'))} {unit_label(str(first['unit']))}"
    budget = float(first["at"][0]["compute"])
    if crossing > budget:
        return f" Beyond about {compute}, {second['run']} would be ahead."
    return f" Below about {compute}, {second['run']} is ahead."


def last_crossing(a: ForecastDict, b: ForecastDict) -> float | None:
    """The largest compute at which the two laws have the same value, within both grids; None if nowhere.

    Laws are linear in log compute between nodes of their grids.
    """
    grids = [(np.log(f["grid"]["compute"]), np.array(f["grid"]["value"], dtype=float)) for f in (a, b)]
    low, high = max(x[0] for x, _ in grids), min(x[-1] for x, _ in grids)
    place = np.unique(np.concatenate([x for x, _ in grids]))
    place = place[(place >= low) & (place <= high)]
    if len(place) < 2:
        return None
    gap = np.interp(place, *grids[0]) - np.interp(place, *grids[1])
    clear = np.isfinite(gap) & (gap != 0)
    place, gap = place[clear], gap[clear]  # a touch without a change of sign is no crossing
    changes = np.flatnonzero(np.sign(gap[:-1]) != np.sign(gap[1:]))
    if len(changes) == 0:
        return None
    i = changes[-1]
    return float(np.exp(place[i] + (place[i + 1] - place[i]) * gap[i] / (gap[i] - gap[i + 1])))


def reach_text(reach: Mapping[str, float | None], level: float) -> str:
    """The compute that reaches a pass rate, with its interval; its ends may be open."""
    compute, low, high = reach.get("compute"), reach.get("low"), reach.get("high")
    if compute is None:
        # Above the law's asymptote. A finite low end says that the interval does not rule it out.
        return "not reached" if low is None else f"not reached; {level:.0%}: from {number_text(low)}"
    if low is None and high is None:
        return number_text(compute)
    start = number_text(low) if low is not None else "?"
    return f"{number_text(compute)} ({start} to {number_text(high) if high is not None else 'never'})"


def laws_text(forecast: ForecastDict) -> str | None:
    """The laws of a mixture with their weights; None for a single law."""
    laws = [law for law in forecast.get("laws") or () if law["weight"] >= 0.01]
    if len(laws) < 2:
        return None
    shares = ", ".join(f"{law['title']} {law['weight']:.0%}" for law in laws)
    return f"Laws by how well they have forecast this curve so far: {shares}."


def gain_text(forecast: ForecastDict) -> str | None:
    """What the next tenth of the compute gains, and from where that is little; None without a forecast."""
    value = forecast.get("value")
    if not value or value["next_tenth"]["gain"] is None:
        return None
    tenth, least = value["next_tenth"], value["diminishing_means"]["gain_below"]
    text = f"10% more compute gains {tenth['gain']:+.4f} ({tenth['low']:+.4f} to {tenth['high']:+.4f})"
    start = value["diminishing_from"]["compute"]
    if start is None:
        return f"{text}."
    if start <= 1.001 * forecast["grid"]["observed_to"]:
        return f"{text}, less than {least:g} already."
    return (
        f"{text}, less than {least:g} from about {number_text(start)} {unit_label(str(forecast['unit']))} on."
    )


def pair_lines(pair: Mapping[str, Any] | None) -> list[str]:
    """What the first of two curves changes against the second: the label first, then its evidence."""
    if pair is None:
        return []
    first, second = pair["names"]
    label, unit = pair["label"]["name"], unit_label(str(pair["unit"]))
    what = {
        None: f"What {first} changes against {second} is not decided yet",
        "neither": f"{first} changes neither the ceiling nor the efficiency of {second}",
        "both": f"{first} moves both the ceiling and the efficiency of {second}",
    }.get(label, f"{first} is a {label} against {second}")
    lines = [f"{what}.", *(f"{text[:1].upper()}{text[1:]}." for text in pair["label"]["evidence"])]
    if difference := pair["difference"]:
        ends = f"{difference['low']:+.3f} to {difference['high']:+.3f}"
        likely = f"higher with probability {difference['p_higher']:.2f}"
        lines.append(
            f"Difference of A: {difference['value']:+.3f} ({pair['level']:.0%} interval {ends}), {likely}."
        )
    if crossing := pair["crossing"]:
        leader = first if crossing["leads_after"] == "candidate" else second
        where = f"{number_text(crossing['compute'])} {unit}"
        if crossing["low"] is not None and crossing["high"] is not None:
            where += f" ({number_text(crossing['low'])} to {number_text(crossing['high'])})"
        lines.append(f"The lead changes: beyond about {where}, {leader} is ahead.")
    return lines


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
