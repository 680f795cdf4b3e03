"""Checkpoints that are either whole or not there.

A checkpoint is a folder `step-00000120` with the weights (safetensors), the optimiser's state, everything
else as JSON, and a manifest of hashes that is written last. The folder is made under another name, synced,
and renamed, so that a crash at any moment leaves the older checkpoints untouched.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from runners.trainer.model import State

_WEIGHTS, _OPTIMIZER, _STATE, _MANIFEST = "model.safetensors", "optimizer.pt", "state.json", "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on exactly where it stood. `state` is JSON-ready."""

    step: int
    weights: State
    optimizer: dict[str, Any]
    state: dict[str, Any]


class CheckpointStore:
    """The checkpoints of one run, of which the newest `keep` stay."""

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, checkpoint: Checkpoint) -> None:
        target = self._folder / f"step-{checkpoint.step:08d}"
        temporary = self._folder / f".tmp-{target.name}-{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        save_file({k: v.contiguous() for k, v in checkpoint.weights.items()}, temporary / _WEIGHTS)
        torch.save(checkpoint.optimizer, temporary / _OPTIMIZER)
        (temporary / _STATE).write_text(json.dumps(checkpoint.state, allow_nan=False))
        hashes = {file.name: _sha256(file) for file in temporary.iterdir()}
        (temporary / _MANIFEST).write_text(json.dumps(hashes))
        for path in (*temporary.iterdir(), temporary):
            _sync(path)
        if target.exists():  # the same step once more, e.g. a stop right after an evaluation
            shutil.rmtree(target)
        temporary.rename(target)
        _sync(self._folder)
        self._prune()

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint whose files all have the hashes of its manifest."""
        for folder in reversed(self._complete()):
            if _is_intact(folder):
                return Checkpoint(
                    step=int(folder.name.removeprefix("step-")),
                    weights=load_file(folder / _WEIGHTS),
                    optimizer=torch.load(folder / _OPTIMIZER, weights_only=True),
                    state=json.loads((folder / _STATE).read_text()),
                )
        return None

    def _complete(self) -> list[Path]:
        return sorted(self._folder.glob("step-*"))

    def _prune(self) -> None:
        for folder in self._complete()[: -self._keep]:
            shutil.rmtree(folder)
        for leftover in self._folder.glob(".tmp-*"):
            shutil.rmtree(leftover)


def _is_intact(folder: Path) -> bool:
    try:
        hashes = json.loads((folder / _MANIFEST).read_text())
        return all(_sha256(folder / name) == sha256 for name, sha256 in hashes.items())
    except (OSError, ValueError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
