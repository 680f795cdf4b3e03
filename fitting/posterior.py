"""What the points say of a law's parameters: the posterior under correlated noise, by exact integration on grids.

Every law here is linear in its coefficients given psi (one or two exponents and midpoints). For each psi of
a grid and each setting of the noise (`fitting.correlation`), coefficients and noise variance are integrated in
closed form (the normal-inverse-gamma linear model: Gelman et al., Bayesian Data Analysis, 3rd ed., chapter 14);
the grid zooms in on where the posterior is. Nothing is linearised, there is no optimiser to fail, and an
asymptote that the points do not bound keeps its long tail. Treating the autocorrelation as unknown is what makes
short, correlated runs wide enough: a plain bootstrap takes the little that a fit leaves over for the noise.

Priors: coefficients within their bounds by Jeffreys' rule given psi, psi as the law says, the noise's settings
as `correlation.SETTINGS`, and its sd as `PRIOR_DOF` residuals of `PRIOR_SD`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from fitting.correlation import SETTINGS, transform, variances
from fitting.curve import Floats
from fitting.laws.base import Law

#: What is assumed of the noise sd beforehand, as so many residuals of that size: about that of published runs.
PRIOR_DOF, PRIOR_SD = 2.0, 0.005

_GRID = (24, 16)  # nodes of the first and second psi
_LINE = 60  # nodes where psi has one dimension
_ZOOMS = 6
#: Nodes with a posterior below exp(-this) of the best do not matter.
_NEGLIGIBLE = 12.0
_OVERSAMPLING = 2


@dataclass(frozen=True)
class Series:
    """Points in order of compute: ln C [n], pass rate [n], and the relative noise sd of each [n]."""

    ln_c: Floats
    rate: Floats
    spread: Floats

    def __len__(self) -> int:
        return len(self.ln_c)


@dataclass(frozen=True)
class Draws:
    """Replicates: inner parameters [m, k], and of each the noise sd [m] and autocorrelation [m].

    `ln_likelihood` is the best that the law does at the points, up to a constant of the points: to compare laws
    that were fitted to the same series. None where no likelihood was computed.
    """

    theta: Floats
    sd: Floats
    rho: Floats
    ln_likelihood: float | None = None


@dataclass(frozen=True)
class _Solved:
    """The linear model at J nodes and K settings of the noise: ln of the posterior weight of each [J, K], and ln of
    the best likelihood among all, up to a constant of the points."""

    ln_weight: Floats
    ln_likelihood: float


def posterior(
    law: Law, series: Series, anchor: Floats, shapes: Floats | None, replicates: int, rng: np.random.Generator
) -> Draws:
    """Draws from the posterior.

    `anchor` is the point fit's psi [q], which every grid is sure to hold. A law may have a shape: a last psi
    that it holds fixed, and that is spread evenly over `shapes` [s] where they are given.
    """
    low, high = law.box(series.ln_c)
    held = low == high
    fixed = None if not held.any() else (low[held] if shapes is None else shapes)
    free = int((~held).sum())
    psi, cell = _nodes(low[:free], high[:free], free, fixed)
    solved = _weigh(law, series, psi)
    for _ in range(_ZOOMS):
        if not free:
            break
        kept = solved.ln_weight.max(-1) > solved.ln_weight.max() - _NEGLIGIBLE
        inside = np.concatenate([psi[kept][:, :free], np.clip(anchor[None, :free], low[:free], high[:free])])
        new_low = np.maximum(inside.min(0) - cell, low[:free])
        new_high = np.minimum(inside.max(0) + cell, high[:free])
        shrunk = (new_high - new_low) / np.maximum(cell * (_sizes(free) - 1), 1e-12)
        if (shrunk > 0.7).all():
            break
        psi, cell = _nodes(new_low, new_high, free, fixed)
        solved = _weigh(law, series, psi)
    return _draw(law, series, psi, cell, solved, replicates, rng)


def _sizes(free: int) -> Floats:
    return np.array(_GRID if free == 2 else (_LINE,) * free, dtype=np.float64)


def _nodes(low: Floats, high: Floats, free: int, fixed: Floats | None) -> tuple[Floats, Floats]:
    """The grid's nodes [J, q] and its spacing [free]."""
    if not free:
        grid = np.empty((1, 0))
        cell = np.empty(0)
    else:
        sizes = _sizes(free)
        axes = [np.linspace(a, b, int(s)) for a, b, s in zip(low, high, sizes, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, free)
        cell = (high - low) / (sizes - 1)
    if fixed is None:
        return grid, cell
    column = np.tile(fixed, len(grid))[:, None]
    return np.concatenate([np.repeat(grid, len(fixed), axis=0), column], axis=1), cell


def _weigh(law: Law, series: Series, psi: Floats) -> _Solved:
    """Solves the linear model at every psi [J, q] under every setting of the noise."""
    basis = law.basis(psi, series.ln_c) / series.spread
    target = (series.rate - law.offset) / series.spread
    p, n = basis.shape[-2:]
    pairs = [(i, j) for i in range(p + 1) for j in range(i, p + 1)]
    full = np.concatenate([basis, np.broadcast_to(target, (len(basis), 1, n))], axis=1) @ transform(n)
    precision = (1.0 / variances(n)).T
    product = np.empty((len(psi), precision.shape[1], p + 1, p + 1))
    for i, j in pairs:
        product[..., i, j] = product[..., j, i] = (full[:, i] * full[:, j]) @ precision
    covariance = _inverse(product[..., :p, :p])
    coef = (covariance @ product[..., :p, p:])[..., 0]
    left = product[..., p, p] - (coef * product[..., :p, p]).sum(-1)
    sse = np.maximum(left, 0.0) + PRIOR_DOF * PRIOR_SD**2
    dof = n - p + PRIOR_DOF
    # The prior of the coefficients given psi is Jeffreys': it cancels the determinant of their covariance. A flat
    # one gives psi at which A is badly known, far beyond the points, the more volume the worse it is known.
    ln_det = np.log(variances(n)).sum(-1)
    ln_likelihood = float((-0.5 * (n + PRIOR_DOF) * np.log(sse) - 0.5 * ln_det).max())
    ln_weight = -0.5 * dof * np.log(sse) - 0.5 * ln_det
    ln_weight = ln_weight + np.log(SETTINGS.probability) + law.ln_prior(psi)[:, None]
    ln_weight = ln_weight + _ln_mass(law, coef[..., -1], np.sqrt(covariance[..., -1, -1] * sse / dof))
    return _Solved(ln_weight, ln_likelihood)


def _ln_mass(law: Law, centre: Floats, sd: Floats) -> Floats:
    """ln of the share of the last coefficient that lies within its bounds (normal approximation)."""
    low, high = law.coef_low[-1], law.coef_high[-1]
    mass = ndtr((high - centre) / sd) - ndtr((low - centre) / sd)
    return np.asarray(np.log(np.maximum(mass, 1e-300)))


def _draw(
    law: Law,
    series: Series,
    psi: Floats,
    cell: Floats,
    solved: _Solved,
    replicates: int,
    rng: np.random.Generator,
) -> Draws:
    """Nodes by their weight, psi within the cell, then variance and coefficients; what the law does not allow is
    drawn again."""
    flat = solved.ln_weight.ravel()
    weight = np.exp(flat - logsumexp(flat))
    found: list[tuple[Floats, Floats, Floats]] = []
    count = 0
    for _ in range(8):
        rows = rng.choice(len(weight), size=_OVERSAMPLING * replicates, p=weight)
        theta, sd, rho, allowed = _draw_rows(law, series, psi, cell, rows, rng)
        found.append((theta[allowed], sd[allowed], rho[allowed]))
        count += int(allowed.sum())
        if count >= replicates:
            break
    theta, sd, rho = (np.concatenate([part[i] for part in found]) for i in range(3))
    if not len(theta):  # no draw is the law's: a curve that it cannot follow
        theta, sd, rho, _ = _draw_rows(law, series, psi, cell, rows, rng)
    chosen = np.arange(replicates) % len(theta)
    return Draws(theta[chosen], sd[chosen], rho[chosen], solved.ln_likelihood)


def _draw_rows(
    law: Law,
    series: Series,
    psi: Floats,
    cell: Floats,
    rows: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats, np.ndarray]:
    node, setting = np.divmod(rows, len(SETTINGS.rho))
    here = psi[node].copy()
    here[:, : len(cell)] += (rng.random((len(rows), len(cell))) - 0.5) * cell
    low, high = law.box(series.ln_c)
    free = len(cell)
    here[:, :free] = np.clip(here[:, :free], low[:free], high[:free])
    coef, covariance, sse = _solve_at(law, series, here, setting)
    dof = len(series) - coef.shape[-1] + PRIOR_DOF
    sd = np.sqrt(sse / rng.chisquare(dof, len(rows)))
    last_sd = sd * np.sqrt(covariance[:, -1, -1])
    edges = (
        ndtr((law.coef_low[-1] - coef[:, -1]) / last_sd),
        ndtr((law.coef_high[-1] - coef[:, -1]) / last_sd),
    )
    level = edges[0] + (edges[1] - edges[0]) * rng.random(len(rows))
    drawn = coef[:, -1] + last_sd * ndtri(np.clip(level, 1e-15, 1.0 - 1e-15))
    values = np.clip(drawn, law.coef_low[-1], law.coef_high[-1])[:, None]
    if coef.shape[-1] == 2:
        slope = covariance[:, 0, 1] / covariance[:, 1, 1]
        left = np.sqrt(np.maximum(covariance[:, 0, 0] - slope * covariance[:, 0, 1], 0.0))
        other = coef[:, 0] + slope * (values[:, 0] - coef[:, 1]) + sd * left * rng.standard_normal(len(rows))
        values = np.stack([other, values[:, 0]], axis=-1)
    allowed = law.allowed(values) & (values >= law.coef_low).all(-1) & (values <= law.coef_high).all(-1)
    return law.join(values, here), sd, SETTINGS.rho[setting], allowed & (edges[1] > edges[0])


def _solve_at(law: Law, series: Series, psi: Floats, setting: np.ndarray) -> tuple[Floats, Floats, Floats]:
    """The linear model at psi [m, q], each with its own setting [m] of the noise: coefficients [m, p], their unit
    covariance [m, p, p] and the residual sum of squares with the prior's part [m]."""
    n = len(series)
    scale = 1.0 / np.sqrt(variances(n))[setting]
    basis = (law.basis(psi, series.ln_c) / series.spread) @ transform(n) * scale[:, None]
    target = ((series.rate - law.offset) / series.spread) @ transform(n) * scale
    covariance = _inverse(basis @ np.swapaxes(basis, -1, -2))
    coef = (covariance @ (basis @ target[..., None]))[..., 0]
    left = target - (coef[:, None, :] @ basis)[:, 0]
    return coef, covariance, (left**2).sum(-1) + PRIOR_DOF * PRIOR_SD**2


def _inverse(normal: Floats) -> Floats:
    """Inverse of symmetric [..., p, p] with p at most 2, kept away from singular."""
    ridge = 1e-9
    if normal.shape[-1] == 1:
        return np.asarray(1.0 / (normal * (1.0 + ridge) + ridge))
    a, b, d = (
        normal[..., 0, 0] * (1 + ridge) + ridge,
        normal[..., 0, 1],
        normal[..., 1, 1] * (1 + ridge) + ridge,
    )
    det = np.maximum(a * d - b * b, 1e-300)
    return np.asarray(np.stack([np.stack([d, -b], -1), np.stack([-b, a], -1)], -2) / det[..., None, None])
