"""What may be said about the asymptote A, from measurable facts, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.curve import Floats
from fitting.units import unit_label

IDENTIFIED, LOWER_BOUND, NOT_IDENTIFIED = "identified", "lower_bound_only", "not_identified"

#: C_last / Cmid from which the points show the bend well enough for A to be quoted.
BENT = 2.0
#: Half-width of A's 90% interval (whatever level was asked for) up to which A counts as identified, and
#: beyond which nothing is known of it.
QUOTABLE = 0.03
USELESS = 0.15
#: A fall of the level below its best from which the run counts as collapsed.
COLLAPSE = 0.04
#: Share of replicates with A at its limit 1 from which that is worth saying, and from which nothing bounds A.
SOME_AT_ONE, OFTEN_AT_ONE = 0.01, 0.05
#: How far A may move with the window's start.
SENSITIVE = 0.03


@dataclass(frozen=True)
class Facts:
    """What the verdict is made from.

    `law`: what the leading law is called; `has_a`: some law has an asymptote, and `weight_with_a` the weight of
    those that do; `last` and `cmid` in the curve's unit (None of a law without a midpoint); `half_width` of A's
    90% interval; `at_one`: share of replicates with A at its limit 1; `fall`: how far the curve has come down
    from its best level, and `fell_after` the compute of that level; `drop`: the largest lasting step down from
    one point to the next, and `dropped_at` its compute; `gain`: from the first tenth of the points to the last;
    `noise_sd` around the law and `step_sd` from point to point; `b_at_bound`: the exponent lies on its bound;
    `a_range`: the least and the largest A as the window's start moves.
    """

    unit: str
    law: str
    has_a: bool
    weight_with_a: float
    last: float
    cmid: float | None
    half_width: float
    at_one: float
    fall: float
    fell_after: float
    drop: float
    dropped_at: float
    gain: float
    noise_sd: float
    step_sd: float
    b_at_bound: bool
    a_range: tuple[float, float]


@dataclass(frozen=True)
class Verdict:
    state: str
    reasons: tuple[str, ...]
    remedy: str | None

    def to_dict(self) -> dict[str, object]:
        return {"state": self.state, "reasons": list(self.reasons), "remedy": self.remedy}


def judge(facts: Facts) -> Verdict:
    """The verdict: the worst state that any fact calls for, with every reason."""
    unit = unit_label(facts.unit)
    broken = _broken(facts, unit)
    if broken:
        return broken
    if not facts.has_a:
        reason = f"{facts.law} has no asymptote: it says where the score goes, not where it ends"
        return Verdict(NOT_IDENTIFIED, (reason,), "for A, use law auto or sigmoid")
    worse = [*_not_bent(facts), *_not_narrow(facts), *_not_settled(facts, unit)]
    if not worse:
        bend = f"the last point is at {facts.last / facts.cmid:.2g} x Cmid, and " if facts.cmid else ""
        reason = f"{bend}A is known to ±{max(facts.half_width, 0.001):.3f}"
        return Verdict(IDENTIFIED, (reason,), None)
    states = [state for state, _ in worse]
    state = NOT_IDENTIFIED if NOT_IDENTIFIED in states else LOWER_BOUND
    return Verdict(state, tuple(reason for _, reason in worse), _remedy(facts, unit))


def _not_bent(facts: Facts) -> list[tuple[str, str]]:
    """Whether the points show the bend."""
    if facts.cmid is None:
        return []
    ratio = facts.last / facts.cmid
    if ratio < 1.0:
        return [(NOT_IDENTIFIED, f"the curve has not bent yet: the last point is at {ratio:.2g} x Cmid")]
    if ratio < BENT:
        return [(LOWER_BOUND, f"the curve has only begun to bend: the last point is at {ratio:.2g} x Cmid")]
    return []


def _not_narrow(facts: Facts) -> list[tuple[str, str]]:
    """Whether A's interval is narrow enough to quote, and bounded from above."""
    if facts.half_width <= QUOTABLE:
        return []
    found = []
    if facts.at_one > SOME_AT_ONE:
        state = NOT_IDENTIFIED if facts.at_one > OFTEN_AT_ONE else LOWER_BOUND
        found.append((state, f"{facts.at_one:.0%} of the replicates have A at its limit 1"))
    state = NOT_IDENTIFIED if facts.half_width > USELESS else LOWER_BOUND
    return [*found, (state, f"A is known to ±{facts.half_width:.2f} only")]


