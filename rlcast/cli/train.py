"""`rlcast train`: a recipe on this machine, without a server."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fitting.units import unit_label
from rlcast.cli.output import amount, console, note, print_forecast, rate
from rlcast.cli.recipes import Overrides, RecipeFile, read_recipe
from rlcast.errors import InputError, RlcastError
from rlcast.spool import Event, Spool
from rlcast.stack.folder import write_atomically
from rlcast.stack.processes import tail


def require_trainer() -> None:
    """Raises `InputError` with the remedy when the trainer's packages are not installed."""
    missing = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
    if missing:
        raise InputError(
            f"the trainer is not installed ({', '.join(missing)} missing): pip install 'rlcast[runner-cpu]', "
            "or 'rlcast[runner-gpu]' on a machine with a GPU"
        )


def train_command(
    recipe: RecipeFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for events, checkpoints and log (default: runs/<recipe>)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint in the folder.")
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Train a recipe here, show its evaluations as they come, and forecast its end.

    No server is needed. The evaluations are in OUT/events.jsonl and, as a table, in OUT/curve.csv.
    """
    require_trainer()
    checked = read_recipe(recipe, overrides)
    out = out or Path("runs") / checked.name
    if (out / "events.jsonl").exists() and not resume:
        raise InputError(
            f"--out {out} holds a run already; go on with --resume, or choose another folder", "--out"
        )
    out.mkdir(parents=True, exist_ok=True)
    unit = checked.compute_unit
    spool = Spool(out / "events.jsonl")
    with tempfile.TemporaryDirectory(prefix="rlcast-") as folder:
        recipe_file = Path(folder) / "recipe.yaml"
        recipe_file.write_text(checked.to_yaml())
        code = _run(recipe_file, out, resume, _Printer(spool, unit))
    curve = write_curve(spool.events, out / "curve.csv", checked.name, unit)
    if code == 143:
        note(f"stopped; a checkpoint is in {out}. Go on with: rlcast train {recipe} --out {out} --resume")
        raise typer.Exit(130)
    if code:
        log = out / "train.log"
        raise RlcastError(f"the trainer ended with status {code}: {tail(log, 1)} (all of it in {log})")
    _print_end(curve)


def _run(recipe: Path, out: Path, resume: bool, printer: _Printer) -> int:
    """Runs the trainer to its end. Ctrl-C asks it to write a checkpoint first."""
    argv = [sys.executable, "-m", "runners.trainer", "--recipe", str(recipe), "--out", str(out)]
    with (out / "train.log").open("ab") as log:
        process = subprocess.Popen(
            argv + (["--resume"] if resume else []),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    previous = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while process.poll() is None:
            try:
                printer.print_new()
                time.sleep(0.2)
            except KeyboardInterrupt:
                note("stopping: writing a checkpoint …")
                process.terminate()
        printer.print_new()
        return process.returncode
    finally:
        signal.signal(signal.SIGTERM, previous)
        if process.poll() is None:
            process.kill()


class _Printer:
    """Prints evaluations as lines, and progress now and then."""

    def __init__(self, spool: Spool, unit: str) -> None:
        self.spool = spool
        self.unit = unit
        self._benchmark = ""  # the recipe's own, which comes first
        self._last_progress = time.monotonic()

    def print_new(self) -> None:
        while events := self.spool.pending():
            for event in events:
                self._print(event)
            self.spool.mark_delivered(events[-1])

    def _print(self, event: Event) -> None:
        data = event.data
        if event.kind == "evaluation":
            compute = data["compute"].get(self.unit, 0.0)
            self._benchmark = self._benchmark or data["benchmark"]
            other = f"  {data['benchmark']}" if data["benchmark"] != self._benchmark else ""
            console.print(
                f"step {data['step']:>5}  {amount(compute):>9} {unit_label(self.unit)}  "
                f"pass rate {rate(data['pass_rate'])}{other}",
                markup=False,
            )
        elif event.kind == "failed":
            raise RlcastError(str(data.get("error")))
        elif event.kind == "progress" and time.monotonic() - self._last_progress > 10:
            self._last_progress = time.monotonic()
            note(f"{data.get('phase', 'train')}: step {data.get('step')}/{data.get('total_steps')}")


def evaluations(events: Path) -> Iterator[dict[str, Any]]:
    """The evaluations of an event file on the recipe's own benchmark, which is always evaluated first.

    Of a step that was evaluated again, the later one.
    """
    benchmark: str | None = None
    by_step: dict[int, dict[str, Any]] = {}
    spool = Spool(events)
    while found := spool.pending():
        for event in found:
            if event.kind != "evaluation":
                continue
            benchmark = benchmark or str(event.data["benchmark"])
            if event.data["benchmark"] == benchmark:
                by_step[int(event.data["step"])] = event.data
        spool.mark_delivered(found[-1])
    yield from (by_step[step] for step in sorted(by_step))


def write_curve(events: Path, target: Path, run: str, unit: str) -> Path:
    """Writes the evaluations as a table that `rlcast forecast` and `rlcast import` read."""
    lines = ["run,step,compute,compute_unit,pass_rate,n_prompts,n_samples,benchmark"]
    for item in evaluations(events):
        values = [
            run, item["step"], repr(float(item["compute"][unit])), unit, repr(float(item["pass_rate"])),
            item.get("n_prompts") or "", item.get("n_samples") or "", item.get("benchmark") or "",
        ]  # fmt: skip
        lines.append(",".join(str(value) for value in values))
    write_atomically(target, "\n".join(lines) + "\n")
    return target


def _print_end(curve: Path) -> None:
    from rlcast.curves import curve_of, forecast_curve, options_of
    from rlcast.tables import read_table

    console.print()
    for rows in read_table(curve).runs.values():
        try:
            print_forecast(forecast_curve(curve_of(rows), options_of({})))
        except InputError as error:
            note(f"no forecast: {error}")
    note(f"the curve is in {curve}; forecast it again with: rlcast forecast {curve} --at COMPUTE")
