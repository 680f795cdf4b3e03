"""Sampling with vLLM's AsyncLLM: many requests at once, and new weights while they are in flight.

Imported only in a generator's own process, since vLLM is not installed everywhere.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from rlcast.recipe import Recipe
from rlcast.recipe_parts import THINK_END, Interruption
from runners.trainer.generator import interruption_of
from runners.trainer.model import Policy, parameters_of
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group, Prompt, Sample

WEIGHTS_FILE = "model.safetensors"
_MAX_SEQUENCES = 256


def export(model: Policy, folder: Path) -> None:
    """Writes the model as vLLM reads it: Hugging Face's layout with the head's weights on their own.

    With tied weights vLLM 0.32 keeps the old head after `reload_weights`, so that every log-probability after
    the first push would be wrong; with a head of its own, it takes the new one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = type(model.network.config).from_dict(model.network.config.to_dict())
    config.tie_word_embeddings = False
    config.architectures = [type(model.network).__name__]
    config.save_pretrained(folder)
    weights = {name.removeprefix("network."): value for name, value in parameters_of(model).items()}
    weights["lm_head.weight"] = model.network.lm_head.weight.detach().clone()
    temporary = folder / "model.tmp"
    save_file({name: value.contiguous() for name, value in weights.items()}, temporary)
    temporary.rename(folder / WEIGHTS_FILE)


class VllmEngine:
    """Samples at temperature 1 from the whole distribution; each token is stamped with its weights' version.

    Only prompts that came in between the same two pushes share a prefix cache (they carry the same salt): no
    prompt ever starts from keys and values of weights older than its ticket.
    """

    def __init__(self, recipe: Recipe, tokenizer: CharTokenizer, folder: Path, seed: int) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._max_new_tokens = recipe.sampling.max_new_tokens
        self._interruption = interruption_of(recipe)
        self._precision = recipe.precision
        self._seed = seed
        self._random = random.Random(seed)
        self._requests = 0
        self._pushes = 0
        self._llm: Any = None
        self.version = -1

    @property
    def _weights_file(self) -> Path:
        """Is there only while vLLM reads it: a run that is killed leaves no gigabytes behind."""
        return self._folder / WEIGHTS_FILE

    async def start(self, model: Policy, version: int, max_length: int, threads: int) -> None:
        # Read by vLLM when it is imported, and by its engine's process when that starts.
        os.environ |= {
            "OMP_NUM_THREADS": str(threads),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # several generators on one host choose no core twice
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        }
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        export(model, self._folder)
        self._llm = AsyncLLM.from_engine_args(
            AsyncEngineArgs(
                model=str(self._folder),
                skip_tokenizer_init=True,
                dtype=self._precision.compute,
                hf_overrides={"head_dtype": "float32" if self._precision.fp32_head else "model"},
                max_model_len=max_length,
                max_num_seqs=_MAX_SEQUENCES,
                enforce_eager=True,
                disable_log_stats=True,
                seed=self._seed % 2**31,
            )
        )
        self._weights_file.unlink()
        await self._llm.update_weight_version(str(version))
        self.version = version

    async def load(self, model: Policy, version: int) -> None:
        """Replaces the weights between two tokens. Requests in flight keep their keys and values."""
        export(model, self._folder)
        await self._llm.pause_generation(mode="keep", clear_cache=False)
        await self._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(self._folder)})
        self._weights_file.unlink()
        await self._llm.update_weight_version(str(version))
        self.version = version
        self._pushes += 1
        await self._llm.resume_generation()

    async def pause(self) -> None:
        """Stops before the next token; what is in flight waits."""
        await self._llm.pause_generation(mode="keep", clear_cache=False)

    async def resume(self) -> None:
        await self._llm.resume_generation()

    async def sample(self, prompt: Prompt, samples: int) -> Group:
        prompt_ids = self._tokenizer.encode_prompt(prompt.text)
        drawn = await asyncio.gather(*(self._one(prompt_ids) for _ in range(samples)))
        return Group(prompt, prompt_ids, list(drawn))

    async def _one(self, prompt_ids: list[int]) -> Sample:
        rule = self._interruption
        if rule is None:
            return self._sample_of(await self._complete(prompt_ids, self._max_new_tokens))
        limit = self._random.randint(rule.min_tokens, rule.max_tokens)
        drawn = await self._complete(prompt_ids, min(limit, self._max_new_tokens))
        is_thinking = self._tokenizer.encode(THINK_END)[0] not in drawn.token_ids
        left = self._max_new_tokens - len(drawn.token_ids)
        if self._ended(drawn) or left == 0:
            return self._sample_of(drawn)
        if is_thinking:
            self._inject(drawn, rule)
            left = self._max_new_tokens - len(drawn.token_ids)
        drawn.extend(await self._complete(prompt_ids + drawn.token_ids, left))
        return self._sample_of(drawn)

    def _inject(self, drawn: _Tokens, rule: Interruption) -> None:
        phrase = self._tokenizer.encode(rule.phrase)
        nothing, version = [0.0] * len(phrase), [self.version] * len(phrase)
        drawn.extend(_Tokens(phrase, nothing, version, [True] * len(phrase)))

    async def _complete(self, token_ids: list[int], limit: int) -> _Tokens:
        """Goes on from `token_ids` until the end of sequence or the limit."""
        from vllm import SamplingParams, TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        self._requests += 1
        parameters = SamplingParams(
            temperature=1.0,
            max_tokens=limit,
            logprobs=0,  # of the sampled token alone
            stop_token_ids=[self._tokenizer.eos_id],
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = TokensPrompt(prompt_token_ids=token_ids, cache_salt=f"push {self._pushes}")
        async for output in self._llm.generate(prompt, parameters, str(self._requests)):
            last = output.outputs[0]
        chosen = list(last.token_ids)
        logprobs = [at[token].logprob for at, token in zip(last.logprobs, chosen, strict=True)]
        versions = [int(span.version) for span in last.weight_versions for _ in range(span.start, span.end)]
        if len(versions) != len(chosen):
            raise RuntimeError(f"vLLM stamped {len(versions)} of {len(chosen)} tokens with their weights")
        return _Tokens(chosen, logprobs, versions, [False] * len(chosen))

    def _ended(self, drawn: _Tokens) -> bool:
        return drawn.token_ids[-1] == self._tokenizer.eos_id

    def _sample_of(self, drawn: _Tokens) -> Sample:
        return Sample(
            token_ids=drawn.token_ids,
            logprobs=drawn.logprobs,
            versions=drawn.versions,
            text=self._tokenizer.decode(drawn.token_ids),
            finished=self._ended(drawn),
            injected=drawn.injected if any(drawn.injected) else [],
        )


class _Tokens:
    """What was sampled or injected so far, one entry a token in each list."""

    def __init__(
        self, token_ids: list[int], logprobs: list[float], versions: list[int], injected: list[bool]
    ) -> None:
        self.token_ids = token_ids
        self.logprobs = logprobs
        self.versions = versions
        self.injected = injected

    def extend(self, later: _Tokens) -> None:
        self.token_ids += later.token_ids
        self.logprobs += later.logprobs
        self.versions += later.versions
        self.injected += later.injected
