"""Which prompts are asked, and which are not asked again."""

from __future__ import annotations

import random

import pytest

from rlcast.recipe_parts import Arithmetic, NoPositiveResampling
from runners.trainer.prompts import PassRateTable, PromptStream
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.types import Group, Prompt, Sample

pytestmark = pytest.mark.torch

TASK = ArithmeticTask(Arithmetic(digits=1, train_prompts=30, heldout_prompts=10))


def visit(prompt_id: int, solved: int, samples: int = 16) -> Group:
    made = [Sample([3], [-1.0], [0], "", True, float(i < solved)) for i in range(samples)]
    return Group(Prompt(prompt_id, "", ""), [1], made)


def wrongly_excluded(min_visits: int, runs: int = 2000) -> float:
    """Share of prompts solved with probability 0.8 that are out after `min_visits` visits of 16 samples."""
    draw, excluded = random.Random(1), 0
    for _ in range(runs):
        table = PassRateTable(NoPositiveResampling(pass_rate=0.9, min_visits=min_visits))
        for _ in range(min_visits):
            table.record([visit(0, sum(draw.random() < 0.8 for _ in range(16)))])
        excluded += table.is_excluded(0)
    return excluded / runs


def test_a_running_mean_rarely_drops_a_prompt_that_is_not_yet_solved() -> None:
    # Binomial tails: P(X >= 15 | 16, .8) = .1407 for one visit, P(X >= 58 | 64, .8) = .0195 for four.
    assert wrongly_excluded(1) == pytest.approx(0.1407, abs=0.03)
    assert wrongly_excluded(4) < 0.04


def test_solved_prompts_leave_the_stream_and_the_others_stay_in_order() -> None:
    table = PassRateTable(NoPositiveResampling(pass_rate=0.9, min_visits=1))
    stream = PromptStream(TASK, 0, table)
    first_epoch = [ticket.prompt.id for ticket in stream.take(30)]
    table.record([visit(first_epoch[3], 16), visit(first_epoch[7], 14)])  # 14 of 16 is below 0.9
    second_epoch = [ticket.prompt.id for ticket in stream.take(29)]
    assert sorted(second_epoch) == sorted(set(first_epoch) - {first_epoch[3]})
    assert table.excluded() == 1


def test_without_the_rule_every_prompt_comes_back() -> None:
    table = PassRateTable(None)
    stream = PromptStream(TASK, 0, table)
    table.record([visit(ticket.prompt.id, 16) for ticket in stream.take(30)])
    assert len({ticket.prompt.id for ticket in stream.take(30)}) == 30


def test_completions_without_reward_do_not_count() -> None:
    table = PassRateTable(NoPositiveResampling(pass_rate=0.9, min_visits=1))
    group = visit(0, 16)
    for sample in group.samples:
        sample.reward = None
    table.record([group])
    assert not table.is_excluded(0)


def test_state_goes_on_where_it_stood() -> None:
    rule = NoPositiveResampling(pass_rate=0.9, min_visits=1)
    stream = PromptStream(TASK, 0, PassRateTable(rule))
    stream.table.record([visit(ticket.prompt.id, 16) for ticket in stream.take(5)])
    other = PromptStream(TASK, 0, PassRateTable(rule))
    other.load_state(stream.state())
    assert other.take(40) == stream.take(40)


def test_nothing_left_to_ask_is_an_error_with_a_remedy() -> None:
    stream = PromptStream(TASK, 0, PassRateTable(NoPositiveResampling(min_visits=1)))
    stream.table.record([visit(ticket.prompt.id, 16) for ticket in stream.take(30)])
    with pytest.raises(RuntimeError, match=r"task\.train_prompts"):
        stream.take(1)
