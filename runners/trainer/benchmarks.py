"""A recipe's task and the benchmarks beside it, each with its grader."""

from __future__ import annotations

from dataclasses import dataclass

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from rlcast.recipe_parts import Arithmetic
from rlcast.recipe_tasks import JsonLines, ReasoningGym, TaskSpec
from runners.trainer.grading import GraderProcess
from runners.trainer.listed import json_lines_task, python_task, reasoning_gym_task
from runners.trainer.tasks import ArithmeticTask, Task
from runners.trainer.types import Prompt


def make_task(spec: TaskSpec) -> Task:
    """Raises `InputError` when the host lacks what the task needs."""
    if isinstance(spec, Arithmetic):
        return ArithmeticTask(spec)
    if isinstance(spec, ReasoningGym):
        return reasoning_gym_task(spec)
    if isinstance(spec, JsonLines):
        return json_lines_task(spec)
    return python_task(spec)


@dataclass(frozen=True)
class Exam:
    """What is evaluated under a name."""

    name: str
    task: Task
    grader: GraderProcess


class Exams:
    """The recipe's own benchmark, which comes first, and those beside it.

    No benchmark may ask what is trained on.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.all = [_exam(recipe.benchmark, recipe.task)]
        self.all += [_exam(benchmark.name, benchmark.task) for benchmark in recipe.also_evaluate]
        self._refuse_overlap()

    @property
    def own(self) -> Exam:
        return self.all[0]

    @property
    def alphabet(self) -> str:
        """The characters of all tasks, those of the task that is trained on first."""
        return "".join(dict.fromkeys(c for exam in self.all for c in exam.task.alphabet))

    @property
    def fingerprint(self) -> str:
        return " ".join(exam.task.fingerprint for exam in self.all)

    def longest_prompt(self) -> int:
        """In characters, over everything that is asked."""
        asked = [p for exam in self.all for p in exam.task.heldout_prompts()] + _trained(self.own.task)
        return max(len(prompt.text) for prompt in asked)

    def close(self) -> None:
        for exam in self.all:
            exam.grader.close()

    def _refuse_overlap(self) -> None:
        if len(self.all) == 1:
            return
        trained = {prompt.text for prompt in _trained(self.own.task)}
        for exam in self.all[1:]:
            shared = sum(prompt.text in trained for prompt in exam.task.heldout_prompts())
            if shared:
                raise InputError(
                    f"also_evaluate: {shared} questions of {exam.name!r} are trained on; choose another "
                    "seed, other options, or fewer prompts"
                )


def _exam(name: str, spec: TaskSpec) -> Exam:
    task = make_task(spec)
    return Exam(name, task, GraderProcess(task.grade, spec.grader_timeout_s))


def _trained(task: Task) -> list[Prompt]:
    return [task.train_prompt(position, seed=0) for position in range(task.train_size)]
