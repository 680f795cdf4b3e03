"""Whether torchrun started this process. No torch here: its threads are set before it is imported."""

from __future__ import annotations

import os


def torchrun_rank() -> int | None:
    """This process's rank when torchrun started it, else None."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else None


def torchrun_ranks() -> int:
    """How many processes torchrun has started, on all hosts."""
    return int(os.environ["WORLD_SIZE"])
