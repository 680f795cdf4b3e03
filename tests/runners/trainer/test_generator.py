"""Sampling: log-probabilities of the policy itself, whatever the batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlcast.recipe import Recipe
from runners.trainer.generator import TorchGenerator
from runners.trainer.learner import token_logprobs
from runners.trainer.model import build_model
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Prompt

pytestmark = pytest.mark.torch

TOKENIZER = CharTokenizer("0123456789+=")
PROMPTS = [Prompt(0, "1+2=", ""), Prompt(1, "12+34=", ""), Prompt(2, "3+4=", "")]


@pytest.fixture
def generator(small_recipe: Callable[..., Recipe]) -> TorchGenerator:
    model = build_model(small_recipe().model, small_recipe().precision, TOKENIZER.vocab_size, 16)
    return TorchGenerator(model, TOKENIZER, max_new_tokens=5, newest_version=lambda: 7, max_batch=8)


def test_groups_come_back_in_order_and_within_the_limit(generator: TorchGenerator) -> None:
    groups = generator.generate(PROMPTS, 4, seed=1)
    assert [group.prompt.id for group in groups] == [0, 1, 2]
    for sample in (sample for group in groups for sample in group.samples):
        assert 1 <= len(sample.token_ids) <= 5
        assert len(sample.logprobs) == len(sample.versions) == len(sample.token_ids)
        assert set(sample.versions) == {7}
        assert sample.finished == (sample.token_ids[-1] == TOKENIZER.eos_id)
        assert TOKENIZER.eos_id not in sample.token_ids[:-1]
    assert all(len(group.samples) == 4 for group in groups)


def test_logprobs_are_those_that_the_trainer_computes(generator: TorchGenerator) -> None:
    for group in generator.generate(PROMPTS, 6, seed=2):
        for sample in group.samples:
            whole = torch.tensor([group.prompt_ids + sample.token_ids])
            expected = token_logprobs(generator._model, whole)[0, len(group.prompt_ids) :]
            torch.testing.assert_close(torch.tensor(sample.logprobs), expected.detach(), atol=1e-5, rtol=0)


def test_same_seed_same_samples(generator: TorchGenerator) -> None:
    assert generator.generate(PROMPTS, 4, seed=3) == generator.generate(PROMPTS, 4, seed=3)
    assert generator.generate(PROMPTS, 4, seed=3) != generator.generate(PROMPTS, 4, seed=4)


def test_samples_follow_the_policy(generator: TorchGenerator) -> None:
    """The first token's frequencies over 4,000 samples against the model's probabilities."""
    group = generator.generate(PROMPTS[:1], 4000, seed=5)[0]
    first = torch.tensor([sample.token_ids[0] for sample in group.samples])
    frequency = torch.bincount(first, minlength=TOKENIZER.vocab_size) / 4000
    with torch.inference_mode():
        logits = generator._model(torch.tensor([group.prompt_ids]))[0, -1]
    # Standard deviation of a frequency is at most .5 / sqrt(4000) = .008.
    torch.testing.assert_close(frequency, logits.softmax(-1), atol=0.035, rtol=0)
