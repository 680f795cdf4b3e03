"""Length control: thinking that is ended by force, and the penalty that is its alternative."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch

from rlcast.recipe import Recipe
from rlcast.recipe_parts import Arithmetic, Interruption, LengthPenalty
from runners.trainer.batch import make_batch
from runners.trainer.generator import TorchGenerator
from runners.trainer.learner import Learner
from runners.trainer.length import length_penalty, training_rewards
from runners.trainer.model import build_model, parameters_of
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group, Prompt, Sample

pytestmark = pytest.mark.torch

TASK = ArithmeticTask(Arithmetic(digits=2, thinking=True, train_prompts=100, heldout_prompts=10))
TOKENIZER = CharTokenizer(TASK.alphabet)
RULE = Interruption(kind="interruption", min_tokens=3, max_tokens=6, phrase="=>")


@pytest.fixture(scope="module")
def samples(small_recipe: Callable[..., Recipe]) -> list[Sample]:
    """Completions of an untrained model, which thinks on at random."""
    recipe = small_recipe()
    model = build_model(recipe.model, recipe.precision, TOKENIZER.vocab_size, 32)
    generator = TorchGenerator(model, TOKENIZER, 14, newest_version=lambda: 0, interruption=RULE)
    prompts = [TASK.train_prompt(i, 0) for i in range(4)]
    return [s for group in generator.generate(prompts, 100, seed=0) for s in group.samples]


def test_the_phrase_is_inserted_once_in_the_range_and_only_into_open_thinking(samples: list[Sample]) -> None:
    interrupted = [sample for sample in samples if sample.is_interrupted]
    assert len(interrupted) > 50
    starts = set()
    for sample in interrupted:
        start = sample.injected.index(True)
        starts.add(start)
        assert sample.injected == [start <= i < start + 2 for i in range(len(sample.token_ids))]
        assert sample.text[start : start + 2] == "=>"
        assert ">" not in sample.text[:start]
        assert sample.logprobs[start : start + 2] == [0.0, 0.0]
    assert starts == {3, 4, 5, 6}


def test_thinking_that_ended_by_itself_is_left_alone(samples: list[Sample]) -> None:
    natural = [sample for sample in samples if ">" in sample.text[:3]]
    assert natural
    assert not any(sample.is_interrupted for sample in natural)
    assert all(sample.chosen == [True] * len(sample.token_ids) for sample in natural)


def test_inserted_tokens_are_not_trained_on(
    samples: list[Sample], small_recipe: Callable[..., Recipe]
) -> None:
    recipe = small_recipe()
    picked = [dataclasses.replace(sample, reward=float(i % 2)) for i, sample in enumerate(samples[:16])]
    batch = make_batch([Group(TASK.train_prompt(0, 0), [1, 5], picked)], recipe, pad_id=0)
    assert int(batch.mask.sum()) == sum(sum(sample.chosen) for sample in picked)

    def trained(logprob_of_inserted: float) -> torch.Tensor:
        changed = [
            dataclasses.replace(
                sample,
                logprobs=[
                    logprob if chosen else logprob_of_inserted
                    for logprob, chosen in zip(sample.logprobs, sample.chosen, strict=True)
                ],
            )
            for sample in picked
        ]
        model = build_model(recipe.model, recipe.precision, TOKENIZER.vocab_size, 32)
        learner = Learner(model, recipe, pad_id=0)
        learner.update([Group(TASK.train_prompt(0, 0), [1, 5], changed)], step=0)
        return torch.cat([value.flatten() for value in parameters_of(model).values()])

    assert torch.equal(trained(0.0), trained(-50.0))


@pytest.mark.parametrize(("length", "penalty"), [(5, 0.0), (12, 0.0), (13, -0.5), (14, -1.0), (90, -1.0)])
def test_penalty(length: int, penalty: float) -> None:
    rule = LengthPenalty(kind="penalty", max_tokens=14, cache_tokens=2)
    assert length_penalty(length, rule) == pytest.approx(penalty)


def test_only_right_answers_are_penalised_and_the_verdict_stays() -> None:
    rule = LengthPenalty(kind="penalty", max_tokens=4, cache_tokens=2)
    made = [
        Sample([3] * n, [-1.0] * n, [0] * n, "", True, r)
        for n, r in ((2, 1.0), (3, 1.0), (3, 0.0), (3, None))
    ]
    group = Group(Prompt(0, "", ""), [1], made)
    assert training_rewards(group, rule) == [1.0, 0.5, 0.0, None]
    assert group.rewards() == [1.0, 1.0, 0.0]


def test_worked_answers_add_column_by_column_and_are_right() -> None:
    task = ArithmeticTask(Arithmetic(digits=3, thinking=True))
    assert task.worked_answer(Prompt(0, "345+678=", "3201")) == "5+8=13,4+7+1=12,3+6+1=10>3201"
    for i in range(50):
        prompt = task.warm_start_prompt(i)
        assert task.grade(prompt, task.worked_answer(prompt)) == 1.0


@pytest.mark.parametrize("completion", ["3201", "1=2", ">", "5>3201>3201", ">3201,", "5+8=13>1023"])
def test_what_is_not_an_answer_after_the_thinking_is_wrong(completion: str) -> None:
    task = ArithmeticTask(Arithmetic(digits=3, thinking=True))
    assert task.grade(Prompt(0, "345+678=", "3201"), completion) == 0.0
    assert task.grade(Prompt(0, "345+678=", "3201"), "anything>3201") == 1.0
