"""`rlcast worker` runs jobs on this host; `rlcast workers` shows all of them and drains one."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from rlcast.cli.output import Json, console, print_json
from rlcast.errors import InputError

app = typer.Typer(rich_markup_mode="markdown")

_COLOURS = {"idle": "green", "busy": "cyan", "starting": "cyan", "draining": "yellow", "gone": "dim"}


def require_runner() -> None:
    """Raises `InputError` with the remedy when the runner's packages are not installed."""
    missing = [name for name in ("celery", "redis", "psutil") if not importlib.util.find_spec(name)]
    if missing:
        raise InputError(
            f"the runner is not installed ({', '.join(missing)} missing): pip install 'rlcast[runner]'"
        )


def worker_command(
    gpus: Annotated[
        str, typer.Option("--gpus", metavar="all|none|0,1", help="GPUs to offer, by number or UUID.")
    ] = "all",
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Queue to read (repeatable; default: gpu and cpu)."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="What jobs can ask for (repeatable)."),
    ] = None,
    jobs_at_once: Annotated[int, typer.Option("--jobs-at-once", min=1, max=64)] = 1,
    name: Annotated[str | None, typer.Option("--name", help="Default: the host's name.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="The service (default: $RLCAST_URL).")] = None,
    broker: Annotated[
        str | None, typer.Option("--broker", help="The broker (default: $RLCAST_BROKER_URL).")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="File with a token of scope `ingest` (default: $RLCAST_TOKEN)."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of jobs (default: $RLCAST_HOME or ~/.rlcast).")
    ] = None,
) -> None:
    """Run jobs on this host. It registers with the service and takes jobs that fit it.

    SIGTERM asks running jobs for a checkpoint, gives them back and ends; SIGUSR1 drains: running jobs are
    finished, no more are taken.
    """
    require_runner()
    given = {
        "RLCAST_URL": url,
        "RLCAST_BROKER_URL": broker,
        "RLCAST_TOKEN_FILE": str(token_file) if token_file else None,
        "RLCAST_HOME": str(data.expanduser().resolve()) if data else None,
    }
    os.environ.update({key: value for key, value in given.items() if value})
    if token_file:
        if not token_file.is_file():
            raise InputError(f"--token-file {token_file} is not there", "--token-file")
        os.environ.pop("RLCAST_TOKEN", None)  # it would be preferred to the file
    if not os.environ.get("RLCAST_BROKER_URL"):
        raise InputError("no broker: give --broker redis://HOST:6379/0, or set RLCAST_BROKER_URL", "--broker")
    options = ["--gpus", gpus, "--jobs-at-once", str(jobs_at_once), *(["--name", name] if name else [])]
    options += [word for one in queue or () for word in ("--queue", one)]
    options += [word for one in label or () for word in ("--label", one)]
    # In the place of this process, so that signals of systemd, Slurm or Kubernetes reach the worker itself.
    os.execv(sys.executable, [sys.executable, "-m", "runners.worker", *options])


@app.callback(invoke_without_command=True)
def workers_command(
    context: typer.Context,
    gone: Annotated[bool, typer.Option("--gone", help="Also those that ended within a week.")] = False,
    json_output: Json = False,
) -> None:
    """List workers. Healthy means that a worker takes jobs, not only that it answers."""
    if context.invoked_subcommand is not None:
        return
    from rlcast.client import Client

    with Client() as client:
        found = list(client.workers(gone=gone or None))
    if json_output:
        print_json({"workers": found})
    elif not found:
        console.print("no workers; start one with: rlcast worker")
    else:
        console.print(workers_table(found))


@app.command("drain")
def drain_command(
    worker: Annotated[str, typer.Argument(metavar="NAME", help="The worker's name or id.")],
) -> None:
    """Have a worker finish its jobs, take no more, and end."""
    from rlcast.client import Client

    with Client() as client:
        found = client.drain_worker(worker)
    n_jobs = len(found["jobs"])
    words = f"after its {n_jobs} job{'s' if n_jobs > 1 else ''}" if n_jobs else "within seconds"
    console.print(f"worker {found['name']} drains and ends {words}", markup=False)


def workers_table(found: list[dict[str, Any]]) -> Table:
    """Workers with what they offer and whether they consume, one a row."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("worker", "state", "health", "GPUs", "memory", "queues", "labels", "jobs", "took last"):
        table.add_column(column)
    for item in found:
        state = "draining" if item["drain_requested"] and item["state"] != "gone" else item["state"]
        health = "[green]healthy[/]" if item["healthy"] else f"[red]{escape(item['reason'] or '')}[/]"
        table.add_row(
            escape(item["name"]),
            f"[{_COLOURS.get(state, 'default')}]{state}[/]",
            health,
            escape(_gpus(item["devices"])),
            f"{item['memory_gib']:.0f} GiB",
            ", ".join(item["queues"]),
            escape(", ".join(f"{k}={v}" for k, v in item["labels"].items())),
            f"{len(item['jobs'])}/{item['slots']}",
            (item["last_taken_at"] or "never")[:19].replace("T", " "),
        )
    return table


def _gpus(devices: list[dict[str, Any]]) -> str:
    """Such as "4 × NVIDIA H200 (141 GiB)"."""
    kinds: dict[tuple[str, float], int] = {}
    for device in devices:
        key = (device["name"], device["memory_gib"])
        kinds[key] = kinds.get(key, 0) + 1
    return ", ".join(f"{n} × {name} ({gib:.0f} GiB)" for (name, gib), n in kinds.items()) or "–"