def _not_settled(facts: Facts, unit: str) -> list[tuple[str, str]]:
    """Whether law, exponent, window and the run itself are settled."""
    found = []
    if facts.weight_with_a < 0.5:
        share = 1.0 - facts.weight_with_a
        found.append(
            (LOWER_BOUND, f"laws without an asymptote forecast this run as well: {share:.0%} of the weight")
        )
    if facts.b_at_bound:
        found.append(
            (LOWER_BOUND, "the exponent B lies at its bound: the points do not show the bend's shape")
        )
    low, high = facts.a_range
    if high - low > SENSITIVE:
        found.append((LOWER_BOUND, f"A moves between {low:.2f} and {high:.2f} with the start of the window"))
    if facts.drop > max(COLLAPSE, 6.0 * facts.step_sd):
        where = f"at {amount(facts.dropped_at)} {unit}"
        found.append(
            (LOWER_BOUND, f"the score drops by {facts.drop:.2f} {where}: a restart or another setup?")
        )
    return found


def _broken(facts: Facts, unit: str) -> Verdict | None:
    """The verdict for curves that the law does not describe: collapsed, or flat."""
    if facts.fall > max(COLLAPSE, 4.0 * facts.step_sd):
        return Verdict(
            NOT_IDENTIFIED,
            (
                f"the score has fallen by {facts.fall:.2f} since {amount(facts.fell_after)} {unit}: "
                "no law here describes a collapse or a restart",
            ),
            f"find out why it fell; to forecast what came before, use max_compute {facts.fell_after:.6g}",
        )
    if abs(facts.gain) < 2.0 * facts.noise_sd:
        reason = f"no growth is seen beyond the noise: {facts.gain:+.3f} gained, noise {facts.noise_sd:.3f}"
        return Verdict(NOT_IDENTIFIED, (reason,), "train on until the score moves, or check reward and data")
    return None


def _remedy(facts: Facts, unit: str) -> str:
    """How far to go: to twice Cmid for a quotable A, farther when the noise asks for it."""
    target = BENT * facts.cmid if facts.cmid else 0.0
    if facts.last >= 0.95 * target:
        # Beyond the bend the interval shrinks about with the compute seen.
        target = facts.last * min(max(facts.half_width / QUOTABLE, 1.5), 4.0)
    return f"about {amount(target - facts.last)} more {unit} would show more of the bend"


def amount(value: float) -> str:
    """A compute value with two significant digits, as 2,300 or 1.2e+19."""
    if value >= 1e7 or value < 1e-4:
        return f"{value:.1e}"
    digits = 1 - int(np.floor(np.log10(value)))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if digits <= 0 else f"{rounded:.{digits}f}"


def fall_from_best(rate: Floats, compute: Floats) -> tuple[float, float]:
    """How far the last level lies below the best earlier one, and the compute of that best level.

    Levels are means over a fifth of the points (3 at least): single lucky evaluations do not count.
    """
    span = max(3, len(rate) // 5)
    if len(rate) < 2 * span:
        return 0.0, float(compute[-1])
    kernel = np.ones(span) / span
    levels = np.convolve(rate, kernel, mode="valid")
    best = int(levels.argmax())
    return float(levels[best] - levels[-1]), float(compute[min(best + span - 1, len(compute) - 1)])


def biggest_drop(rate: Floats, compute: Floats) -> tuple[float, float]:
    """The largest step down from one point to the next that lasts, and the compute after it.

    A step lasts when the mean of two points after it lies below the mean of two points before it by as much:
    single unlucky evaluations do not count.
    """
    if len(rate) < 4:
        return 0.0, float(compute[-1])
    before, after = (rate[:-3] + rate[1:-2]) / 2.0, (rate[2:-1] + rate[3:]) / 2.0
    lasting = np.minimum(before - after, rate[1:-2] - rate[2:-1])
    at = int(lasting.argmax())
    return max(float(lasting[at]), 0.0), float(compute[at + 2])
