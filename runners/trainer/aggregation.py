"""From token losses to one number: which unit counts the same.

    prompt  mean over prompts of (sum over all tokens of the prompt / their number)      ScaleRL, DAPO
    sample  mean over completions of their token mean                                    GRPO
    token   mean over all tokens

Each is written as one weight a completion, from the counts of the *whole* batch. The loss is then a plain
sum of weight x token loss, so that splitting the batch, reordering it or spreading it over ranks cannot
change it.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rlcast.recipe_parts import Aggregation


def sample_weights(
    token_counts: Int[Tensor, " sample"], group: Int[Tensor, " sample"], how: Aggregation
) -> Float[Tensor, " sample"]:
    """The weight of every token of each completion, float64.

    token_counts: trained tokens of the completion. Prompts and completions without any do not count. Without
    any token at all the weights are 0, hence the loss and its gradient too.
    """
    counts = token_counts.double()
    some = (counts > 0).double()
    if how == "token":
        return some / counts.sum().clamp(min=1)
    if how == "sample":
        return some / (counts.clamp(min=1) * some.sum().clamp(min=1))
    prompts = int(group.max()) + 1 if len(group) else 0
    totals = torch.zeros(prompts, dtype=torch.float64).index_add_(0, group, counts)
    return some / (totals.clamp(min=1)[group] * (totals > 0).sum().clamp(min=1))
