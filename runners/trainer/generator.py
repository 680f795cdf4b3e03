"""Sampling. Every generator sits behind one small interface; this one runs torch in the calling process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor

from rlcast.recipe import Recipe
from rlcast.recipe_parts import Interruption
from runners.trainer.length import Interrupter
from runners.trainer.model import Policy
from runners.trainer.seeding import derived_seed
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group, Prompt, Sample


def interruption_of(recipe: Recipe) -> Interruption | None:
    """The recipe's rule for ending the thinking by force, if it has one."""
    return recipe.length if isinstance(recipe.length, Interruption) else None


class Generator(Protocol):
    """Samples at temperature 1 from the whole distribution, so that log-probabilities need no correction."""

    def generate(self, prompts: Sequence[Prompt], samples_per_prompt: int, seed: int) -> list[Group]:
        """One group a prompt, in order. The same prompts, weights and seed give the same samples."""
        ...


class TorchGenerator:
    """A batched sampling loop over a transformers causal model with its key-value cache.

    The prompt is run once and its cache repeated for its samples. Prompts of one length share a batch, which
    needs no padding and no attention mask; `max_batch` bounds the sequences that are sampled together.

    `newest_version` is called before every forward pass. It may load newer weights into the model, and says
    which optimiser step they come from; each token is stamped with it.
    """

    def __init__(
        self,
        model: Policy,
        tokenizer: CharTokenizer,
        max_new_tokens: int,
        newest_version: Callable[[], int],
        interruption: Interruption | None = None,
        max_batch: int = 1024,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_new_tokens = max_new_tokens
        self._newest_version = newest_version
        self._interruption = interruption
        self._max_batch = max_batch

    def generate(self, prompts: Sequence[Prompt], samples_per_prompt: int, seed: int) -> list[Group]:
        groups = [Group(prompt, self._tokenizer.encode_prompt(prompt.text)) for prompt in prompts]
        random = torch.Generator().manual_seed(derived_seed("generate", seed))
        for batch in self._batches(groups, max(1, self._max_batch // samples_per_prompt)):
            prompt_ids = torch.tensor([group.prompt_ids for group in batch])
            drawn = self._sample(prompt_ids, samples_per_prompt, random)
            for i in range(len(drawn.tokens)):
                batch[i // samples_per_prompt].samples.append(self._to_sample(drawn, i))
        return groups

    @staticmethod
    def _batches(groups: list[Group], size: int) -> Iterator[list[Group]]:
        by_length: dict[int, list[Group]] = {}
        for group in groups:
            by_length.setdefault(len(group.prompt_ids), []).append(group)
        for same_length in by_length.values():
            for start in range(0, len(same_length), size):
                yield same_length[start : start + size]

    @torch.inference_mode()
    def _sample(
        self, prompt_ids: Int[Tensor, "prompt prompt_token"], n: int, random: torch.Generator
    ) -> _Drawn:
        rows = len(prompt_ids) * n
        interrupter = None
        if self._interruption is not None:
            interrupter = Interrupter(self._interruption, self._tokenizer, rows, random)
        versions = [self._newest_version()]
        cache = self._model.new_cache()
        logits = self._model(prompt_ids, cache)[:, -1]
        logits = logits.repeat_interleave(n, dim=0)
        cache.batch_repeat_interleave(n)
        done = torch.zeros(rows, dtype=torch.bool)
        nothing = torch.zeros(rows, dtype=torch.bool)
        tokens, logprobs, injected = [], [], []
        for index in range(self._max_new_tokens):
            all_logprobs = logits.log_softmax(dim=-1)
            choice = torch.multinomial(all_logprobs.exp(), 1, generator=random)
            token, forced = choice[:, 0], nothing
            if interrupter is not None:
                token, forced = interrupter.force(index, token, done)
            token = torch.where(done, self._tokenizer.pad_id, token)
            tokens.append(token)
            logprobs.append(all_logprobs.gather(1, choice)[:, 0].masked_fill(forced, 0.0))
            injected.append(forced)
            done |= token == self._tokenizer.eos_id
            if done.all() or index == self._max_new_tokens - 1:
                break
            versions.append(self._newest_version())
            logits = self._model(token[:, None], cache)[:, -1]
        return _Drawn(
            tokens=torch.stack(tokens, dim=1).tolist(),
            logprobs=torch.stack(logprobs, dim=1).tolist(),
            injected=torch.stack(injected, dim=1).tolist(),
            versions=versions,
        )

    def _to_sample(self, drawn: _Drawn, row: int) -> Sample:
        token_ids = drawn.tokens[row]
        finished = self._tokenizer.eos_id in token_ids
        length = token_ids.index(self._tokenizer.eos_id) + 1 if finished else len(token_ids)
        injected = drawn.injected[row][:length]
        return Sample(
            token_ids=token_ids[:length],
            logprobs=drawn.logprobs[row][:length],
            versions=drawn.versions[:length],
            text=self._tokenizer.decode(token_ids[:length]),
            finished=finished,
            injected=injected if any(injected) else [],
        )


@dataclass(frozen=True)
class _Drawn:
    """A batch as it was sampled, one list a row; rows go on with padding behind their end."""

    tokens: list[list[int]]
    logprobs: list[list[float]]
    injected: list[list[bool]]
    versions: list[int]
