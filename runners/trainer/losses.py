"""Policy losses, one value a token, to be minimised.

With r = pi_train / pi_gen of a token, A the advantage of its completion and sg() "no gradient through this":

    reinforce  -A log pi_train
    cispo      -sg(clamp(r, floor, cispo_cap)) A log pi_train                     arXiv 2506.13585
    grpo       -min(r A, clamp(r, 1 - clip, 1 + clip) A)                          arXiv 2402.03300
    dapo       -min(r A, clamp(r, 1 - clip_low, 1 + clip_high) A)                 arXiv 2503.14476
    gspo       as dapo, with r of the whole completion, exp(mean_t log r_t)       arXiv 2507.18071

CISPO keeps a gradient on every token; the clipped ones lose it where the bound is active.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rlcast.recipe_parts import Cispo, Dapo, Grpo, Gspo, Loss

Tokens = Float[Tensor, "sample token"]
Mask = Bool[Tensor, "sample token"]


def token_losses(
    loss: Loss, logprobs: Tokens, old_logprobs: Tokens, advantages: Float[Tensor, " sample"], mask: Mask
) -> Tokens:
    """The loss of every token; 0 where `mask` is False, whatever stands there.

    logprobs: of the policy in training, with gradient. old_logprobs: of the policy that sampled.
    """
    advantage = advantages[:, None]
    log_ratio = torch.where(mask, logprobs - old_logprobs, torch.zeros_like(logprobs))
    if isinstance(loss, Cispo):
        values = cispo(logprobs, log_ratio.exp(), advantage, loss.cispo_cap, loss.floor)
    elif isinstance(loss, Grpo):
        values = clipped(log_ratio.exp(), advantage, loss.clip, loss.clip)
    elif isinstance(loss, Dapo):
        values = clipped(log_ratio.exp(), advantage, loss.clip_low, loss.clip_high)
    elif isinstance(loss, Gspo):
        values = clipped(sequence_ratio(log_ratio, mask), advantage, loss.clip_low, loss.clip_high)
    else:
        values = -advantage * logprobs
    return torch.where(mask, values, torch.zeros_like(values))


def cispo(logprobs: Tokens, ratio: Tokens, advantage: Tensor, cap: float, floor: float) -> Tokens:
    """Truncated importance sampling: the weight has no gradient, so no token is ever switched off."""
    return -ratio.detach().clamp(floor, cap) * advantage * logprobs


def clipped(ratio: Tokens, advantage: Tensor, clip_low: float, clip_high: float) -> Tokens:
    """PPO's pessimistic bound."""
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)


def sequence_ratio(log_ratio: Tokens, mask: Mask) -> Tokens:
    """exp of the mean log ratio of each completion, repeated for its tokens."""
    lengths = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (log_ratio * mask).sum(dim=1, keepdim=True) / lengths
    return mean.exp().expand_as(log_ratio)
