"""What this host offers: GPUs by UUID, memory, CPUs, and the versions that matter."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlcast
from rlcast.errors import InputError

_QUERY = ["--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits"]
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Gpu:
    uuid: str
    name: str
    memory_gib: float

    def to_dict(self) -> dict[str, Any]:
        return {"uuid": self.uuid, "name": self.name, "memory_gib": self.memory_gib}


def find_gpus() -> list[Gpu]:
    """The GPUs that `nvidia-smi` lists, in its order; none where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        done = subprocess.run(["nvidia-smi", *_QUERY], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"--gpus: nvidia-smi does not answer ({type(error).__name__}); use --gpus none"
        ) from None
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())[:200]
        raise InputError(f"--gpus: nvidia-smi failed ({words}); mend the driver, or use --gpus none")
    return [_parse(line) for line in done.stdout.splitlines() if line.strip()]


def _parse(line: str) -> Gpu:
    uuid, name, memory_mib = (part.strip() for part in line.split(","))
    return Gpu(uuid, name, round(float(memory_mib) / 1024, 1))


def choose_gpus(found: Sequence[Gpu], wanted: str, environ: Mapping[str, str]) -> list[Gpu]:
    """The GPUs of `--gpus all|none|0,1|UUID,…`. `all` keeps to `CUDA_VISIBLE_DEVICES` where that is set,
    as Slurm and container runtimes do. Raises `InputError` for one that is not there."""
    if wanted == "none":
        return []
    if wanted == "all":
        visible = environ.get("CUDA_VISIBLE_DEVICES")
        if visible is None or not found:
            return list(found)
        return _pick(found, visible, "CUDA_VISIBLE_DEVICES")
    return _pick(found, wanted, "--gpus")


def _pick(found: Sequence[Gpu], wanted: str, where: str) -> list[Gpu]:
    by_name = {str(i): gpu for i, gpu in enumerate(found)} | {gpu.uuid: gpu for gpu in found}
    chosen = []
    for name in filter(None, (part.strip() for part in wanted.split(","))):
        if name not in by_name:
            there = ", ".join(f"{i} ({gpu.uuid})" for i, gpu in enumerate(found)) or "none"
            raise InputError(f"{where}: no GPU {name!r} on this host; there are: {there}")
        if by_name[name] not in chosen:
            chosen.append(by_name[name])
    return chosen


def memory_gib(cgroup_limit: Path = _CGROUP_LIMIT) -> float:
    """Memory of the host, or of the container where that is less."""
    import psutil

    total = int(psutil.virtual_memory().total)
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or its limit is the word "max"
        total = min(total, int(cgroup_limit.read_text()))
    return round(total / 2**30, 2)


def versions() -> dict[str, str]:
    """Versions of rlcast, Python and, where it is installed, torch. Imports none of them."""
    found = {"rlcast": rlcast.__version__, "python": platform.python_version()}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found["torch"] = importlib.metadata.version("torch")
    return found


def cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
