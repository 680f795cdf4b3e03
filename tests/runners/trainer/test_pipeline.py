"""PipelineRL-k: a generator process, new weights in the middle of completions, lag that is bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rlcast.recipe import Recipe
from runners.trainer.children import ChildDied, TimedOut
from runners.trainer.generator_pool import GeneratorPool
from runners.trainer.messages import Request
from runners.trainer.model import build_model
from runners.trainer.probe import check_agreement, mean_gap, probe_across_push
from runners.trainer.prompts import PassRateTable, PromptStream
from runners.trainer.rollouts import PipelinedBatches
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.tokenizer import CharTokenizer

pytestmark = pytest.mark.torch

PIPELINE = {"mode": "pipeline-rl", "k": 2}
WAIT_S = 60.0


@pytest.fixture
def recipe(small_recipe: Callable[..., Recipe]) -> Recipe:
    return small_recipe(pipeline=PIPELINE, steps=8)


@pytest.fixture
def task(recipe: Recipe) -> ArithmeticTask:
    return ArithmeticTask(recipe.task)


@pytest.fixture
def model(recipe: Recipe, task: ArithmeticTask) -> torch.nn.Module:
    return build_model(recipe.model, recipe.precision, CharTokenizer(task.alphabet).vocab_size, 16)


@pytest.fixture
def generator(recipe: Recipe, task: ArithmeticTask, model: torch.nn.Module) -> Iterator[GeneratorPool]:
    process = GeneratorPool(recipe, model, 0, task.alphabet, 16)
    yield process
    process.close()


class NoGrader:
    def grade(self, groups: object) -> None: ...


def test_lag_is_bounded_and_every_prompt_is_used_once_in_order(
    recipe: Recipe, task: ArithmeticTask, model: torch.nn.Module, generator: GeneratorPool
) -> None:
    stream = PromptStream(task, 0, PassRateTable(None))
    rollouts = PipelinedBatches(recipe, stream, generator, NoGrader(), model)
    used, lags = [], []
    for step in range(recipe.steps):
        batch = rollouts.next_batch(step)
        used += [group.prompt.id for group in batch]
        lags += [step - version for g in batch for sample in g.samples for version in sample.versions]
        assert all(len(group.samples) == 8 for group in batch)
        time.sleep(0.05)  # a trainer that is slower than the generator: the lag goes to its bound
        rollouts.weights_changed(step + 1)
    assert used == [task.train_prompt(i, 0).id for i in range(8 * 8)]
    assert min(lags) >= 0
    assert max(lags) == 2


def test_new_weights_are_used_in_the_middle_of_a_completion(
    recipe: Recipe, task: ArithmeticTask, model: torch.nn.Module, generator: GeneratorPool
) -> None:
    prompt = task.train_prompt(0, 0)
    seen: set[int] = set()
    for version in range(1, 200):
        generator.request([Request(version, prompt, 64, seed=version)])
        generator.push(model, version)
        [finished] = generator.receive()
        seen |= {len(set(sample.versions)) for sample in finished.group.samples}
        for sample in finished.group.samples:
            assert sample.versions == sorted(sample.versions)
        if 2 in seen:
            return
    pytest.fail("no completion was sampled by two versions of the weights")


def test_probe_passes_and_notices_weights_that_did_not_arrive(
    task: ArithmeticTask, model: torch.nn.Module, generator: GeneratorPool
) -> None:
    prompts = task.heldout_prompts()
    probe_across_push(model, generator, 0, prompts)
    assert mean_gap(model, generator.generate(prompts, 2, seed=1)) < 1e-4  # the first weights are back
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.2)
    with pytest.raises(RuntimeError, match=r"at most 0\.01"):
        check_agreement(model, generator.generate(prompts, 2, seed=1), "in a test")


def test_a_paused_generator_waits_and_a_dead_one_is_named(
    task: ArithmeticTask, generator: GeneratorPool
) -> None:
    prompt = task.train_prompt(0, 0)
    generator.pause()
    generator.request([Request(0, prompt, 2, 0)])
    with pytest.raises(TimedOut, match=r"no finished group within 0\.5 s"):
        generator.receive(timeout_s=0.5)
    generator.resume()
    assert generator.receive()[0].order == 0
    os.kill(children_named("generator")[0], signal.SIGKILL)
    with pytest.raises(ChildDied, match="generator: the process died"):
        generator.receive()


def children_named(name: str) -> list[int]:
    import multiprocessing

    return [child.pid for child in multiprocessing.active_children() if child.name == name and child.pid]


def children_of(pid: int) -> list[int]:
    output = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in output.split()]


def is_running(pid: int) -> bool:
    output = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(output.strip()) and not output.strip().startswith("Z")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


Start = Callable[..., "subprocess.Popen[str]"]
Read = Callable[[Path], list[dict[str, Any]]]


def test_a_killed_run_leaves_no_process_and_goes_on(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipe, out = small_recipe(pipeline=PIPELINE, steps=30, evaluation={"every_steps": 10}), tmp_path / "out"
    process = trainer_process(recipe, out)
    wait_for(lambda: any(e["kind"] == "evaluation" and e["data"]["step"] >= 4 for e in read_events(out)))
    children = children_of(process.pid)
    assert len(children) >= 2  # generator and grader
    process.kill()
    process.wait()
    wait_for(lambda: not any(is_running(pid) for pid in children))
    process = trainer_process(recipe, out, "--resume")
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, output
    steps = [event["data"]["step"] for event in read_events(out) if event["kind"] == "evaluation"]
    assert steps == [0, 1, 2, 4, 8, 10, 20, 30]


def test_a_dead_generator_ends_the_run_with_its_name(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipe, out = small_recipe(pipeline=PIPELINE, steps=5000), tmp_path / "out"
    process = trainer_process(recipe, out)
    wait_for(lambda: any(event["kind"] == "evaluation" for event in read_events(out)))
    for pid in children_of(process.pid):
        os.kill(pid, signal.SIGKILL)  # the grader is started again, the generator is not
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1, output
    assert "generator: the process died (killed by SIGKILL)" in read_events(out)[-1]["data"]["error"]
