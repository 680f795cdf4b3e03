"""Advantages: how much better a completion was than the others of its prompt.

    centred_i = r_i - mean of its prompt's rewards

then divided by a spread (arXiv 2510.13786, §3.2):

    batch          std of all centred rewards of the batch (ScaleRL)
    prompt         std of the prompt's own rewards (GRPO)
    none           nothing
    leave-one-out  multiplied by G / (G - 1), which equals r_i minus the mean of the *other* rewards

All standard deviations divide by n. The batch's is taken after zero-variance prompts have been dropped: with
them it would shrink, and every advantage grow, the more prompts are solved.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rlcast.recipe_parts import AdvantageScale

Rewards = Float[Tensor, " sample"]
GroupIndex = Int[Tensor, " sample"]


def centred_rewards(rewards: Rewards, group: GroupIndex) -> Rewards:
    """`[1, 0, 0, 0]` of one prompt gives `[.75, -.25, -.25, -.25]`; a single sample gives 0."""
    return rewards - group_means(rewards, group)


def group_means(values: Rewards, group: GroupIndex) -> Rewards:
    """Each sample's value replaced by the mean of its prompt."""
    return (_sums(values, group) / group_sizes(values, group))[group]


def group_sizes(values: Rewards, group: GroupIndex) -> Float[Tensor, " prompt"]:
    return _sums(torch.ones_like(values), group).clamp(min=1)


def advantages(rewards: Rewards, group: GroupIndex, scale: AdvantageScale) -> Rewards:
    """Advantages of a batch.

    rewards: one a sample; group: index 0..P-1 of the sample's prompt. A batch or a prompt without any spread
    gets zeros, never NaN.
    """
    centred = centred_rewards(rewards, group)
    if scale == "batch":
        spread = centred.square().mean().sqrt().expand_as(centred)
    elif scale == "prompt":
        spread = group_means(centred.square(), group).sqrt()
    elif scale == "leave-one-out":
        sizes = group_sizes(rewards, group)[group]
        return torch.where(sizes > 1, centred * sizes / (sizes - 1).clamp(min=1), torch.zeros_like(centred))
    else:
        return centred
    return torch.where(spread > 1e-8, centred / spread.clamp(min=1e-8), torch.zeros_like(centred))


def _sums(values: Rewards, group: GroupIndex) -> Float[Tensor, " prompt"]:
    prompts = int(group.max()) + 1 if len(group) else 0
    return torch.zeros(prompts, dtype=values.dtype).index_add_(0, group, values)
