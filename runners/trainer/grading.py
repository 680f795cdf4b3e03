"""Gives every completion its reward, in a process of its own.

A grader may hang or crash on what a model writes (a symbolic comparison of two monstrous formulas, say), and
the usual guard, an alarm signal, works in a main thread only. So graders run in a child that is killed when
it takes too long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Protocol

from runners.trainer.children import Child, ChildDied, TimedOut
from runners.trainer.types import Group, Prompt

log = logging.getLogger(__name__)

Answer = tuple[Prompt, str]
GradeAnswer = Callable[[Prompt, str], float]


class Grader(Protocol):
    def grade(self, groups: Iterable[Group]) -> None:
        """Sets `reward` of every completion in place: 1 or 0, or None when the grader failed.

        A grader that fails says nothing about the answer, and a 0 would teach the model that it was wrong. An
        answer that the length limit cut is not finished, whatever its beginning looks like: 0.
        """
        ...


class GraderProcess:
    """Grades in a child process, which answers one by one: so the answer that hangs or kills it is known.

    That one gets no reward, and the rest goes to a new child.
    """

    def __init__(self, grade_answer: GradeAnswer, timeout_s: float) -> None:
        self._grade_answer = grade_answer  # is pickled once for every child
        self._timeout_s = timeout_s
        self._child: Child | None = None

    def grade(self, groups: Iterable[Group]) -> None:
        samples, answers = [], []
        for group in groups:
            for sample in group.samples:
                if sample.finished:
                    samples.append(sample)
                    answers.append((group.prompt, sample.text))
                else:
                    sample.reward = 0.0
        for sample, reward in zip(samples, self._rewards(answers), strict=True):
            sample.reward = reward

    def _rewards(self, answers: list[Answer]) -> list[float | None]:
        rewards: list[float | None] = []
        while len(rewards) < len(answers):
            child = self._running_child()
            try:
                child.send(answers[len(rewards) :])
                while len(rewards) < len(answers):
                    rewards.append(child.receive(self._timeout_s, "reward"))
            except (TimedOut, ChildDied) as failure:
                log.warning("no reward for prompt %d: %s", answers[len(rewards)][0].id, failure)
                rewards.append(None)
                self.close()
        return rewards

    def _running_child(self) -> Child:
        if self._child is None:
            self._child = Child("grader", _serve, self._grade_answer)
            self._child.receive(timeout_s=60.0, waiting_for="start")
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def _serve(connection: Connection, grade_answer: GradeAnswer) -> None:
    connection.send("ready")
    while True:
        for prompt, text in connection.recv():
            connection.send(_reward(grade_answer, prompt, text))


def _reward(grade_answer: GradeAnswer, prompt: Prompt, text: str) -> float | None:
    try:
        return grade_answer(prompt, text)
    except Exception:
        log.exception("the grader failed on prompt %d", prompt.id)
        return None
