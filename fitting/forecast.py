"""The forecast of one curve: fit, bands, scores, targets and verdict in one object."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fitting.bootstrap import bootstrap
from fitting.curve import Bools, Curve, Floats
from fitting.laws import LAWS, Law
from fitting.laws.base import LN_BEFORE_RL
from fitting.laws.last_value import LastValue
from fitting.laws.sigmoid import SHAPES
from fitting.mixture import Ensemble, Mixture
from fitting.noise import PRIOR_SD, evaluation_variance, step_sd
from fitting.options import AUTO, PAPER, ForecastOptions
from fitting.paper import fit_paper, paper_window
from fitting.parts import Part, draw_part, series_of
from fitting.point import PointFit, fit_point
from fitting.posterior import Series
from fitting.stacking import PRIOR, weights
from fitting.verdict import Facts, Verdict, biggest_drop, fall_from_best, judge
from fitting.windows import Cut, cuts_of, log_compute, unsettled, window_of

#: Part of `inputs_sha256`: changes whenever the same points and options give other numbers.
VERSION = "2"


@dataclass(frozen=True, eq=False)
class Forecast:
    """A curve at chosen compute, with intervals and a verdict.

    `to_dict()` is the public form. `ensemble` holds the replicates; `run_sd` is the spread between repeats of a
    recipe that is in them (0 for the forecast of one run), `measured_runs` from how many runs it was measured;
    `evaluation_sd` the part of the noise that evaluating alone explains, where counts are known; `cuts` how the
    fit moves with the window's start.
    """

    name: str
    curve: Curve
    used: Bools
    options: ForecastOptions
    ensemble: Ensemble
    verdict: Verdict
    noise: dict[str, float]
    cuts: tuple[Cut, ...] = ()
    run_sd: float = 0.0
    measured_runs: int = 0
    evaluation_sd: float | None = None
    details: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    inputs_sha256: str = ""
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def asymptote(self) -> Floats | None:
        """Replicates of A, shape [m]; None of laws that have none."""
        draws = self.ensemble.outer_draws().get("A")
        return None if draws is None else np.resize(draws, self.ensemble.size)

    def to_dict(self) -> dict[str, Any]:
        """The forecast as JSON-ready data: finite numbers or None, the same bytes for the same input."""
        if not self._cache:
            from fitting.report import as_dict

            self._cache.update(as_dict(self))
        return json.loads(json.dumps(self._cache))


def forecast(curve: Curve, options: ForecastOptions | None = None) -> Forecast:
    """Forecasts one run. Raises `FitError` when the window holds fewer than 4 different compute values."""
    options = options or ForecastOptions()
    asked = options
    notes: tuple[str, ...] = ()
    if options.law == PAPER:
        options, notes = paper_window(curve, options)
    used = window_of(curve, options)
    evaluation = evaluation_variance(curve, used)
    series = _series(curve, used, evaluation)
    evaluation_sd = None if evaluation is None else float(np.sqrt(evaluation.mean()))
    mixture = fit_mixture(curve, series, options, evaluation_sd)
    cuts = tuple(cuts_of(curve, used))
    facts = facts_of(curve.unit, curve.compute[used], curve.pass_rate[used], mixture, cuts)
    details = None
    if options.details:
        from fitting.profile import details_of

        details = details_of(series, mixture.lead, options.level)
    return Forecast(
        name=curve.name,
        curve=curve,
        used=used,
        options=asked,
        ensemble=mixture,
        verdict=judge(facts),
        noise=_noise(mixture),
        cuts=cuts,
        evaluation_sd=evaluation_sd,
        details=details,
        notes=tuple(notes),
        inputs_sha256=inputs_hash([curve], asked),
    )


def inputs_hash(curves: list[Curve], options: ForecastOptions) -> str:
    """SHA-256 over the exact points, the options and the version of this code."""
    content: list[Any] = [VERSION, options.key()]
    for curve in curves:
        extra = [
            None if c is None else c.tolist() for c in (curve.n_prompts, curve.n_samples, curve.score_sd)
        ]
        content.append([curve.unit, curve.compute.tolist(), curve.pass_rate.tolist(), *extra])
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _series(curve: Curve, used: Bools, evaluation: Floats | None) -> Series:
    """The window's points. Where the evaluation noise of each is known, points that were evaluated with more
    prompts or samples count more; what training adds is taken as `PRIOR_SD` for that."""
    spread = np.ones(int(used.sum()))
    if evaluation is not None:
        variance = PRIOR_SD**2 + evaluation
        spread = np.sqrt(variance / variance.mean())
    return Series(log_compute(curve.compute[used]), curve.pass_rate[used], spread)


def fit_mixture(
    curve: Curve, series: Series, options: ForecastOptions, evaluation_sd: float | None
) -> Mixture:
    """Fits the laws that the options ask for, and weighs them."""
    names = list(PRIOR) if options.law == AUTO else [options.law]
    parts = [_part(name, curve, series, options, evaluation_sd, salt) for salt, name in enumerate(names)]
    if options.law == AUTO:
        likelihoods = {part.law.name: _likelihood(part, series) for part in parts}
        weight = weights(series, likelihoods, options.seed)
    else:
        weight = {part.law.name: 1.0 for part in parts}
    kept = [part for part in parts if weight[part.law.name] > 0]
    rng = np.random.default_rng([options.seed, 99])
    return Mixture.of(kept, [weight[part.law.name] for part in kept], options.replicates, rng)


def _likelihood(part: Part, series: Series) -> float | None:
    """The part's ln likelihood, for as many points as every law can use: some cannot use those at zero compute."""
    found, seen = part.draws.ln_likelihood, int((series.ln_c > LN_BEFORE_RL).sum())
    return found * seen / len(series) if found is not None and part.law.at_zero else found


