"""Advantages against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch

from runners.trainer.advantages import advantages, centred_rewards

pytestmark = pytest.mark.torch


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


TWO_GROUPS = tensor(1, 1, 1, 0, 0, 0, 0, 1)
TWO_INDEX = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
ONE_GROUP = tensor(1, 0, 0, 0)
ONE_INDEX = torch.zeros(4, dtype=torch.long)


def assert_equal(actual: torch.Tensor, *expected: float) -> None:
    torch.testing.assert_close(actual, tensor(*expected), atol=5e-5, rtol=0)


def test_centred_by_prompt() -> None:
    assert_equal(centred_rewards(TWO_GROUPS, TWO_INDEX), 0.25, 0.25, 0.25, -0.75, -0.25, -0.25, -0.25, 0.75)


def test_batch_scale_divides_by_the_spread_of_centred_rewards() -> None:
    # Their std is .4330; the std of the raw rewards, .5, would give .5 and 1.5.
    s, b = 0.57735, 1.73205
    assert_equal(advantages(TWO_GROUPS, TWO_INDEX, "batch"), s, s, s, -b, -s, -s, -s, b)


def test_prompt_scale() -> None:
    assert_equal(advantages(ONE_GROUP, ONE_INDEX, "prompt"), 1.73205, -0.57735, -0.57735, -0.57735)


def test_prompt_scale_differs_from_batch_scale_on_uneven_prompts() -> None:
    rewards, index = tensor(1, 0, 1, 1, 1, 0), torch.tensor([0, 0, 1, 1, 1, 1])
    # Prompt 0: +-.5 with std .5; prompt 1: .25, .25, .25, -.75 with std .4330; batch std sqrt(1.25 / 6).
    prompt = advantages(rewards, index, "prompt")
    batch = advantages(rewards, index, "batch")
    assert_equal(prompt, 1.0, -1.0, 0.57735, 0.57735, 0.57735, -1.73205)
    assert_equal(batch, 1.09545, -1.09545, 0.54772, 0.54772, 0.54772, -1.64317)


def test_none_only_centres() -> None:
    assert_equal(advantages(ONE_GROUP, ONE_INDEX, "none"), 0.75, -0.25, -0.25, -0.25)


def test_leave_one_out_compares_with_the_others() -> None:
    assert_equal(advantages(ONE_GROUP, ONE_INDEX, "leave-one-out"), 1.0, -1 / 3, -1 / 3, -1 / 3)


@pytest.mark.parametrize("scale", ["batch", "prompt", "none", "leave-one-out"])
def test_no_spread_and_single_samples_give_zero_and_not_nan(scale: str) -> None:
    assert_equal(advantages(tensor(1, 1, 1), torch.tensor([0, 0, 0]), scale), 0, 0, 0)
    assert_equal(advantages(tensor(1, 0), torch.tensor([0, 1]), scale), 0, 0)
    assert advantages(tensor(), torch.tensor([], dtype=torch.long), scale).shape == (0,)
