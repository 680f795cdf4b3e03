"""Groups as padded tensors, with the filters, advantages and weights that the loss needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rlcast.recipe import Recipe
from runners.trainer.advantages import advantages
from runners.trainer.aggregation import sample_weights
from runners.trainer.length import training_rewards
from runners.trainer.types import Group, Sample


@dataclass(frozen=True)
class Batch:
    """One row a completion, padded on the right: causal attention never looks at what comes after."""

    token_ids: Int[Tensor, "sample position"]
    mask: Bool[Tensor, "sample position"]  # True on tokens that the policy chose
    old_logprobs: Float[Tensor, "sample position"]
    advantages: Float[Tensor, " sample"]
    weights: Float[Tensor, " sample"]

    def __len__(self) -> int:
        return len(self.token_ids)

    def split(self, rows: int) -> Iterator[Batch]:
        for start in range(0, len(self), rows):
            part = {f.name: getattr(self, f.name)[start : start + rows] for f in fields(self)}
            yield Batch(**part)


@dataclass(frozen=True)
class Row:
    """One completion to train on: its prompt's place among those kept, and the reward it trains with."""

    index: int
    prompt_ids: list[int]
    sample: Sample
    reward: float


def rows_of(groups: list[Group], recipe: Recipe) -> list[Row]:
    """Drops completions without a reward and, when the recipe says so, prompts without signal: those whose
    rewards are all the same, so that their advantages would be zero."""
    rows: list[Row] = []
    kept = 0
    for group in groups:
        rewards = training_rewards(group, recipe.length)
        if recipe.filters.zero_variance and len({r for r in rewards if r is not None}) < 2:
            continue
        pairs = zip(group.samples, rewards, strict=True)
        rows += [Row(kept, group.prompt_ids, s, r) for s, r in pairs if r is not None]
        kept += 1
    return rows


def make_batch(groups: list[Group], recipe: Recipe, pad_id: int) -> Batch:
    """The rows of `rows_of` as tensors."""
    rows = rows_of(groups, recipe)
    group_index = torch.tensor([row.index for row in rows], dtype=torch.long)
    rewards = torch.tensor([row.reward for row in rows], dtype=torch.float64)
    width = max((len(row.prompt_ids) + len(row.sample.token_ids) for row in rows), default=1)
    token_ids = torch.full((len(rows), width), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.bool)
    old_logprobs = torch.zeros((len(rows), width))
    for i, row in enumerate(rows):
        start, end = len(row.prompt_ids), len(row.prompt_ids) + len(row.sample.token_ids)
        token_ids[i, :end] = torch.tensor(row.prompt_ids + row.sample.token_ids)
        old_logprobs[i, start:end] = torch.tensor(row.sample.logprobs)
        mask[i, start:end] = torch.tensor(row.sample.chosen)
    return Batch(
        token_ids=token_ids,
        mask=mask,
        old_logprobs=old_logprobs,
        advantages=advantages(rewards, group_index, recipe.advantage.scale).float(),
        weights=sample_weights(mask.sum(dim=1), group_index, recipe.aggregation).float(),
    )
