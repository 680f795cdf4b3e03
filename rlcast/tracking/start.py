"""`start_run`: begins to log a run, or goes on with it."""

from __future__ import annotations

import logging
import operator
import os
from pathlib import Path
from typing import Any

from rlcast.client import Client
from rlcast.errors import InputError
from rlcast.tracking.folder import RunFolder, default_spool_folder
from rlcast.tracking.identity import RunIdentity
from rlcast.tracking.lifetime import rank_of_process
from rlcast.tracking.run import Run

log = logging.getLogger("rlcast")

_REQUEST_TIMEOUT_S = 10.0


def start_run(
    *,
    recipe: str,
    benchmark: str,
    name: str | None = None,
    seed: int | None = None,
    model: str | None = None,
    task: str | None = None,
    unit: str = "gpu_hours",
    devices: float | None = None,
    url: str | None = None,
    token: str | None = None,
    folder: str | Path | None = None,
    rank: int | None = None,
    strict: bool = False,
) -> Run:
    """Begins to log a run, or goes on with the one that has this name (and the same other fields).

    Args:
        recipe: what is trained; made in the service when it does not know it.
        benchmark: what the pass rates are measured on.
        name: the run's id. Default: `RLCAST_RUN`, else a new name. The same name in a later process
            continues the run.
        unit: the run's unit of compute.
        devices: GPUs held, generators and trainers together: compute is then measured (wall time x
            devices, evaluation left out) and `log` needs none. With `unit="cpu_hours"`, cores.
        url, token: the service; default as for the command line (`RLCAST_URL`, `RLCAST_TOKEN`, …).
        folder: where runs are kept until they are sent, and after. Default: `~/.rlcast/logged`.
        rank: of this process; only rank 0 logs. Default: `RANK`, else `SLURM_PROCID`, else 0.
        strict: raise instead of warning (`InputError` for a value, `OSError` for the folder).

    Never waits for the service. Without `strict` it never raises for a value: a run that cannot be logged
    is one warning, and a `Run` that does nothing.
    """
    if (rank if rank is not None else rank_of_process()) != 0:
        return Run(None, strict=strict)
    try:
        identity = RunIdentity(
            name=name or os.environ.get("RLCAST_RUN") or _new_name(recipe),
            recipe=recipe,
            benchmark=benchmark,
            compute_unit=unit,
            model=model,
            task=task,
            seed=None if seed is None else operator.index(seed),
        )
        identity.check()
        _check_devices(devices, unit)
        root = Path(folder).expanduser() if folder is not None else default_spool_folder()
        return Run(
            identity,
            folder=RunFolder(root / identity.folder_name),
            devices=devices,
            new_client=lambda: Client(url, token, timeout_s=_REQUEST_TIMEOUT_S),
            strict=strict,
        )
    except Exception as error:  # whatever it is: a training must not end for it
        if strict:
            raise
        log.warning("rlcast: NOTHING OF THIS RUN IS LOGGED: %s. Training goes on.", error)
        return Run(None, strict=strict)


def _new_name(recipe: object) -> str:
    import secrets
    from datetime import UTC, datetime

    return f"{recipe}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _check_devices(devices: Any, unit: str) -> None:
    if devices is None:
        return
    if unit not in ("gpu_hours", "cpu_hours"):
        raise InputError(
            f"devices measures gpu_hours or cpu_hours, and the unit is {unit}; leave one out", "devices"
        )
    if isinstance(devices, bool) or not isinstance(devices, int | float) or not 0 < devices < 1e7:
        raise InputError(f"devices is {devices!r}; give how many GPUs the run holds", "devices")
