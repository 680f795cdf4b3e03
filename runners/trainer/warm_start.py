"""The supervised stage before RL: a tiny model that already solves some prompts, made once and cached.

Recipes that agree on model and task share one start, so that their curves begin at one point. The cache is
`$RLCAST_CACHE` (default ~/.cache/rlcast); an entry's name is the hash of what made it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file, save_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from rlcast.recipe import Recipe
from rlcast.recipe_parts import Precision, WarmStart
from runners.trainer.generator import TorchGenerator
from runners.trainer.learner import token_logprobs
from runners.trainer.model import Policy, load_parameters, parameters_of
from runners.trainer.seeding import derived_seed
from runners.trainer.stopping import StopFlag
from runners.trainer.tasks import Task
from runners.trainer.tokenizer import CharTokenizer

log = logging.getLogger(__name__)

_FORMAT = "4"  # raise it when this file or the model's construction changes what is made
_CHECK_EVERY_STEPS = 10
_WARMUP_STEPS = 50
_AVERAGE_DECAY = 0.9  # averages about ten steps: the last step's own noise is not what RL should start from
_CHECK_PROMPTS = 256


def cache_folder() -> Path:
    return Path(os.environ.get("RLCAST_CACHE") or Path.home() / ".cache" / "rlcast")


def cache_key(recipe: Recipe, task: Task, tokenizer: CharTokenizer) -> str:
    spec = recipe.task.model_dump_json(exclude={"grader_timeout_s"})
    questions = f"{task.fingerprint} {tokenizer.alphabet}"
    model, limit = recipe.model.model_dump_json(), recipe.sampling.max_new_tokens
    made_from = f"{_FORMAT} {model} {spec} {questions} {limit}"
    return hashlib.sha256(made_from.encode()).hexdigest()[:20]


def warm_start(model: Policy, recipe: Recipe, task: Task, tokenizer: CharTokenizer, stop: StopFlag) -> None:
    """Loads the cached start into `model`, making it first when it is not there.

    Two processes that need the same start at the same time make it once: the second waits for the lock.
    """
    if recipe.model.warm_start is None:
        return
    folder = cache_folder() / "warm-starts"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{cache_key(recipe, task, tokenizer)}.safetensors"
    with _locked(file.with_suffix(".lock"), stop):
        if not file.exists():
            # In float32 whatever the recipe's precision: recipes that differ in it start from one model.
            _make(Policy(model.network, Precision()), recipe, task, tokenizer, stop)
            temporary = file.with_suffix(".tmp")  # ours alone: we hold the lock
            save_file(parameters_of(model), temporary)
            temporary.rename(file)
    load_parameters(model, load_file(file))


@contextmanager
def _locked(path: Path, stop: StopFlag) -> Iterator[None]:
    """An exclusive lock that the system releases when its holder dies. Waiting ends on a stop request."""
    with path.open("w") as file:
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    log.info("warm start: another process is making it, waiting")
                waiting = True
                stop.check()
                time.sleep(0.2)
        yield


def _make(model: Policy, recipe: Recipe, task: Task, tokenizer: CharTokenizer, stop: StopFlag) -> None:
    """Trains until the averaged weights reach the asked pass rate, and leaves `model` at those."""
    plan = recipe.model.warm_start
    assert plan is not None
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.learning_rate, betas=(0.9, 0.95))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(_AVERAGE_DECAY))
    averaged = cast(Policy, average.module)
    pass_rate_now = _pass_rate_check(averaged, recipe, task, tokenizer)
    for step in range(plan.max_steps):
        stop.check()
        if step % _CHECK_EVERY_STEPS == 0:
            pass_rate = pass_rate_now(step)
            if step % (5 * _CHECK_EVERY_STEPS) == 0 or pass_rate >= plan.pass_rate:
                log.info("warm start: step %d, pass rate %.3f of %.2f", step, pass_rate, plan.pass_rate)
            if pass_rate >= plan.pass_rate:
                load_parameters(model, parameters_of(averaged))
                return
        for group in optimizer.param_groups:
            group["lr"] = plan.learning_rate * min(1.0, (step + 1) / _WARMUP_STEPS)
        loss = _supervised_loss(model, plan, task, tokenizer, step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(model)
    raise RuntimeError(
        f"model.warm_start: pass rate {plan.pass_rate} not reached in {plan.max_steps} steps: "
        "raise max_steps, or lower pass_rate"
    )


def _supervised_loss(
    model: Policy, plan: WarmStart, task: Task, tokenizer: CharTokenizer, step: int
) -> torch.Tensor:
    """Mean negative log-probability of the answers' tokens."""
    rows, starts = [], []
    for i in range(plan.batch_size):
        prompt = task.warm_start_prompt(step * plan.batch_size + i)
        question = tokenizer.encode_prompt(prompt.text)
        rows.append(question + tokenizer.encode_completion(task.worked_answer(prompt)))
        starts.append(len(question))
    width = max(map(len, rows))
    token_ids = torch.tensor([row + [tokenizer.pad_id] * (width - len(row)) for row in rows])
    position = torch.arange(width)
    ends = torch.tensor([len(row) for row in rows])[:, None]
    mask = (position >= torch.tensor(starts)[:, None]) & (position < ends)
    return -(token_logprobs(model, token_ids) * mask).sum() / mask.sum()


def _pass_rate_check(
    model: Policy, recipe: Recipe, task: Task, tokenizer: CharTokenizer
) -> Callable[[int], float]:
    generator = TorchGenerator(model, tokenizer, recipe.sampling.max_new_tokens, newest_version=lambda: 0)
    prompts = [task.train_prompt(i, seed=0) for i in range(min(_CHECK_PROMPTS, task.train_size))]

    def pass_rate(step: int) -> float:
        groups = generator.generate(prompts, 1, derived_seed("warm-start check", step))
        solved = sum(task.grade(group.prompt, group.samples[0].text) for group in groups)
        return solved / len(groups)

    return pass_rate
