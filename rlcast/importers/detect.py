"""What kind of log a file or folder is, judged by its content."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.importers import dicts, tables, verl, wandb
from rlcast.importers.lines import head_of, lines_of, text_of
from rlcast.importers.registry import FORMATS, Format

#: A trainer prints pages before its first step; after so many lines it is not a log of ours.
MAX_LINES = 2_000_000

# A Python dictionary ('...') and a clock in brackets are no JSON.
_JSON = re.compile(r"\{\s*[\"}]|\[\s*[\[{\]]")
_PRIME_RL = ("perf/", "optim/", "progress/", "off_policy/", "time/")


def detect(path: Path) -> tuple[Format, list[Path]]:
    """The format and the files to read, in order. Raises `InputError` that lists the candidates."""
    if path.is_dir():
        return _folder(path)
    head = head_of(path)
    name = _by_magic(path, head) or _by_text(path, text_of(head))
    if name is None:
        raise InputError(
            f"{path}: cannot tell what it is; pass --format with one of {', '.join(FORMATS)}", "--format"
        )
    return FORMATS[name], [path]


def _by_magic(path: Path, head: bytes) -> str | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(wandb.HEAD):
        return "wandb"
    if "tfevents" in path.name:
        return "tensorboard"
    if not head.strip():
        raise InputError(f"{path} is empty", "file")
    if b"\0" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is a binary file of no known kind", "file")
    return None


def _by_text(path: Path, head: str) -> str | None:
    start = head.lstrip()
    if _JSON.match(start):
        first = _object(start.splitlines()[0])
        return _json_lines(first) if first is not None else _json_document(path, start)
    return _table(path) or _by_lines(path)


def _object(line: str) -> dict[str, Any] | None:
    """The line as an object, if it is one that is not merely a document on one line."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    whole = {"log_history", "nbformat", "results", "config_general"}
    return data if isinstance(data, dict) and not whole & data.keys() else None


def _json_lines(first: dict[str, Any]) -> str:
    if isinstance(first.get("data"), dict) and "step" in first:
        return "verl-jsonl"
    if "global_step/max_steps" in first:
        return "ms-swift"
    if "step" in first and "time" in first and any(k.startswith(_PRIME_RL) or "/avg@" in k for k in first):
        return "prime-rl"
    return "jsonl"


def _json_document(path: Path, head: str) -> str | None:
    if path.suffix == ".ipynb" or '"nbformat"' in head or '"cell_type"' in head:
        return "notebook"
    if path.name == "trainer_state.json" or '"log_history"' in head:
        return "trl"
    if '"results"' in head and ("config_general" in head or "_stderr" in head or "n-samples" in head):
        return "harness"
    if head.startswith("["):
        return "json"
    return "jsonl" if head.startswith("{") and _cut_first_line(head) else None


def _cut_first_line(head: str) -> bool:
    """A first object longer than the head, or one that was cut, with whole ones after it."""
    lines = head.splitlines()
    return len(lines) == 1 or any(_object(line) is not None for line in lines[1:50])


def _by_lines(path: Path) -> str | None:
    for line in islice(lines_of(path), MAX_LINES):
        if verl.looks_like_verl(line):
            return "verl"
        if dicts.looks_like_slime(line):
            return "slime"
        if dicts.looks_like_dicts(line):
            return "dicts"
    return None


def _table(path: Path) -> str | None:
    header, _ = tables.header_of(path)
    if tables.is_wandb_export(header):
        return "wandb-csv"
    named = path.suffix.lower() in (".csv", ".tsv")
    return (
        "csv"
        if named or (len(header) > 1 and (tables.has_steps(header) or tables.is_curve(header)))
        else None
    )


def _folder(folder: Path) -> tuple[Format, list[Path]]:
    """A run's folder as its trainer leaves it."""
    for pattern, name in (
        ("trainer_state.json", "trl"),
        ("checkpoint-*/trainer_state.json", "trl"),
        ("**/*.wandb", "wandb"),
        ("**/*tfevents*", "tensorboard"),
        ("**/tags/mlflow.*", "mlflow"),
    ):
        if next(folder.glob(pattern), None):
            return FORMATS[name], [folder]
    # The other streams use the same keys for the training data.
    streams = sorted(folder.glob("streams/stats_test/**/*.jsonl"))
    if streams:
        return FORMATS["pipelinerl"], streams
    # Each attempt leaves its own file, named by its time: their order is the order of the attempts.
    logs = sorted(folder.glob("metrics*.jsonl")) or sorted(folder.glob("logging*.jsonl"))
    logs = logs or sorted(folder.glob("*.jsonl"))
    logs = [path for path in logs if head_of(path).strip()]
    if logs:
        return detect(logs[0])[0], logs
    if next(folder.glob("**/*results*.json"), None):
        return FORMATS["harness"], [folder]
    raise InputError(f"{folder}: no log that is known in this folder; name the file itself", "file")
