"""One rank's part of an update: FSDP2 shards of the weights and the optimiser, and its share of the rows."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from rlcast.recipe import Recipe
from runners.trainer.batch import Batch
from runners.trainer.learner import Learner, Part
from runners.trainer.model import Policy, State

COLLECTIVE_TIMEOUT = timedelta(minutes=5)
_COMMAND_TIMEOUT = timedelta(days=7)  # the first rank may sample and evaluate for long; its death is noticed


def join(rank: int, ranks: int, store: TCPStore | None = None) -> None:
    """Enters the group of all ranks, through `store` or as torchrun's environment says."""
    address: dict[str, Any] = {"store": store, "rank": rank, "world_size": ranks} if store else {}
    dist.init_process_group("gloo", timeout=COLLECTIVE_TIMEOUT, **address)


def shard(model: Policy) -> DeviceMesh:
    """Splits the weights of every layer, and of what is outside the layers, over the ranks. In place."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.network.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return mesh


class ShardedLearner(Learner):
    """Does on its shard what `Learner` does on the whole, with the same result up to rounding.

    All ranks call each method at the same time, with the same groups. The loss's weights come from the whole
    batch, so shares of rows just add up; FSDP averages gradients over the ranks, which is undone here.
    """

    def __init__(self, model: Policy, recipe: Recipe, pad_id: int, max_rows: int = 512) -> None:
        self._mesh = shard(model)
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._gradient_scale = float(self._ranks)
        super().__init__(model, recipe, pad_id, max_rows)

    def _own_rows(self, batch: Batch) -> Batch:
        """Every n-th row. Where the last ones are fewer than the ranks, a row without weight stands in: each
        rank must make the same number of passes, since each pass gathers weights from all."""
        rows = torch.arange(len(batch) + -len(batch) % self._ranks)[self._rank :: self._ranks]
        is_real = rows < len(batch)
        own = {field.name: getattr(batch, field.name)[rows * is_real] for field in fields(batch)}
        own["mask"] = own["mask"] & is_real[:, None]
        own["weights"] = own["weights"] * is_real
        return Batch(**own)

    def _parts_of_all_ranks(self, parts: list[Part]) -> list[Part]:
        everyones: list[Any] = [None] * self._ranks
        dist.all_gather_object(everyones, parts)
        return [part for parts in everyones for part in parts]

    def _clip_gradients(self) -> float:
        gradients = [p.grad.to_local() for p in self._model.parameters() if isinstance(p.grad, DTensor)]
        square = torch.stack([gradient.square().sum() for gradient in gradients]).sum()
        dist.all_reduce(square)
        norm = float(square.sqrt())
        if not math.isfinite(norm):
            raise ArithmeticError(f"the gradient's norm is {norm}")
        scale = min(1.0, self._recipe.optimizer.max_grad_norm / (norm + 1e-6))
        for gradient in gradients:
            gradient.mul_(scale)
        return norm

    def weights(self) -> State:
        """The whole weights, on every rank."""
        return {name: _whole(parameter.detach()) for name, parameter in self._model.named_parameters()}

    def state(self) -> dict[str, Any]:
        """As `Learner.state()`: whole tensors, on every rank."""
        state = super().state()
        whole = {
            i: {key: _whole(value) for key, value in entry.items()} for i, entry in state["state"].items()
        }
        return {**state, "state": whole}

    def load_state(self, state: dict[str, Any]) -> None:
        parameters = list(self._model.parameters())
        shards = {
            i: {key: self._shard_like(parameters[i], value) for key, value in entry.items()}
            for i, entry in state["state"].items()
        }
        super().load_state({**state, "state": shards})

    def _shard_like(self, parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if not isinstance(parameter, DTensor) or value.shape != parameter.shape:
            return value  # the number of steps
        return distribute_tensor(value, self._mesh, parameter.placements, src_data_rank=None)


def _whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value


class Commands:
    """What the first rank asks of the others: a method's name and its arguments, or None for the end."""

    def __init__(self) -> None:
        self._group = dist.new_group(timeout=_COMMAND_TIMEOUT)

    def send(self, command: tuple[Any, ...] | None) -> None:
        dist.broadcast_object_list([command], src=0, group=self._group)

    def receive(self) -> tuple[Any, ...] | None:
        box: list[Any] = [None]
        dist.broadcast_object_list(box, src=0, group=self._group)
        command: tuple[Any, ...] | None = box[0]
        return command
