"""A grader that hangs, crashes or raises costs one reward, not the run and not the truth."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.trainer.grading import GraderProcess
from runners.trainer.types import Group, Prompt, Sample

pytestmark = pytest.mark.torch

BAD_GRADER = """
import os, time

def grade(prompt, text):
    if text == "hang":
        time.sleep(60)
    if text == "crash":
        os._exit(11)
    if text == "raise":
        raise ValueError("no idea")
    return float(text == prompt.answer)
"""


@pytest.fixture
def grader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GraderProcess]:
    (tmp_path / "a_bad_grader.py").write_text(BAD_GRADER)
    monkeypatch.syspath_prepend(str(tmp_path))
    process = GraderProcess(importlib.import_module("a_bad_grader").grade, timeout_s=1.0)
    yield process
    process.close()


def group_of(*texts: str, finished: Callable[[str], bool] = lambda text: True) -> Group:
    samples = [Sample([3], [-1.0], [0], text, finished(text)) for text in texts]
    return Group(Prompt(0, "", answer="right"), [1], samples)


def test_failures_have_no_reward_and_the_others_keep_theirs(grader: GraderProcess) -> None:
    groups = [group_of("right", "hang", "wrong"), group_of("crash", "right", "raise", "right")]
    grader.grade(groups)
    assert [sample.reward for sample in groups[0].samples] == [1.0, None, 0.0]
    assert [sample.reward for sample in groups[1].samples] == [None, 1.0, None, 1.0]
    assert groups[1].rewards() == [1.0, 1.0]


def test_a_right_beginning_that_the_length_limit_cut_is_wrong(grader: GraderProcess) -> None:
    group = group_of("right", finished=lambda text: False)
    grader.grade([group])
    assert group.samples[0].reward == 0.0


def test_nothing_to_grade_needs_no_process(grader: GraderProcess) -> None:
    grader.grade([])
