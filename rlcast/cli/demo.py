"""`rlcast demo`: the whole path, for real, in a few minutes."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from rlcast.cli.gate import print_decision
from rlcast.cli.jobs import progress_words
from rlcast.cli.output import amount, console, interval, print_forecast, rate
from rlcast.cli.train import require_trainer
from rlcast.cli.up import Data, Port, print_address, require_service
from rlcast.errors import RlcastError

if TYPE_CHECKING:
    from rlcast.client import Client
    from rlcast.stack.up import Stack

Jobs = list[dict[str, Any]]
_SAY_EVERY_S = 15.0


def demo_command(
    data: Data = None,
    port: Port = None,
    exit_at_end: Annotated[
        bool, typer.Option("--exit", help="Stop at the end instead of staying up.")
    ] = False,
) -> None:
    """Show the whole path on this machine, for real, in a few minutes.

    Starts the stack, forecasts published runs from their first half beside what really happened, trains
    two tiny recipes that differ in one ingredient, compares them and prints a gate's verdict.
    """
    require_service()
    require_trainer()
    from rlcast.client import Client
    from rlcast.stack.folder import default_folder
    from rlcast.stack.up import Stack, UpOptions

    started = time.monotonic()
    options = UpOptions(folder=data or default_folder(), port=port, jobs_at_once=2)
    stack = Stack(options, say=lambda text: console.print(text, markup=False, style="dim"))
    with _interruptible(stack), stack:
        keeper = _Keeper(stack)
        print_address(stack.url, stack.folder.token_file)
        with Client(stack.url, stack.folder.token_file.read_text().strip()) as client:
            _published(client)
            _train_and_compare(client, keeper)
        console.print(f"\n[bold]Done[/] in {time.monotonic() - started:.0f} s.", end=" ")
        if exit_at_end:
            console.print()
            return
        print_address(stack.url, stack.folder.token_file)
        while True:
            keeper.check()
            time.sleep(0.5)


@contextlib.contextmanager
def _interruptible(stack: Stack) -> Iterator[None]:
    """Lets Ctrl-C and SIGTERM end the demo in order; while it stops, further signals wait."""

    def interrupt(*details: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        console.print("\nstopping …", style="dim")
        raise KeyboardInterrupt

    previous = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Keeper:
    """Keeps the stack alive from a thread of its own while the demo goes on."""

    def __init__(self, stack: Stack) -> None:
        self._error: Exception | None = None
        self._stack = stack
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        try:
            self._stack.watch()
        except Exception as error:
            self._error = error

    def check(self) -> None:
        """Raises what ended the stack, if anything did."""
        if self._error is not None:
            raise self._error


# -- 1: forecasts that can be checked --------------------------------------------------------------


def _published(client: Client) -> None:
    from rlcast import demo
    from rlcast.tables import read_table

    imported = demo.import_curves(client)
    added = sum(run.created for run in imported)
    console.print(f"[bold]1. Published runs[/]: {len(imported)} imported ({added} evaluations added)\n")
    [scalerl] = read_table(demo.data_file("curves", demo.SCALERL_FILE)).runs.values()
    checked = demo.check_forecast(client, scalerl, demo.SEEN_GPU_HOURS, demo.TARGET_GPU_HOURS)
    console.print(
        f"{demo.SCALERL_SOURCE}. Forecast from the first {amount(demo.SEEN_GPU_HOURS)} GPU-hours:\n"
    )
    print_forecast({**checked.forecast, "at": checked.forecast["at"][-1:]})
    console.print("\nbeside what really happened:\n")
    console.print(_beside(checked))
    console.print(
        f"\n{checked.inside} of {len(checked.rows)} later points inside the interval, "
        f"mean absolute error {checked.mean_absolute_error:.3f}\n"
    )
    console.print(f"{demo.QWEN_SOURCE}. From the first half of each run's compute to its end:\n")
    console.print(_qwen(client))


def _beside(checked: Any) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("GPU-hours", "forecast", "interval", "happened"):
        table.add_column(column, justify="right")
    for compute, value, low, high, measured in checked.rows:
        colour = "green" if low <= measured <= high else "red"
        table.add_row(amount(compute), rate(value), interval(low, high), f"[{colour}]{rate(measured)}[/]")
    return table


def _qwen(client: Client) -> Table:
    from rlcast import demo
    from rlcast.tables import read_table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("run", "forecast of the end", "interval", "happened", "A"):
        table.add_column(column)
    for rows in read_table(demo.data_file("curves", demo.QWEN_FILE)).runs.values():
        checked = demo.check_forecast(client, rows, max(rows.compute) / 2, last=5)
        _, value, low, high, _ = checked.rows[-1]
        happened = sum(measured for *_, measured in checked.rows) / len(checked.rows)
        colour = "green" if low <= happened <= high else "red"
        state = checked.forecast["verdict"]["state"].replace("_", " ")
        table.add_row(rows.run, rate(value), interval(low, high), f"[{colour}]{rate(happened)}[/]", state)
    return table


# -- 2: two real trainings, compared ---------------------------------------------------------------


def _train_and_compare(client: Client, keeper: _Keeper) -> None:
    from rlcast import demo

    console.print("\n[bold]2. Two tiny recipes[/] that differ in one ingredient, trained here and now\n")
    submitted = demo.submit_recipes(client)
    jobs = submitted
    with _shown(jobs) as show:
        for now in demo.follow(client, [job["id"] for job in submitted], keeper.check):
            jobs = now
            show(jobs)
    for job in jobs:
        if job["state"] != "finished":
            raise RlcastError(f"job {job['id']} ({job['run_name']}) {job['state']}: {job.get('error')}")
    console.print("\n[bold]3. Forecast and gate[/]\n")
    candidate, baseline = (job["run_name"] for job in jobs)
    for forecast in client.forecasts(runs=[candidate, baseline]):
        print_forecast(forecast)
        console.print()
    print_decision(client.gate(candidate=candidate, baseline=baseline), candidate, baseline)


@contextlib.contextmanager
def _shown(jobs: Jobs) -> Iterator[Callable[[Jobs], None]]:
    """Shows the jobs as they go on: in place on a terminal, else a line now and then and a last table."""
    if console.is_terminal:
        with Live(_live(jobs), console=console, refresh_per_second=4) as live:
            yield lambda now: live.update(_live(now))
        return
    latest, said_at = jobs, time.monotonic()

    def say(now: Jobs) -> None:
        nonlocal latest, said_at
        latest = now
        if time.monotonic() - said_at > _SAY_EVERY_S:
            said_at = time.monotonic()
            words = (f"{job['run_name']} {progress_words(job) or job['state']}" for job in now)
            console.print(" · ".join(words), markup=False)

    yield say
    console.print(_live(latest))


def _live(jobs: Jobs) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("run", "state", "progress", "evaluations", "pass rate"):
        table.add_column(column)
    for job in jobs:
        rates = [item["pass_rate"] for item in job.get("evaluations", [])]
        course = f"{rate(rates[0])} → {rate(rates[-1])}" if rates else "–"
        table.add_row(job["run_name"], job["state"], progress_words(job), str(len(rates)), course)
    return table
