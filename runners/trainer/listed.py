"""Tasks with a list of questions: reasoning-gym, a JSONL file, a Python function."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.recipe_tasks import JsonLines, ListedTask, PythonTask, ReasoningGym
from runners.trainer.grading import GradeAnswer
from runners.trainer.seeding import derived_seed
from runners.trainer.types import Prompt

_SURPLUS = 4  # how many times the asked number of questions a generator may make until enough differ


class ListedPrompts:
    """The questions of a list, of which some are held out.

    A question that occurs twice counts once, so that no held-out one can be among those trained on. Which
    ones are held out follows from the task's seed alone.
    """

    def __init__(self, prompts: Sequence[Prompt], spec: ListedTask, grade: GradeAnswer) -> None:
        different = list({prompt.text: prompt for prompt in reversed(prompts)}.values())[::-1]
        if len(different) <= spec.heldout_prompts:
            raise InputError(
                f"task.heldout_prompts: {spec.heldout_prompts} asked, but there are only {len(different)} "
                "different questions and some must be left for training"
            )
        random.Random(derived_seed("held out", spec.seed)).shuffle(different)
        self._heldout = different[: spec.heldout_prompts]
        self._train = different[spec.heldout_prompts :]
        self._seed = spec.seed
        self.train_size = len(self._train)
        self.grade = grade
        self.alphabet = "".join(sorted({c for p in different for c in p.text + p.answer}))
        content = json.dumps([(p.text, p.answer) for p in different]).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()
        self._order: tuple[tuple[int, int], list[Prompt]] | None = None

    def train_prompt(self, position: int, seed: int) -> Prompt:
        epoch, index = divmod(position, self.train_size)
        if self._order is None or self._order[0] != (seed, epoch):
            order = list(self._train)
            random.Random(derived_seed("order", seed, epoch)).shuffle(order)
            self._order = ((seed, epoch), order)
        return self._order[1][index]

    def heldout_prompts(self) -> list[Prompt]:
        return list(self._heldout)

    def warm_start_prompt(self, position: int) -> Prompt:
        draw = random.Random(derived_seed("warm-start", self._seed, position))
        return self._train[draw.randrange(self.train_size)]

    def worked_answer(self, prompt: Prompt) -> str:
        return prompt.answer


# -- reasoning-gym -----------------------------------------------------------------------------------------


def reasoning_gym_task(spec: ReasoningGym) -> ListedPrompts:
    """The generator's first different questions: held-out and training ones together."""
    wanted = spec.train_prompts + spec.heldout_prompts
    grader = GymGrader(spec.generator, json.dumps(spec.options, sort_keys=True), spec.seed, _SURPLUS * wanted)
    prompts: dict[str, Prompt] = {}
    for index in range(grader.size):
        entry = grader.entry(index)
        prompts.setdefault(entry["question"], Prompt(index, entry["question"], str(entry["answer"] or "")))
        if len(prompts) == wanted:
            return ListedPrompts(list(prompts.values()), spec, grader)
    raise InputError(
        f"task: {spec.generator} made only {len(prompts)} different questions in {grader.size}, "
        f"{wanted} are asked: ask for fewer prompts, or choose other options"
    )


@dataclass(frozen=True)
class GymGrader:
    """Makes a question again from its number and lets the library score the answer.

    Cheap to pickle: the library's data set, which may hold whatever it likes, stays in its process.
    """

    generator: str
    options: str  # JSON
    seed: int
    size: int

    def entry(self, index: int) -> dict[str, Any]:
        return dict(_gym_dataset(self)[index])

    def __call__(self, prompt: Prompt, completion: str) -> float:
        entry = self.entry(prompt.id)
        if entry["question"] != prompt.text:
            raise RuntimeError(f"{self.generator} makes another question {prompt.id} than it did before")
        # Full score is 1; some scorers give a little for the form alone, or round.
        return float(_gym_dataset(self).score_answer(answer=completion.strip(), entry=entry) > 0.999)


