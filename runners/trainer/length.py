"""Length control: forced interruption of the thinking, or a penalty on long right answers.

Interruption (arXiv 2510.13786, §3): when the thinking is still open after a number of tokens drawn from a
range, a phrase that ends it is inserted, and the model goes on to answer. The inserted tokens were not chosen
by the policy: they carry no log-probability and are never trained on.

Penalty (the same, §3): a right answer of `length` tokens loses up to 1,

    clip((max_tokens - length) / cache_tokens - 1, -1, 0)

e.g. with max_tokens 14, cache_tokens 2: nothing up to 12 tokens, 0.5 at 13, all of it from 14 on.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from rlcast.recipe_parts import THINK_END, Interruption, LengthControl, LengthPenalty
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group


class Interrupter:
    """Follows one batch of completions, token by token, and says where the phrase is forced in."""

    def __init__(
        self, rule: Interruption, tokenizer: CharTokenizer, rows: int, random: torch.Generator
    ) -> None:
        self._phrase = torch.tensor(tokenizer.encode(rule.phrase))
        self._end_of_thinking = tokenizer.encode(THINK_END)[0]
        self._limits: Int[Tensor, " row"] = torch.randint(
            rule.min_tokens, rule.max_tokens + 1, (rows,), generator=random
        )
        self._thinking = torch.ones(rows, dtype=torch.bool)
        self._interrupted = torch.zeros(rows, dtype=torch.bool)

    def force(
        self, index: int, token: Int[Tensor, " row"], done: Bool[Tensor, " row"]
    ) -> tuple[Int[Tensor, " row"], Bool[Tensor, " row"]]:
        """The tokens at place `index` (from 0) of the completions, some replaced by the phrase's.

        token: what the policy sampled. Returns the tokens to use and which of them are injected.
        """
        self._interrupted |= (self._limits == index) & self._thinking & ~done
        place = index - self._limits
        injected = self._interrupted & (place < len(self._phrase))
        token = torch.where(injected, self._phrase[place.clamp(0, len(self._phrase) - 1)], token)
        self._thinking &= token != self._end_of_thinking
        return token, injected


def length_penalty(length: int, rule: LengthPenalty) -> float:
    """Between -1 and 0, see above."""
    return max(-1.0, min(0.0, (rule.max_tokens - length) / rule.cache_tokens - 1.0))


def training_rewards(group: Group, rule: LengthControl | None) -> list[float | None]:
    """The reward of each completion that advantages are computed from; None where the grader failed."""
    rewards = [sample.reward for sample in group.samples]
    if not isinstance(rule, LengthPenalty):
        return rewards
    return [
        reward + length_penalty(len(sample.token_ids), rule) if reward == 1.0 else reward
        for reward, sample in zip(rewards, group.samples, strict=True)
    ]
