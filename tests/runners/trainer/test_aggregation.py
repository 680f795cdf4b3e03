"""Which unit counts the same, and that splitting or reordering a batch changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlcast.recipe import Recipe
from runners.trainer.aggregation import sample_weights
from runners.trainer.batch import make_batch
from runners.trainer.learner import Learner, effective_sample_size
from runners.trainer.model import build_model, parameters_of
from runners.trainer.types import Group, Prompt, Sample

pytestmark = pytest.mark.torch

VALUES = torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]], dtype=torch.float64)
MASK = torch.tensor([[1, 1], [1, 0], [1, 1], [1, 1]], dtype=torch.bool)
PROMPTS = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(("how", "expected"), [("prompt", 4.25), ("token", 32 / 7), ("sample", 4.375)])
def test_worked_example(how: str, expected: float) -> None:
    weights = sample_weights(MASK.sum(dim=1), PROMPTS, how)
    total = ((VALUES * MASK).sum(dim=1) * weights).sum()
    assert total.item() == pytest.approx(expected)


@pytest.mark.parametrize("how", ["prompt", "token", "sample"])
def test_nothing_to_train_on_weighs_zero(how: str) -> None:
    weights = sample_weights(torch.zeros(4, dtype=torch.long), PROMPTS, how)
    assert weights.tolist() == [0.0] * 4


def test_prompts_without_tokens_do_not_count() -> None:
    weights = sample_weights(torch.tensor([2, 2, 0, 0]), PROMPTS, "prompt")
    assert weights.tolist() == [0.25, 0.25, 0.0, 0.0]


def groups() -> list[Group]:
    """Six prompts with completions of uneven lengths and mixed rewards."""
    made = []
    for i in range(6):
        samples = [
            Sample(
                [3 + (i + j + t) % 9 for t in range(1 + (i * j) % 4)],
                [],
                [],
                "",
                True,
                float((i + j) % 3 == 0),
            )
            for j in range(4)
        ]
        for sample in samples:
            sample.logprobs = [-1.0 - 0.1 * t for t in range(len(sample.token_ids))]
        made.append(Group(Prompt(i, "", ""), [1, 3 + i % 5, 4][: 2 + i % 2], samples))
    return made


def weights_after_update(recipe: Recipe, order: list[int], rows: int) -> torch.Tensor:
    model = build_model(recipe.model, recipe.precision, 15, 16).double()
    learner = Learner(model, recipe, pad_id=0, max_rows=rows)
    learner.update([groups()[i] for i in order], step=0)
    return torch.cat([p.flatten() for p in parameters_of(model).values()])


@pytest.mark.parametrize("how", ["prompt", "token", "sample"])
def test_update_is_the_same_in_one_piece_in_pieces_and_in_another_order(
    how: str, small_recipe: Callable[..., Recipe]
) -> None:
    recipe = small_recipe(aggregation=how, optimizer={"warmup_steps": 0, "eps": 1e-3})
    whole = weights_after_update(recipe, [0, 1, 2, 3, 4, 5], rows=100)
    pieces = weights_after_update(recipe, [0, 1, 2, 3, 4, 5], rows=3)
    reordered = weights_after_update(recipe, [4, 2, 0, 5, 3, 1], rows=5)
    torch.testing.assert_close(pieces, whole, atol=1e-7, rtol=0)
    torch.testing.assert_close(reordered, whole, atol=1e-7, rtol=0)
    untrained = build_model(recipe.model, recipe.precision, 15, 16).double()
    assert not torch.equal(whole, torch.cat([p.flatten() for p in parameters_of(untrained).values()]))


def test_zero_variance_prompts_are_dropped_before_the_spread_is_taken(
    small_recipe: Callable[..., Recipe],
) -> None:
    def group(i: int, *rewards: float) -> Group:
        return Group(Prompt(i, "", ""), [1], [Sample([3], [-1.0], [0], "", True, r) for r in rewards])

    mixed = [group(0, 1, 1, 1, 0), group(1, 0, 0, 0, 1), group(2, 1, 1, 1, 1)]
    kept = make_batch(mixed, small_recipe(), pad_id=0)
    assert len(kept) == 8
    assert kept.advantages.abs().max().item() == pytest.approx(1.7321, abs=1e-4)
    unfiltered = make_batch(mixed, small_recipe(filters={"zero_variance": False}), pad_id=0)
    assert len(unfiltered) == 12
    assert unfiltered.advantages.abs().max().item() == pytest.approx(1.7321 * 1.2247, abs=1e-3)


def test_effective_sample_size() -> None:
    assert effective_sample_size(torch.tensor([1.0, 1.0, 2.0, 4.0])) == pytest.approx(0.7273, abs=1e-4)
    assert effective_sample_size(torch.ones(7)) == pytest.approx(1.0)


def test_a_completion_without_reward_is_left_out_and_not_counted_as_wrong(
    small_recipe: Callable[..., Recipe],
) -> None:
    samples = [Sample([3], [-1.0], [0], "", True, r) for r in (1.0, None, 0.0)]
    batch = make_batch([Group(Prompt(0, "", ""), [1], samples)], small_recipe(), pad_id=0)
    assert batch.advantages.tolist() == [1.0, -1.0]


def test_a_batch_without_signal_leaves_the_weights_alone(small_recipe: Callable[..., Recipe]) -> None:
    recipe = small_recipe()
    model = build_model(recipe.model, recipe.precision, 15, 16)
    before = {name: value.clone() for name, value in parameters_of(model).items()}
    solved = Group(Prompt(0, "", ""), [1], [Sample([3], [-1.0], [0], "", True, 1.0) for _ in range(4)])
    stats = Learner(model, recipe, pad_id=0).update([solved], step=0)
    assert stats.rows == 0
    assert all(torch.equal(before[name], value) for name, value in parameters_of(model).items())