@cache
def _gym_dataset(grader: GymGrader) -> Any:
    try:
        import reasoning_gym
    except ImportError as missing:
        raise InputError(
            "task.kind: reasoning-gym is not installed; pip install 'rlcast[tasks]'"
        ) from missing
    options = json.loads(grader.options)
    try:
        return reasoning_gym.create_dataset(grader.generator, seed=grader.seed, size=grader.size, **options)
    except (TypeError, ValueError, AssertionError) as error:
        raise InputError(f"task.options: {grader.generator} does not take them: {error}") from error


# -- JSONL -------------------------------------------------------------------------------------------------


def json_lines_task(spec: JsonLines) -> ListedPrompts:
    folder = Path(os.environ.get("RLCAST_TASKS") or Path.cwd())
    try:
        lines = (folder / spec.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"task.file: cannot read {spec.file} in {folder} (the folder is RLCAST_TASKS): {error}"
        ) from error
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    prompts = [_prompt_of(line, f"{spec.file}, line {number}", number) for number, line in numbered]
    return ListedPrompts(prompts, spec, grade_math)


def _prompt_of(line: str, where: str, number: int) -> Prompt:
    try:
        row = json.loads(line)
        prompt, answer = row["prompt"], row["answer"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f'task.file: {where}: expected {{"prompt": "…", "answer": "…"}}') from error
    if not isinstance(prompt, str) or isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise InputError(f"task.file: {where}: prompt must be text, and answer text or a number")
    return Prompt(number, prompt, str(answer))


def grade_math(prompt: Prompt, completion: str) -> float:
    """Right when the last expression of the completion equals the answer, or when both are the same text.

    The library's own time limits are switched off: they are alarm signals, and this runs under the grader
    process's limit.
    """
    if completion.strip() == prompt.answer.strip():
        return 1.0
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)
    gold = parse(f"${prompt.answer}$", parsing_timeout=None)
    found = parse(completion, parsing_timeout=None)
    return float(verify(gold, found, timeout_seconds=None))


# -- a Python function -------------------------------------------------------------------------------------


def python_task(spec: PythonTask) -> ListedPrompts:
    """Calls `function(seed)`, which returns the questions and a grader."""
    module, _, name = spec.entry_point.partition(":")
    package = module.partition(".")[0]
    allowed = os.environ.get("RLCAST_TASK_PACKAGES", "").replace(",", " ").split()
    if package not in allowed:
        raise InputError(
            f"task.entry_point: this host does not run code of {package!r}; to allow it, set "
            f"RLCAST_TASK_PACKAGES={','.join([*allowed, package])}"
        )
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"task.entry_point: cannot load {spec.entry_point}: {error}") from error
    pairs, grade = _questions(function(spec.seed), spec.entry_point)
    prompts = [Prompt(i, question, answer) for i, (question, answer) in enumerate(pairs)]
    return ListedPrompts(prompts, spec, TextGrader(grade))


def _questions(made: Any, entry_point: str) -> tuple[Iterable[tuple[str, str]], Callable[..., float]]:
    try:
        pairs, grade = made
        pairs = [(str(question), str(answer)) for question, answer in pairs]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"task.entry_point: {entry_point} must return (questions, grade): a list of (prompt, answer) and "
            "a function grade(prompt, answer, completion)"
        ) from error
    return pairs, grade


@dataclass(frozen=True)
class TextGrader:
    """`function(prompt, answer, completion)` gives 1 or 0; anything else is a failure of the grader."""

    function: Callable[[str, str, str], float]

    def __call__(self, prompt: Prompt, completion: str) -> float:
        reward = float(self.function(prompt.text, prompt.answer, completion))
        if reward not in (0.0, 1.0):
            raise ValueError(f"the grader gave {reward}; only 0 and 1 are rewards")
        return reward
