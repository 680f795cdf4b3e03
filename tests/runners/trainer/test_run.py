"""The trainer as its caller sees it: a process, a folder of events and checkpoints, an exit code."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rlcast.recipe import Recipe

pytestmark = pytest.mark.torch

Events = list[dict[str, Any]]
Start = Callable[..., "subprocess.Popen[str]"]
Read = Callable[[Path], Events]
WAIT_S = 60.0


def evaluations(events: Events) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["kind"] == "evaluation"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"nothing happened in {WAIT_S} s"
        time.sleep(0.02)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == code, output
    return output


def final_weights(out: Path, step: int) -> dict[str, torch.Tensor]:
    return load_file(out / "checkpoints" / f"step-{step:08d}" / "model.safetensors")


@pytest.fixture(scope="module")
def uninterrupted(
    small_recipe: Callable[..., Recipe],
    trainer_process: Start,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Recipe, Path]:
    """Six steps that nothing interrupted; k = 4, so that a stop finds batches waiting."""
    recipe = small_recipe(pipeline={"k": 4}, checkpoint={"every_steps": 1})
    out = tmp_path_factory.mktemp("runs") / "whole"
    finish(trainer_process(recipe, out))
    return recipe, out


@pytest.fixture
def whole_run(
    uninterrupted: tuple[Recipe, Path], tmp_path: Path, read_events: Read
) -> tuple[Recipe, Path, Events]:
    """A copy of that run's folder, to be changed at will."""
    recipe, made = uninterrupted
    out = tmp_path / "whole"
    shutil.copytree(made, out)
    return recipe, out, read_events(out)


def test_a_run_tells_its_whole_story(whole_run: tuple[Recipe, Path, Events]) -> None:
    _, out, events = whole_run
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["kind"] == "started"
    assert events[-1]["kind"] == "finished"
    points = evaluations(events)
    assert [point["step"] for point in points] == [0, 1, 2, 3, 6]
    assert all(value == 0 for value in points[0]["compute"].values())
    for point in points:
        assert point["n_prompts"] == len(point["solved"]) == 10
        assert point["pass_rate"] == pytest.approx(sum(point["solved"]) / 80)
    last = points[-1]["compute"]
    assert last["steps"] == 6
    assert last["samples"] == 6 * 64
    assert last["cpu_hours"] > points[-2]["compute"]["cpu_hours"] > 0
    # 12,800 parameters and some: at least 6 N per trained and 2 N per sampled token.
    parameters = sum(value.numel() for value in final_weights(out, 6).values())
    assert last["flops"] > 2 * parameters * last["tokens"] > 0
    progress = [event["data"] for event in events if event["kind"] == "progress"][-1]
    assert progress["phase"] == "train"
    assert progress["lag_max"] in (0, 1, 2, 3)
    assert {"loss", "reward_mean", "entropy", "truncated", "grad_norm", "tokens", "cpu_hours"} <= set(
        progress
    )


def test_sigterm_saves_and_a_resumed_run_ends_bit_for_bit_the_same(
    whole_run: tuple[Recipe, Path, Events],
    trainer_process: Start,
    tmp_path: Path,
    read_events: Read,
) -> None:
    recipe, whole, whole_events = whole_run
    out = tmp_path / "stopped"
    process = trainer_process(recipe, out)
    wait_for(lambda: any(point["step"] == 2 for point in evaluations(read_events(out))))
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    assert read_events(out)[-1]["kind"] != "finished", "the run was over before the signal came"
    finish(trainer_process(recipe, out, "--resume"))
    assert_same_story(read_events(out), whole_events)
    for name, value in final_weights(whole, 6).items():
        assert torch.equal(final_weights(out, 6)[name], value), name


