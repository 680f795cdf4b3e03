"""What runs need of the process: its rank, its end, and its forks."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from typing import TYPE_CHECKING

from rlcast.errors import InputError

if TYPE_CHECKING:
    from rlcast.tracking.run import Run

_EXIT_FLUSH_S = 10.0

#: Runs to flush when the interpreter ends without `finish`.
live_runs: weakref.WeakSet[Run] = weakref.WeakSet()


def _finish_all() -> None:
    for run in list(live_runs):
        with contextlib.suppress(InputError):
            run.finish(_EXIT_FLUSH_S)


def _after_fork_in_child() -> None:
    for run in list(live_runs):
        run.after_fork()


atexit.register(_finish_all)
os.register_at_fork(after_in_child=_after_fork_in_child)


def rank_of_process() -> int:
    """`RANK` (torchrun), else `SLURM_PROCID` (srun), else 0."""
    for variable in ("RANK", "SLURM_PROCID"):
        text = os.environ.get(variable, "")
        if text.isdecimal():
            return int(text)
    return 0
