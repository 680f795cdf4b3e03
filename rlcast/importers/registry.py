"""The formats that can be imported. A new one is a file beside this one and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlcast.errors import InputError
from rlcast.importers import dicts, harness, jsonl, mlflow, tables, tensorboard, verl, wandb, whole
from rlcast.importers.collect import Writers
from rlcast.importers.lines import lines_of
from rlcast.importers.rows import LineParser, Row


@dataclass(frozen=True)
class Format:
    """A format: either `parser` for logs that grow by lines, or `rows` for whole files and folders.

    `lines` gets the lines out of a file (a notebook hides them), `joint` says that several files make
    one run, `cut_at` splits a last line that may be cut inside a number.
    """

    name: str
    title: str
    parser: Callable[[], LineParser] | None = None
    rows: Callable[[Path], Iterator[Row]] | None = None
    lines: Callable[[Path], Iterator[str]] = lines_of
    writers: Writers = "one"
    joint: bool = False
    cut_at: str | None = None


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("csv", "CSV or TSV table", rows=tables.csv_rows),
        Format("parquet", "Parquet table", rows=tables.parquet_rows),
        Format("jsonl", "JSONL, one object a line", parser=jsonl.Jsonl),
        Format("json", "JSON list of rows", rows=whole.json_rows),
        Format("verl", "verl console", parser=verl.VerlConsole, cut_at=" - "),
        Format("verl-jsonl", "verl file logger", parser=jsonl.VerlJsonl),
        Format("notebook", "verl console in a notebook", parser=verl.VerlConsole, lines=whole.notebook_lines),
        Format("trl", "TRL or transformers trainer_state.json", rows=whole.trainer_state),
        Format("dicts", "transformers console", parser=dicts.Dicts),
        Format("ms-swift", "ms-swift logging.jsonl", parser=jsonl.Swift),
        Format("prime-rl", "prime-rl metrics.jsonl", parser=jsonl.PrimeRl, writers="many"),
        Format("pipelinerl", "PipelineRL streams", parser=jsonl.Jsonl, writers="many"),
        Format("slime", "slime console", parser=dicts.Slime, writers="many"),
        Format(
            "harness",
            "lighteval or lm-eval results",
            rows=harness.result_rows,
            writers="unordered",
            joint=True,
        ),
        Format("wandb", "W&B offline run", rows=wandb.wandb_rows, writers="many"),
        Format("tensorboard", "TensorBoard event files", rows=tensorboard.event_rows, writers="many"),
        Format("mlflow", "MLflow folder", rows=mlflow.mlflow_rows, writers="many"),
        Format("wandb-csv", "W&B chart export", rows=tables.wandb_export_rows),
    )
}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise InputError(
            f"--format '{name}' is not known; use auto or one of {', '.join(FORMATS)}", "--format"
        )
    return FORMATS[name]