def _part(
    name: str, curve: Curve, series: Series, options: ForecastOptions, evaluation_sd: float | None, salt: int
) -> Part:
    law = LAWS["sigmoid" if name == PAPER else name]
    own, ln_unit = series_of(law, series)
    point = (
        fit_paper(own, ln_unit, r0=float(curve.pass_rate[0]))
        if name == PAPER
        else _point(law, own, options.loss)
    )
    rng = np.random.default_rng([options.seed, salt])
    robust = pulled_in(series, law, point)
    shapes = SHAPES if options.law == AUTO else None
    part = draw_part(law, robust, point.theta, shapes, options.replicates, rng)
    if options.bands == "bootstrap" and not isinstance(law, LastValue):
        draws = bootstrap(law, series_of(law, robust)[0], point.theta, evaluation_sd, options.replicates, rng)
        part = replace(part, draws=draws)
    return replace(part, at_bound=point.at_bound)


def _point(law: Law, own: Series, loss: str) -> PointFit:
    if isinstance(law, LastValue):
        theta = own.rate[-1:]
        return PointFit(theta, own.rate - theta, (), np.ones(len(own)))
    return fit_point(law, own, loss)


def pulled_in(series: Series, law: Law, point: PointFit) -> Series:
    """The series with points that a robust fit weighed down moved towards the curve by as much: Huber's
    pseudo-values, whose least-squares fit is the robust one (Huber 1981, Robust Statistics, section 7.8)."""
    usable = (series.ln_c > LN_BEFORE_RL) | law.at_zero
    rate = series.rate.copy()
    rate[usable] -= (1.0 - point.influence) * point.residuals
    return Series(series.ln_c, rate, series.spread)


def _noise(mixture: Mixture) -> dict[str, float]:
    lead = mixture.lead.draws
    return {"sd": float(np.median(lead.sd)), "autocorrelation": float(np.mean(lead.rho))}


def facts_of(unit: str, compute: Floats, rate: Floats, mixture: Mixture, cuts: tuple[Cut, ...]) -> Facts:
    """Measures what the verdict needs."""
    outer, draws = mixture.outer(), mixture.outer_draws()
    has_a = "A" in outer
    a_draws = draws["A"] if has_a else np.zeros(1)
    low, high = np.quantile(a_draws, [0.05, 0.95])
    last = float(compute[-1])
    now = float(mixture.point(np.log(compute[-1:]))[0])
    fall, fell_after = fall_from_best(rate, compute)
    drop, dropped_at = biggest_drop(rate, compute)
    few = max(len(rate) // 10, 1)
    return Facts(
        unit=unit,
        law=mixture.lead.law.title,
        has_a=has_a,
        weight_with_a=mixture.weight_with_a,
        last=last,
        cmid=outer.get("Cmid"),
        half_width=float(high - low) / 2,
        at_one=float(np.mean(a_draws > 1.0 - 0.02 * (1.0 - min(now, 1.0)))),
        fall=fall,
        fell_after=fell_after,
        drop=drop,
        dropped_at=dropped_at,
        gain=float(rate[-few:].mean() - rate[:few].mean()),
        noise_sd=float(np.median(mixture.noise_sd())),
        step_sd=step_sd(rate),
        b_at_bound="ln_B" in mixture.lead.at_bound,
        a_range=unsettled(cuts),
    )
