"""The arithmetic task: what is asked, what is right, and what is never trained on."""

from __future__ import annotations

import pytest

from rlcast.recipe_parts import Arithmetic
from runners.trainer.tasks import ArithmeticTask

pytestmark = pytest.mark.torch


def test_answers_are_right_and_written_from_the_last_digit() -> None:
    task = ArithmeticTask(Arithmetic(digits=3))
    for position in range(200):
        prompt = task.train_prompt(position, seed=0)
        a, b = prompt.text.rstrip("=").split("+")
        assert len(a) == len(b) == 3
        assert prompt.answer == "".join(reversed(str(int(a) + int(b))))


@pytest.mark.parametrize("wrong", ["", "0", "?", "12", "1234"])
def test_grading(wrong: str) -> None:
    task = ArithmeticTask(Arithmetic(digits=3))
    prompt = task.train_prompt(0, seed=0)
    assert task.grade(prompt, prompt.answer) == 1.0
    for completion in (wrong, prompt.answer + "0", prompt.answer[:-1], "=" + prompt.answer):
        assert task.grade(prompt, completion) == 0.0


def test_heldout_prompts_are_never_trained_on() -> None:
    task = ArithmeticTask(Arithmetic(digits=1, train_prompts=30, heldout_prompts=10))
    heldout = {prompt.text for prompt in task.heldout_prompts()}
    trained = {task.train_prompt(i, seed).text for seed in (0, 1) for i in range(90)}
    supervised = {task.warm_start_prompt(i).text for i in range(3000)}
    assert len(heldout) == 10
    assert len(trained) == 30
    assert not heldout & trained
    assert not heldout & supervised
    assert len(supervised) == 71  # all 81 questions with one digit except the held-out ones


def test_every_epoch_visits_every_prompt_once_in_an_order_of_its_own() -> None:
    task = ArithmeticTask(Arithmetic(digits=1, train_prompts=30, heldout_prompts=10))
    first = [task.train_prompt(i, seed=5).id for i in range(30)]
    second = [task.train_prompt(30 + i, seed=5).id for i in range(30)]
    assert sorted(first) == sorted(second)
    assert first != second
    assert first == [task.train_prompt(i, seed=5).id for i in range(30)]
    assert first != [task.train_prompt(i, seed=6).id for i in range(30)]


def test_the_recipes_seed_does_not_change_the_questions_of_the_evaluation() -> None:
    spec = Arithmetic(digits=3)
    assert ArithmeticTask(spec).heldout_prompts() == ArithmeticTask(spec).heldout_prompts()
    assert (
        ArithmeticTask(spec).heldout_prompts()
        != ArithmeticTask(Arithmetic(digits=3, seed=1)).heldout_prompts()
    )
