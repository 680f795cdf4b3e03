"""Questions from lists: what is held out, what is right, and what a host refuses to run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from rlcast.recipe_tasks import REASONING_GYM, JsonLines, PythonTask, ReasoningGym
from runners.trainer.benchmarks import Exams, make_task
from runners.trainer.grading import GraderProcess
from runners.trainer.listed import grade_math
from runners.trainer.types import Group, Prompt, Sample

pytestmark = pytest.mark.torch


def write_questions(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_names_in_recipes_are_those_of_the_library() -> None:
    DATASETS = pytest.importorskip("reasoning_gym.factory", reason="needs rlcast[tasks]").DATASETS
    assert set(REASONING_GYM) == set(DATASETS)


def test_reasoning_gym_grades_with_its_own_scorer_and_holds_out_by_seed() -> None:
    pytest.importorskip("reasoning_gym", reason="needs rlcast[tasks]")
    spec = ReasoningGym(
        kind="reasoning-gym", generator="chain_sum", train_prompts=40, heldout_prompts=10,
        options={"max_terms": 2, "max_digits": 2},
    )  # fmt: skip
    task, again = make_task(spec), make_task(spec)
    heldout = task.heldout_prompts()
    trained = [task.train_prompt(i, seed=0) for i in range(40)]
    assert heldout == again.heldout_prompts()
    assert heldout != make_task(spec.model_copy(update={"seed": 1})).heldout_prompts()
    assert len({prompt.text for prompt in heldout + trained}) == 50
    for prompt in heldout:
        total = eval(prompt.text.removeprefix("State the final answer to the following arithmetic problem: ")
                     .rstrip("= "))  # fmt: skip
        assert task.grade(prompt, str(total)) == 1.0
        assert task.grade(prompt, str(total + 1)) == 0.0


def test_too_few_different_questions_and_wrong_options_are_refused() -> None:
    pytest.importorskip("reasoning_gym", reason="needs rlcast[tasks]")
    coins = {"kind": "reasoning-gym", "generator": "chain_sum"}
    with pytest.raises(InputError, match=r"task\.options: chain_sum"):
        make_task(ReasoningGym.model_validate({**coins, "options": {"no_such_option": 1}}))
    few = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    with pytest.raises(InputError, match="ask for fewer prompts"):
        make_task(ReasoningGym.model_validate({**coins, "options": few, "train_prompts": 1000}))


@pytest.mark.parametrize(
    ("answer", "completion", "right"),
    [
        ("1/2", r"so it is $\frac{1}{2}$", 1.0),
        (r"\frac{3}{4}", "0.75", 1.0),
        ("14", r"$12$, no: $\boxed{14}$", 1.0),
        ("14", "15", 0.0),
        ("14", "", 0.0),
        ("x^2 + 2x", "$x(x+2)$", 1.0),
        ("Lake Geneva", "Lake Geneva", 1.0),
        ("Lake Geneva", "Lake Lucerne", 0.0),
    ],
)
def test_math_is_compared_as_math(answer: str, completion: str, right: float) -> None:
    assert grade_math(Prompt(0, "?", answer), completion) == right


def test_math_is_graded_in_the_graders_process() -> None:
    grader = GraderProcess(grade_math, timeout_s=30)
    texts = ["$2^{10}$", "1023", "1024"]
    samples = [Sample([0], [0.0], [0], text=text, finished=True) for text in texts]
    try:
        grader.grade([Group(Prompt(0, "?", "1024"), [0], samples)])
    finally:
        grader.close()
    assert [sample.reward for sample in samples] == [1.0, 0.0, 1.0]


def test_questions_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLCAST_TASKS", str(tmp_path))
    rows = [{"prompt": f"{i}+1=", "answer": i + 1} for i in range(20)]
    write_questions(tmp_path, [*rows, rows[3]])  # a question twice must not be held out and trained on
    task = make_task(JsonLines(kind="jsonl", file="questions.jsonl", heldout_prompts=15))
    asked = [p.text for p in task.heldout_prompts()] + [task.train_prompt(i, 0).text for i in range(5)]
    assert sorted(asked) == sorted(row["prompt"] for row in rows)
    write_questions(tmp_path, [*rows, {"question": "?"}])
    with pytest.raises(InputError, match=r"questions\.jsonl, line 21"):
        make_task(JsonLines(kind="jsonl", file="questions.jsonl", heldout_prompts=15))


def test_python_tasks_run_only_where_the_host_allows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLCAST_TASK_PACKAGES", raising=False)
    (tmp_path / "copying_task.py").write_text(
        "def grade(prompt, answer, completion):\n    return float(completion == answer)\n\n"
        "def questions(seed):\n    return [(c + '=', c) for c in 'abcdefgh'], grade\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = PythonTask(kind="python", entry_point="copying_task:questions", heldout_prompts=3)
    with pytest.raises(InputError, match="RLCAST_TASK_PACKAGES=copying_task"):
        make_task(spec)
    monkeypatch.setenv("RLCAST_TASK_PACKAGES", "copying_task")
    task = make_task(spec)
    prompt = task.train_prompt(0, seed=0)
    assert task.grade(prompt, prompt.answer) == 1.0
    assert task.grade(prompt, "x") == 0.0


def test_a_benchmark_must_not_ask_what_is_trained_on() -> None:
    def recipe(seed: int) -> Recipe:
        digits = {"kind": "arithmetic", "digits": 2, "train_prompts": 3000, "heldout_prompts": 10}
        also = [{"name": "other", "task": {**digits, "seed": seed}}]
        return Recipe.model_validate({"name": "a", "task": digits, "also_evaluate": also})

    with pytest.raises(InputError, match="questions of 'other' are trained on"):
        Exams(recipe(seed=1))
    assert [exam.name for exam in Exams(recipe(seed=0)).all] == ["arithmetic-heldout", "other"]


def test_a_run_on_a_file_is_also_scored_on_another_benchmark(
    small_recipe: Callable[..., Recipe],
    trainer_process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    read_events: Callable[[Path], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RLCAST_TASKS", str(tmp_path))
    write_questions(tmp_path, [{"prompt": f"{c}?", "answer": c} for c in "0123456789"])
    recipe = small_recipe(
        steps=3,
        also_evaluate=[
            {
                "name": "sums",
                "task": {"kind": "arithmetic", "digits": 2, "train_prompts": 1, "heldout_prompts": 7},
            }
        ],
    ).model_dump(mode="json")
    recipe["task"] = {"kind": "jsonl", "file": "questions.jsonl", "heldout_prompts": 4}
    out = tmp_path / "out"
    process = trainer_process(Recipe.model_validate(recipe), out)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    scores = [event["data"] for event in read_events(out) if event["kind"] == "evaluation"]
    assert [(s["benchmark"], s["step"], s["n_prompts"]) for s in scores] == [
        (name, step, count)
        for step in (0, 1, 2, 3)
        for name, count in (("arithmetic-heldout", 4), ("sums", 7))
    ]
    write_questions(tmp_path, [{"prompt": f"{c}!", "answer": c} for c in "0123456789"])
    (out / "events.jsonl").write_text("")  # so that it is not finished
    process = trainer_process(Recipe.model_validate(recipe), out, "--resume")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    assert "not those that this run began with" in output
