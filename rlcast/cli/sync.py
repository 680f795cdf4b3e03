"""`rlcast sync`: sends what training processes logged and could not send."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rlcast.cli.output import console, note, print_error
from rlcast.errors import ExitCode, InputError


def sync_command(
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder= of start_run, or one run in it (default: ~/.rlcast/logged)."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Send one run under this name instead of its own.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Send from the beginning; what is there already is not doubled.")
    ] = False,
) -> None:
    """Send logged points that a dead process left behind. Sending twice adds nothing.

    Exit codes: 0 all is sent, 2 a run is refused, 4 service not reachable.
    """
    from rlcast.client import Client
    from rlcast.tracking.delivery import Delivery, RunRefused
    from rlcast.tracking.folder import default_spool_folder, run_folders
    from rlcast.tracking.sender import deliver_now

    folders = run_folders(folder or default_spool_folder())
    if name and len(folders) > 1:
        raise InputError(
            f"--name is for one run, and {folder} holds {len(folders)}; give the run's folder", "--name"
        )
    refused = False
    for found in folders:
        identity = found.identity()
        identity = replace(identity, name=name or identity.name)
        identity.check()
        if again:
            found.delivered.unlink(missing_ok=True)
        delivery = Delivery(found, Client, identity)
        try:
            if not deliver_now(found, delivery):
                note(f"{identity.name}: a running process is sending it")
                continue
        except RunRefused as error:
            refused = True
            print_error(f"{error}; or send it as another: rlcast sync {found.root} --name NEW-NAME")
            continue
        words = f", {delivery.n_refused} refused (see {found.refused})" if delivery.n_refused else ""
        console.print(f"{identity.name}: {delivery.n_sent} points sent{words}", markup=False)
        refused = refused or delivery.n_refused > 0
    if refused:
        raise typer.Exit(ExitCode.USAGE)
