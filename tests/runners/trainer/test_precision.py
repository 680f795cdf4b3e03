"""The FP32 head: what it saves, and that no copy of it goes stale."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlcast.recipe import Recipe
from rlcast.recipe_parts import Precision
from runners.trainer.model import build_model, head_logits

pytestmark = pytest.mark.torch


def test_bfloat16_head_loses_what_the_fp32_head_keeps() -> None:
    random = torch.Generator().manual_seed(0)
    hidden = torch.randn(4, 8, 256, generator=random).bfloat16()
    weight = (0.1 * torch.randn(500, 256, generator=random)).bfloat16().float()
    exact = (hidden.double() @ weight.double().T).log_softmax(dim=-1)

    def gap(fp32_head: bool) -> float:
        logits = head_logits(hidden, weight, Precision(compute="bfloat16", fp32_head=fp32_head))
        return (logits.double().log_softmax(dim=-1) - exact).abs().mean().item()

    assert gap(fp32_head=False) > 1e-3
    assert gap(fp32_head=True) < 1e-5


def test_the_head_follows_every_change_of_the_tied_weights(small_recipe: Callable[..., Recipe]) -> None:
    model = build_model(small_recipe().model, Precision(compute="bfloat16"), 15, 16)
    tokens = torch.tensor([[1, 4, 5]])
    before = model(tokens)
    with torch.no_grad():
        model.network.model.embed_tokens.weight[7] += (
            1.0  # token 7 is not in the input: only the head sees it
        )
    after = model(tokens)
    changed = (after - before).abs() > 1e-3
    assert changed[..., 7].all()
    assert not changed[..., :7].any()


def test_the_body_really_computes_in_the_precision_asked_for(small_recipe: Callable[..., Recipe]) -> None:
    recipe, tokens = small_recipe(), torch.tensor([[1, 4, 5, 6]])
    full = build_model(recipe.model, recipe.precision, 15, 16)(tokens)
    reduced = build_model(recipe.model, Precision(compute="bfloat16"), 15, 16)(tokens)
    assert full.dtype == reduced.dtype == torch.float32
    gap = (full - reduced).abs().mean().item()
    assert 1e-4 < gap < 0.1
