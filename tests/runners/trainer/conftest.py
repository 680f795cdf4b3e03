"""A run small enough for a test: the same code with a smaller model and one-digit addition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlcast.recipe import Recipe

SMALL: dict[str, Any] = {
    "name": "small",
    "steps": 6,
    "model": {
        "hidden_size": 32, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 16, "intermediate_size": 64,
        "warm_start": {"pass_rate": 0.3, "batch_size": 32, "learning_rate": 5e-3},
    },
    "task": {"digits": 1, "train_prompts": 30, "heldout_prompts": 10},
    "sampling": {"prompts_per_step": 8, "samples_per_prompt": 8, "max_new_tokens": 4},
    "evaluation": {"every_steps": 3, "samples_per_prompt": 8},
}  # fmt: skip


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLCAST_CACHE", str(cache_folder))


@pytest.fixture(scope="session")
def small_recipe() -> Callable[..., Recipe]:
    """`small_recipe(steps=3, loss={...})`: the small recipe with changes."""
    return lambda **changes: Recipe.model_validate(merged(SMALL, changes))


@pytest.fixture(scope="module")
def trainer_process(
    tmp_path_factory: pytest.TempPathFactory, cache_folder: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `python -m runners.trainer` on a recipe; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []
    recipes = tmp_path_factory.mktemp("recipes")

    def start(recipe: Recipe, out: Path, *arguments: str) -> subprocess.Popen[str]:
        file = recipes / f"{recipe.name}-{len(started)}.yaml"
        file.write_text(recipe.to_yaml())
        process = subprocess.Popen(
            [sys.executable, "-m", "runners.trainer", "--recipe", file, "--out", out, *arguments],
            env={**os.environ, "RLCAST_CACHE": str(cache_folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def read_events() -> Callable[[Path], list[dict[str, Any]]]:
    """The complete lines of a run's event file."""

    def read(out: Path) -> list[dict[str, Any]]:
        file = out / "events.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [json.loads(line) for line in lines]

    return read
