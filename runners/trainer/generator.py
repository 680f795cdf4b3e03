"""Sampling. Every generator sits behind one small interface; this one runs torch in the calling process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from runners.trainer.model import Policy
from runners.trainer.seeding import derived_seed
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group, Prompt, Sample


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
        max_batch: int = 1024,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_new_tokens = max_new_tokens
        self._newest_version = newest_version
        self._max_batch = max_batch

    def generate(self, prompts: Sequence[Prompt], samples_per_prompt: int, seed: int) -> list[Group]:
        groups = [Group(prompt, self._tokenizer.encode_prompt(prompt.text)) for prompt in prompts]
        random = torch.Generator().manual_seed(derived_seed("generate", seed))
        for batch in self._batches(groups, max(1, self._max_batch // samples_per_prompt)):
            prompt_ids = torch.tensor([group.prompt_ids for group in batch])
            tokens, logprobs, versions = self._sample(prompt_ids, samples_per_prompt, random)
            rows = zip(tokens.tolist(), logprobs.tolist(), strict=True)
            for i, (row, row_logprobs) in enumerate(rows):
                sample = self._to_sample(row, row_logprobs, versions)
                batch[i // samples_per_prompt].samples.append(sample)
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
    ) -> tuple[Int[Tensor, "sample token"], Float[Tensor, "sample token"], list[int]]:
        versions = [self._newest_version()]
        cache = self._model.new_cache()
        logits = self._model(prompt_ids, cache)[:, -1]
        logits = logits.repeat_interleave(n, dim=0)
        cache.batch_repeat_interleave(n)
        done: Bool[Tensor, " sample"] = torch.zeros(len(logits), dtype=torch.bool)
        tokens, logprobs = [], []
        for step in range(self._max_new_tokens):
            all_logprobs = logits.log_softmax(dim=-1)
            chosen = torch.multinomial(all_logprobs.exp(), 1, generator=random)
            logprobs.append(all_logprobs.gather(1, chosen)[:, 0])
            token = torch.where(done, self._tokenizer.pad_id, chosen[:, 0])
            tokens.append(token)
            done |= token == self._tokenizer.eos_id
            if done.all() or step == self._max_new_tokens - 1:
                break
            versions.append(self._newest_version())
            logits = self._model(token[:, None], cache)[:, -1]
        return torch.stack(tokens, dim=1), torch.stack(logprobs, dim=1), versions

    def _to_sample(self, row: list[int], logprobs: list[float], versions: list[int]) -> Sample:
        finished = self._tokenizer.eos_id in row
        length = row.index(self._tokenizer.eos_id) + 1 if finished else len(row)
        token_ids = row[:length]
        return Sample(
            token_ids=token_ids,
            logprobs=logprobs[:length],
            versions=versions[:length],
            text=self._tokenizer.decode(token_ids),
            finished=finished,
        )
