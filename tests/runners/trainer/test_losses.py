"""Losses and their gradients against numbers worked out by hand, in float64."""

from __future__ import annotations

import math

import pytest
import torch

from rlcast.recipe_parts import Cispo, Dapo, Grpo, Gspo, Reinforce
from runners.trainer.losses import token_losses

pytestmark = pytest.mark.torch

# Four completions of one token each.
ADVANTAGE = torch.tensor([1.0, -0.5, 2.0, -1.0], dtype=torch.float64)
LOGPROB = torch.tensor([[-0.7], [-1.2], [-0.4], [-2.1]], dtype=torch.float64)
RATIO = torch.tensor([[1.0], [3.0], [9.0], [0.4]], dtype=torch.float64)
OLD_LOGPROB = LOGPROB - RATIO.log()
ALL = torch.ones(4, 1, dtype=torch.bool)


def losses_and_gradient(loss: object, mask: torch.Tensor = ALL) -> tuple[list[float], list[float]]:
    logprob = LOGPROB.clone().requires_grad_()
    values = token_losses(loss, logprob, OLD_LOGPROB, ADVANTAGE, mask)  # type: ignore[arg-type]
    values.mean().backward()
    assert logprob.grad is not None
    return values.flatten().tolist(), logprob.grad.flatten().tolist()


def test_cispo_with_cap_5() -> None:
    values, gradient = losses_and_gradient(Cispo(cispo_cap=5.0))
    assert values == pytest.approx([0.7, -1.8, 4.0, -0.84])
    assert gradient == pytest.approx([-0.25, 0.375, -2.5, 0.1])


@pytest.mark.parametrize(("cap", "total"), [(4.0, 1.26), (5.0, 2.06), (6.0, 2.86)])
def test_cispo_cap_is_the_cap_and_not_one_plus_it(cap: float, total: float) -> None:
    assert sum(losses_and_gradient(Cispo(cispo_cap=cap))[0]) == pytest.approx(total)


def test_cispo_band() -> None:
    assert sum(losses_and_gradient(Cispo(cispo_cap=1.28, floor=0.8))[0]) == pytest.approx(-0.724)


def test_reinforce_ignores_the_ratio() -> None:
    values, gradient = losses_and_gradient(Reinforce(kind="reinforce"))
    assert values == pytest.approx([0.7, -0.6, 0.8, -2.1])
    assert gradient == pytest.approx([-0.25, 0.125, -0.5, 0.25])


def test_dapo_takes_the_pessimistic_side() -> None:
    # r A = [1, -1.5, 18, -.4]; clipped r is [1, 1.26, 1.26, .8], times A [1, -.63, 2.52, -.8].
    values, gradient = losses_and_gradient(Dapo(kind="dapo", clip_low=0.2, clip_high=0.26))
    assert values == pytest.approx([-1.0, 1.5, -2.52, 0.8])
    # Gradient r A / n where the unclipped side is the minimum, 0 where the bound holds.
    assert gradient == pytest.approx([-0.25, 0.375, 0.0, 0.0])


def test_grpo_has_one_bound_for_both_sides() -> None:
    values, _ = losses_and_gradient(Grpo(kind="grpo", clip=0.2))
    assert values == pytest.approx([-1.0, 1.5, -2.4, 0.8])


def test_gspo_uses_the_length_normalised_ratio_of_the_sequence() -> None:
    log_ratio = torch.tensor([[0.2, -0.1, 0.3, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]])  # the last token is padding
    loss = Gspo(kind="gspo", clip_low=0.5, clip_high=0.5)
    values = token_losses(loss, log_ratio, torch.zeros_like(log_ratio), ADVANTAGE[:1], mask)
    ratio = math.exp((0.2 - 0.1 + 0.3) / 3)
    assert ratio == pytest.approx(1.1426, abs=1e-4)
    assert values.tolist() == [pytest.approx([-ratio, -ratio, -ratio, 0.0])]
    tight = Gspo(kind="gspo", clip_low=3e-3, clip_high=5e-3)
    clipped = token_losses(tight, log_ratio, torch.zeros_like(log_ratio), ADVANTAGE[:1], mask)
    assert clipped[0, 0].item() == pytest.approx(-1.005)


@pytest.mark.parametrize(
    "loss",
    [Cispo(), Dapo(kind="dapo"), Grpo(kind="grpo"), Gspo(kind="gspo"), Reinforce(kind="reinforce")],
    ids=lambda loss: loss.kind,
)
def test_what_is_masked_changes_nothing_even_when_it_is_not_finite(loss: object) -> None:
    mask = torch.tensor([[True, False], [True, False]])
    advantage = torch.tensor([1.0, -1.0], dtype=torch.float64)
    results = []
    for junk in (-1.0, -math.inf, 40.0):
        logprob = torch.tensor([[-0.5, junk], [-0.9, junk]], dtype=torch.float64, requires_grad=True)
        old = torch.tensor([[-0.6, 0.0], [-0.8, 0.0]], dtype=torch.float64)
        values = token_losses(loss, logprob, old, advantage, mask)  # type: ignore[arg-type]
        values.sum().backward()
        assert logprob.grad is not None
        results.append((values.tolist(), logprob.grad.tolist()))
    assert results[0] == results[1] == results[2]
    assert [row[1] for row in results[0][0]] == [0.0, 0.0]
