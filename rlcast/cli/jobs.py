"""`rlcast jobs`, `rlcast cancel`."""

from __future__ import annotations

import itertools
import time
from typing import Annotated, Any

import typer
from rich.table import Table

from rlcast.cli.output import Json, console, print_json, rate

_COLOURS = {
    "finished": "green",
    "stopped": "yellow",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "starting": "cyan",
}


def wait_for_end(client: Any, job_id: str, poll_s: float = 2.0) -> dict[str, Any]:
    """Waits until the job has ended and returns it."""
    from rlcast.client import ENDED

    while True:
        job: dict[str, Any] = client.job(job_id)
        if job["state"] in ENDED:
            return job
        time.sleep(poll_s)


def jobs_command(
    job: Annotated[str | None, typer.Argument(help="Show one job with the end of its log.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 20,
    json_output: Json = False,
) -> None:
    """List jobs, or show one."""
    from rlcast.client import Client

    with Client() as client:
        if job:
            found = client.job(job)
            print_json(found) if json_output else _print_job(found)
            return
        items = list(itertools.islice(client.jobs(state=state), limit))
    if json_output:
        print_json({"jobs": items})
    elif not items:
        console.print("no jobs yet; queue one with: rlcast submit RECIPE.yaml")
    else:
        console.print(jobs_table(items))


def jobs_table(items: list[dict[str, Any]]) -> Table:
    """Jobs with state, progress and error, one a row."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("job", no_wrap=True, min_width=36)  # whole ids: they are copied into other commands
    for column in ("run", "state", "attempt", "progress", "note"):
        table.add_column(column)
    for item in items:
        colour = _COLOURS.get(item["state"], "default")
        table.add_row(
            item["id"],
            _plain(item["run_name"]),
            f"[{colour}]{item['state']}[/]",
            f"{item['attempt']}/{item['max_attempts']}",
            progress_words(item),
            _plain((item.get("error") or stop_words(item))[:60]),
        )
    return table


def stop_words(job: dict[str, Any]) -> str:
    """Which rule of its own stopped a job."""
    rules = {"max_hours": "its hours are used up", "max_gpu_hours": "its GPU-hours are used up"}
    return rules.get(job.get("stop_reason") or "", "")


def progress_words(job: dict[str, Any]) -> str:
    """The job's progress in a few words."""
    progress = job.get("progress") or {}
    if "step" not in progress:
        return str(progress.get("phase") or "")
    words = f"step {progress['step']}/{progress.get('total_steps', '?')}"
    if isinstance(progress.get("reward_mean"), int | float):
        words += f", reward {rate(progress['reward_mean'])}"
    return words


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _print_job(job: dict[str, Any]) -> None:
    console.print(jobs_table([job]))
    if job.get("error"):
        console.print(f"error: {job['error']}", markup=False, style="red")
    if job.get("log_tail"):
        console.print(job["log_tail"], markup=False, style="dim")


def cancel_command(job: Annotated[str, typer.Argument(help="The job's id.")]) -> None:
    """Cancel a job. A running trainer writes a checkpoint and stops within about 20 seconds."""
    from rlcast.client import Client

    with Client() as client:
        found = client.cancel(job)
    words = "is cancelled" if found["state"] == "cancelled" else "will stop"
    console.print(f"job {found['id']} ({found['run_name']}) {words}", markup=False)
