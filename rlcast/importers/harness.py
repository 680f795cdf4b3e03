"""Result files of lighteval and lm-evaluation-harness: one file a checkpoint, many files a run.

They hold no training step, so it comes from the file's path or the model's name: checkpoint-100,
global_step_100, step100, or <run>_100__results….
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.importers.rows import Row
from rlcast.importers.whole import document

_STEP = re.compile(r"(?:checkpoint|ckpt|global_step|step|iter)[-_=]?(\d+)", re.IGNORECASE)
_BEFORE_RESULTS = re.compile(r"^(?P<run>.*?)[-_](?P<step>\d+)_*results", re.IGNORECASE)


def result_rows(path: Path) -> Iterator[Row]:
    """One row a file, with keys `eval/<task>/<metric>`. Its run is the model, or the name before the step."""
    files = sorted(path.rglob("*results*.json")) if path.is_dir() else [path]
    for file in files:
        data = document(file)
        if isinstance(data, dict) and isinstance(data.get("results"), dict):
            yield _row(file, data, path)


def _row(file: Path, data: dict[str, Any], given: Path) -> Row:
    step, run = _identity(file, data)
    if given.is_dir():
        run = given.resolve().name
    values, prompts = {}, {}
    for task, results in data["results"].items():
        name = _plain(task)
        for metric, value in results.items():
            if isinstance(value, int | float) and "stderr" not in metric:
                values[f"eval/{name}/{metric}"] = float(value)
                prompts[name] = _prompts(data, task)
    names = {name for name in prompts if name != "all"}
    # One task and its copy under "all" are one score.
    if len(names) == 1:
        values = {key: value for key, value in values.items() if not key.startswith("eval/all/")}
    return Row(step, values, run, prompts[next(iter(names))] if len(names) == 1 else None)


def _plain(task: str) -> str:
    """`custom|aime24|0` is task aime24 of a suite with 0 examples."""
    parts = task.split("|")
    return parts[1] if len(parts) > 1 else task


def _prompts(data: dict[str, Any], task: str) -> int | None:
    counted = (data.get("n-samples") or {}).get(task) or {}
    light = (data.get("config_tasks") or {}).get("|".join(task.split("|")[:2])) or {}
    number = counted.get("effective") or light.get("effective_num_docs")
    return int(number) if isinstance(number, int) and number > 0 else None


def _identity(file: Path, data: dict[str, Any]) -> tuple[int, str]:
    """Step and run of a result file. Raises `InputError` when nothing tells the step."""
    named = _BEFORE_RESULTS.match(file.name)
    if named:
        return int(named["step"]), named["run"] or file.parent.name
    model = str(data.get("model_name") or (data.get("config_general") or {}).get("model_name") or "")
    for text in (file.name, model, *(part.name for part in file.parents)):
        found = _STEP.search(text)
        if found:
            before = re.sub(r"[-_/.]+$", "", text[: found.start()].replace("__", "/"))
            return int(found[1]), before.rpartition("/")[2] or file.parent.name
    raise InputError(
        f"{file}: nothing tells the training step; put it into the name of the file or its folder "
        "(as in checkpoint-100)",
        "step",
    )
