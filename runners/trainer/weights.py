"""Hands the newest weights to a generator in another process, through shared memory."""

from __future__ import annotations

import time
from multiprocessing.synchronize import Lock

import torch
from jaxtyping import Float
from torch import Tensor


class WeightMailbox:
    """Holds one version of all parameters; a push replaces it, and a reader takes the newest or nothing.

    Nobody waits for anybody's work: the lock is held for one copy. Pickled to a child, it stays the same
    memory.
    """

    def __init__(self, model: torch.nn.Module, lock: Lock) -> None:
        count = sum(parameter.numel() for parameter in model.parameters())
        self._values: Float[Tensor, " value"] = torch.zeros(count).share_memory_()
        self._version = torch.full((1,), -1, dtype=torch.long).share_memory_()
        self._lock = lock

    @property
    def version(self) -> int:
        """The version in the box, -1 while it is empty."""
        return int(self._version)

    def push(self, model: torch.nn.Module, version: int) -> float:
        """Puts the model's weights in as `version`. Returns the seconds it took."""
        began = time.perf_counter()
        with self._lock, torch.no_grad():
            start = 0
            for parameter in model.parameters():
                end = start + parameter.numel()
                self._values[start:end] = parameter.flatten()
                start = end
            self._version.fill_(version)
        return time.perf_counter() - began

    def pull(self, model: torch.nn.Module) -> int:
        """Copies the box into the model in place. Returns the version."""
        with self._lock, torch.no_grad():
            start = 0
            for parameter in model.parameters():
                end = start + parameter.numel()
                parameter.copy_(self._values[start:end].view_as(parameter))
                start = end
            return int(self._version)
