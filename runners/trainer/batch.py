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
from runners.trainer.types import Group


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


def has_signal(group: Group) -> bool:
    """False when all rewards of a prompt are the same: every advantage would be zero."""
    return len(set(group.rewards())) > 1


def make_batch(groups: list[Group], recipe: Recipe, pad_id: int) -> Batch:
    """Drops completions without a reward and, when the recipe says so, prompts without signal."""
    kept = [group for group in groups if has_signal(group) or not recipe.filters.zero_variance]
    rows = [(index, g, s) for index, g in enumerate(kept) for s in g.samples if s.reward is not None]
    group_index = torch.tensor([index for index, _, _ in rows], dtype=torch.long)
    rewards = torch.tensor([s.reward for _, _, s in rows], dtype=torch.float64)
    width = max((len(g.prompt_ids) + len(s.token_ids) for _, g, s in rows), default=1)
    token_ids = torch.full((len(rows), width), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.bool)
    old_logprobs = torch.zeros((len(rows), width))
    for row, (_, group, sample) in enumerate(rows):
        start, end = len(group.prompt_ids), len(group.prompt_ids) + len(sample.token_ids)
        token_ids[row, :end] = torch.tensor(group.prompt_ids + sample.token_ids)
        old_logprobs[row, start:end] = torch.tensor(sample.logprobs)
        mask[row, start:end] = True
    return Batch(
        token_ids=token_ids,
        mask=mask,
        old_logprobs=old_logprobs,
        advantages=advantages(rewards, group_index, recipe.advantage.scale).float(),
        weights=sample_weights(mask.sum(dim=1), group_index, recipe.aggregation).float(),
    )
