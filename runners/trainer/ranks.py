"""Several trainer ranks. The first one runs the whole trainer; the others only take part in its updates.

On one host the first rank starts the others itself. Under torchrun (several hosts) they are there already:
`follow` is what they run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from runners.trainer.children import Child, ChildDied
from runners.trainer.learner import Learner, UpdateStats
from runners.trainer.model import Policy, build_model, load_parameters, parameters_of
from runners.trainer.sharded import Commands, ShardedLearner, join
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.torchrun import torchrun_rank, torchrun_ranks
from runners.trainer.types import Group

_PATIENCE_S = 5.0  # between a broken connection and the end of the process that broke it


def make_learner(
    model: Policy, recipe: Recipe, tokenizer: CharTokenizer, max_length: int
) -> Learner | Leader:
    """One rank updates `model` itself; several update shards, and `model` gets the result."""
    ranks = recipe.devices.trainers
    if torchrun_rank() is not None and torchrun_ranks() != ranks:
        raise InputError(
            f"devices.trainers: the recipe says {ranks}, torchrun started {torchrun_ranks()} ranks"
        )
    if ranks == 1:
        return Learner(model, recipe, tokenizer.pad_id)
    return Leader(model, recipe, tokenizer, max_length)


class Leader:
    """The first rank's learner. `model` is whole: what is pushed, evaluated and saved after each update.

    Raises `ChildDied` with the rank's name when another rank has ended.
    """

    def __init__(self, model: Policy, recipe: Recipe, tokenizer: CharTokenizer, max_length: int) -> None:
        self._model = model
        self._recipe = recipe
        self._size = (tokenizer.vocab_size, max_length, tokenizer.pad_id)
        self._followers: list[Child] = []
        self._commands: Commands | None = None
        self._own: ShardedLearner | None = None

    def start(self) -> None:
        """Brings the other ranks up with the model's present weights."""
        with self._naming_the_dead():
            if torchrun_rank() is None:
                self._start_followers()
            else:
                join(0, torchrun_ranks())
            self._commands = Commands()
            self._commands.send((self._recipe, self._size))
            weights = parameters_of(self._model)
            self._commands.send((weights,))
            self._own = _sharded_learner(self._recipe, self._size, weights)

    def _start_followers(self) -> None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        ranks = self._recipe.devices.trainers
        store = TCPStore("127.0.0.1", 0, ranks, is_master=True, wait_for_workers=False)
        for rank in range(1, ranks):
            self._followers.append(
                Child(f"trainer rank {rank + 1}", _follow_here, store.port, rank, self._recipe)
            )
        join(0, ranks, store)

    def update(self, groups: list[Group], step: int) -> UpdateStats:
        stats: UpdateStats = self._together("update", groups, step)
        load_parameters(self._model, self._together("weights"))
        return stats

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._together("state")
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        self._together("load_state", state)

    def _together(self, method: str, *arguments: Any) -> Any:
        """Calls a method of every rank's `ShardedLearner`. Returns this one's result."""
        assert self._commands is not None
        with self._naming_the_dead():
            self._commands.send((method, *arguments))
            return getattr(self._own, method)(*arguments)

    @contextmanager
    def _naming_the_dead(self) -> Iterator[None]:
        """A rank that has died breaks the others' connections: says who it was instead."""
        try:
            yield
        except RuntimeError as broken:
            for follower in self._followers:
                try:
                    follower.check(_PATIENCE_S)
                except ChildDied as death:
                    raise death from broken
            if torchrun_rank() is not None and "gloo" in str(broken):
                raise ChildDied(
                    f"another trainer rank has ended or cannot be reached; torchrun says which ({broken})"
                ) from broken
            raise

    def watched(self) -> list[Any]:
        return [follower.sentinel for follower in self._followers]

    def check(self) -> None:
        for follower in self._followers:
            follower.check()

    def close(self) -> None:
        for follower in self._followers:
            follower.close()
        if torchrun_rank() is not None and self._commands is not None:
            with suppress(RuntimeError):  # they may be gone, which has been said already
                self._commands.send(None)
        if dist.is_initialized():
            dist.destroy_process_group()


def follow_torchrun(recipe: Recipe) -> None:
    """Under torchrun, on every rank but the first."""
    torch.set_num_threads(recipe.devices.threads)
    join(torchrun_rank() or 0, torchrun_ranks())
    follow()


def follow() -> None:
    """What a rank other than the first does: takes part in every call until the first one has finished."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the first rank decides when to stop
    commands = Commands()
    recipe, size = commands.receive() or (None, None)
    assert isinstance(recipe, Recipe)
    assert size is not None
    [weights] = commands.receive() or (None,)
    learner = _sharded_learner(recipe, size, weights)
    while (command := commands.receive()) is not None:
        method, *arguments = command
        getattr(learner, method)(*arguments)


def _sharded_learner(recipe: Recipe, size: tuple[int, int, int], weights: Any) -> ShardedLearner:
    vocab_size, max_length, pad_id = size
    model = build_model(recipe.model, recipe.precision, vocab_size, max_length)
    load_parameters(model, weights)
    return ShardedLearner(model, recipe, pad_id)


def _follow_here(connection: Connection, port: int, rank: int, recipe: Recipe) -> None:
    torch.set_num_threads(recipe.devices.threads)
    ranks = recipe.devices.trainers
    join(rank, ranks, TCPStore("127.0.0.1", port, ranks, is_master=False))
    follow()
