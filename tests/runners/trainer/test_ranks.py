"""Two trainer ranks give what one gives, and none of them can die unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from rlcast.recipe import Recipe
from runners.trainer.children import ChildDied
from runners.trainer.generator import TorchGenerator
from runners.trainer.learner import Learner, UpdateStats
from runners.trainer.model import Policy, build_model, parameters_of
from runners.trainer.ranks import Leader, make_learner
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("ranks")]

TOKENIZER = CharTokenizer("0123456789+=")
# With eps 1e-15 AdamW's first step is the gradient's sign, so that rounding alone can flip a tiny one.
OPTIMIZER = {"eps": 1e-8}


def groups_of(recipe: Recipe, model: Policy, step: int) -> list[Group]:
    """Completions of the untrained model with made-up rewards. 9 + step prompts, so that rows are uneven."""
    task = ArithmeticTask(recipe.task)
    generator = TorchGenerator(model, TOKENIZER, 4, newest_version=lambda: 0)
    groups = generator.generate([task.train_prompt(i, step) for i in range(9 + step)], 3, seed=step)
    for i, sample in enumerate(sample for group in groups for sample in group.samples):
        sample.reward = float((i * 7 + step) % 3 == 0 or i % 5 == 0)
    return groups


def train(
    recipe: Recipe, steps: int, resume_at: int | None = None
) -> tuple[list[UpdateStats], dict[str, torch.Tensor]]:
    model = build_model(recipe.model, recipe.precision, TOKENIZER.vocab_size, 16)
    batches = [groups_of(recipe, model, step) for step in range(steps)]
    learner = make_learner(model, recipe, TOKENIZER, 16)
    learner.start()
    stats = []
    for step in range(steps):
        if step == resume_at:  # as after a crash: everything anew, state from the checkpoint
            state = learner.state()
            learner.close()
            learner = make_learner(model, recipe, TOKENIZER, 16)
            learner.start()
            learner.load_state(state)
        stats.append(learner.update(batches[step], step))
    weights = {name: value.clone() for name, value in parameters_of(model).items()}
    learner.close()
    return stats, weights


def test_two_ranks_equal_one(small_recipe: Callable[..., Recipe]) -> None:
    one = small_recipe(optimizer=OPTIMIZER)
    two = small_recipe(optimizer=OPTIMIZER, devices={"trainers": 2})
    assert type(make_learner(build_model(one.model, one.precision, 15, 16), one, TOKENIZER, 16)) is Learner
    expected, weights = train(one, steps=4)
    stats, sharded = train(two, steps=4, resume_at=2)
    for a, b in zip(stats, expected, strict=True):
        assert a.loss == pytest.approx(b.loss, abs=1e-5)
        assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-4)
        assert a.ess == pytest.approx(b.ess, abs=1e-5)
        assert (a.rows, a.trained_tokens) == (b.rows, b.trained_tokens)
    untrained = parameters_of(build_model(one.model, one.precision, 15, 16))
    for name, value in weights.items():
        torch.testing.assert_close(sharded[name], value, atol=1e-5, rtol=0)
    assert max(float((weights[name] - untrained[name]).abs().max()) for name in weights) > 1e-4


def test_a_dead_rank_is_named(small_recipe: Callable[..., Recipe]) -> None:
    recipe = small_recipe(devices={"trainers": 2})
    model = build_model(recipe.model, recipe.precision, TOKENIZER.vocab_size, 16)
    learner = make_learner(model, recipe, TOKENIZER, 16)
    assert isinstance(learner, Leader)
    try:
        learner.start()
        learner.check()
        learner._followers[0]._process.kill()
        with pytest.raises(ChildDied, match=r"trainer rank 2: the process died \(killed by SIGKILL\)"):
            learner.update(groups_of(recipe, model, 0), 0)
    finally:
        learner.close()


Start = Callable[..., "subprocess.Popen[str]"]
Read = Callable[[Path], list[dict[str, Any]]]


def test_a_pipelined_run_with_two_ranks_and_two_generators_and_its_end_when_one_dies(
    small_recipe: Callable[..., Recipe], trainer_process: Start, tmp_path: Path, read_events: Read
) -> None:
    recipe = small_recipe(
        steps=5000,
        devices={"trainers": 2},
        pipeline={"mode": "pipeline-rl", "k": 2, "generators": 2},
        evaluation={"every_steps": 5000},
    )
    process, out = trainer_process(recipe, tmp_path / "out"), tmp_path / "out"
    deadline = time.monotonic() + 120
    while not any(e["kind"] == "progress" and e["data"].get("phase") == "train" for e in read_events(out)):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    progress = [e["data"] for e in read_events(out) if e["kind"] == "progress"][-1]
    assert 0 <= progress["lag_min"] <= progress["lag_max"] <= 2
    assert recipe.devices_held == 4
    children = sorted(psutil.Process(process.pid).children(), key=psutil.Process.create_time)
    rank = next(child for child in children if "spawn_main" in " ".join(child.cmdline()))
    rank.kill()  # the grader and the generators are started later
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "trainer rank 2: the process died (killed by SIGKILL)" in read_events(out)[-1]["data"]["error"]


def test_torchrun_starts_the_ranks_of_several_hosts(
    small_recipe: Callable[..., Recipe], cache_folder: Path, tmp_path: Path, read_events: Read
) -> None:
    recipe = small_recipe(steps=2, devices={"trainers": 2}, evaluation={"every_steps": 2, "early": False})
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml())
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = ["-m", "runners.trainer", "--recipe", tmp_path / "recipe.yaml", "--out", tmp_path / "out"]
    done = subprocess.run(
        [*launcher, *arguments],
        env={**os.environ, "RLCAST_CACHE": str(cache_folder), "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events = read_events(tmp_path / "out")
    assert [event["data"]["step"] for event in events if event["kind"] == "evaluation"] == [0, 2]
    assert events[-1]["kind"] == "finished"
