"""`rlcast up`: everything on this machine."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from rlcast.cli.output import console
from rlcast.errors import InputError

Data = Annotated[
    Path | None, typer.Option("--data", help="Data folder (default: $RLCAST_HOME or ~/.rlcast).")
]
Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Port (default: 8700 or the next free).")
]


def require_service() -> None:
    """Raises `InputError` with the remedy when the service's packages are not installed."""
    missing = [
        name for name in ("fastapi", "uvicorn", "sqlalchemy", "celery") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise InputError(
            f"the service is not installed ({', '.join(missing)} missing): pip install 'rlcast[service]'"
        )


def up_command(
    data: Data = None,
    port: Port = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; anything but loopback is open to others.")
    ] = "127.0.0.1",
    jobs_at_once: Annotated[
        int,
        typer.Option(
            "--jobs-at-once", min=0, max=64, help="Training jobs in parallel on this machine; 0: no worker."
        ),
    ] = 1,
) -> None:
    """Start database, broker, API, dashboard and a worker; stop all with Ctrl-C.

    Everything lives in one data folder and listens on 127.0.0.1. With RLCAST_DATABASE_URL or
    RLCAST_BROKER_URL set, those servers are used instead of the embedded ones.
    """
    require_service()
    from rlcast.stack.folder import default_folder
    from rlcast.stack.up import Stack, UpOptions, stop_on_signals

    options = UpOptions(folder=data or default_folder(), host=host, port=port, jobs_at_once=jobs_at_once)
    stack = Stack(options, say=lambda text: console.print(text, markup=False, style="dim"))
    with stop_on_signals(stack), stack:
        print_address(stack.url, stack.folder.token_file)
        stack.watch()
        console.print("stopping …", style="dim")
    console.print("stopped", style="dim")


def print_address(url: str, token_file: Path) -> None:
    """Where the dashboard is and how to sign in. The token stands behind '#': browsers do not send that."""
    console.print(f"\n[bold]rlcast is up[/]  {url}")
    console.print(f"  dashboard  {url}/login#token={token_file.read_text().strip()}", markup=False)
    console.print(f"  API        {url}/api/v1   (token in {token_file})", markup=False)
    if (
        os.environ.get("RLCAST_HOME", "") != str(token_file.parent)
        and token_file.parent != Path.home() / ".rlcast"
    ):
        console.print(f"  commands   export RLCAST_HOME={token_file.parent}", markup=False)
    console.print("  Ctrl-C stops everything\n")