def test_kill_9_at_several_moments_leaves_no_gap_and_no_duplicate(
    whole_run: tuple[Recipe, Path, Events],
    trainer_process: Start,
    tmp_path: Path,
    read_events: Read,
) -> None:
    recipe, whole, whole_events = whole_run
    out = tmp_path / "killed"
    for step in (0, 3):
        process = trainer_process(recipe, out, "--resume")
        wait_for(lambda step=step: any(p["step"] == step for p in evaluations(read_events(out))))
        process.kill()
        process.wait()
    with (out / "events.jsonl").open("ab") as file:
        file.write(b'{"sequence": 99, "kind": "evalu')  # what a crash in the middle of a write leaves
    finish(trainer_process(recipe, out, "--resume"))
    events = read_events(out)
    assert_same_story(events, whole_events)
    hours = [point["compute"]["cpu_hours"] for point in evaluations(events)]
    assert hours == sorted(hours)
    for name, value in final_weights(whole, 6).items():
        assert torch.equal(final_weights(out, 6)[name], value), name


def assert_same_story(events: Events, whole: Events) -> None:
    """The same evaluations, each once, and a sequence without gaps."""
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["kind"] == "finished"
    keys = ("step", "pass_rate", "solved", "truncated")
    actual = [[point[key] for key in keys] for point in evaluations(events)]
    assert actual == [[point[key] for key in keys] for point in evaluations(whole)]


def test_a_damaged_checkpoint_is_passed_over(
    whole_run: tuple[Recipe, Path, Events], trainer_process: Start, read_events: Read
) -> None:
    recipe, out, whole_events = whole_run
    lines = (out / "events.jsonl").read_bytes().splitlines(keepends=True)
    before_the_end = [line for line in lines if json.loads(line)["data"].get("step") != 6]
    (out / "events.jsonl").write_bytes(b"".join(before_the_end))
    newest = out / "checkpoints" / "step-00000006" / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    output = finish(trainer_process(recipe, out, "--resume"))
    assert "resumed at step 5" in output
    assert_same_story(read_events(out), whole_events)


def test_an_existing_run_is_never_overwritten(
    whole_run: tuple[Recipe, Path, Events], trainer_process: Start, read_events: Read
) -> None:
    recipe, out, events = whole_run
    assert "add --resume" in finish(trainer_process(recipe, out), 2)
    other = recipe.model_copy(update={"seed": 1})
    assert "different recipe" in finish(trainer_process(other, out, "--resume"), 2)
    assert "already finished" in finish(trainer_process(recipe, out, "--resume"))
    assert read_events(out) == events


def test_an_invalid_recipe_is_one_line_that_names_the_field(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\nloss: {kind: cispo, epsilon: 5}\n")
    command = [sys.executable, "-m", "runners.trainer", "--recipe", file, "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "loss.epsilon" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_unreachable_warm_start_fails_with_its_reason(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipe = small_recipe(model={"warm_start": {"pass_rate": 0.99, "max_steps": 3}})
    finish(trainer_process(recipe, tmp_path / "out"), 1)
    last = read_events(tmp_path / "out")[-1]
    assert last["kind"] == "failed"
    assert "model.warm_start" in last["data"]["error"]
    assert "\n" not in last["data"]["error"]


def test_two_processes_make_the_warm_start_once(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipes = [
        small_recipe(name=name, steps=1, loss={"kind": kind}, model={"warm_start": {"pass_rate": 0.31}})
        for name, kind in (("one", "cispo"), ("two", "grpo"))
    ]
    processes = [trainer_process(recipe, tmp_path / recipe.name) for recipe in recipes]
    outputs = [finish(process) for process in processes]
    assert sum("warm start: step 0" in output for output in outputs) == 1
    starts = [evaluations(read_events(tmp_path / recipe.name))[0]["solved"] for recipe in recipes]
    assert starts[0] == starts[1]


@pytest.mark.slow
def test_training_raises_the_heldout_pass_rate(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipe = small_recipe(
        steps=200,
        model={"hidden_size": 64, "intermediate_size": 128, "warm_start": {"learning_rate": 2e-3}},
        task={"digits": 2, "train_prompts": 2000, "heldout_prompts": 100},
        sampling={"prompts_per_step": 16, "samples_per_prompt": 16, "max_new_tokens": 5},
        evaluation={"every_steps": 50, "samples_per_prompt": 8},
        optimizer={"learning_rate": 5e-4},
    )
    finish(trainer_process(recipe, tmp_path / "out"))
    points = evaluations(read_events(tmp_path / "out"))
    # Of 800 samples: the difference of two pass rates has a standard error of about 0.024.
    assert points[-1]["pass_rate"] > points[0]["pass_rate"] + 0.08
