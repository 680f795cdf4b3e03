"""The policy: a Qwen3, its precision, and how weights move in and out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

from rlcast.recipe_parts import Precision, TinyQwen3
from runners.trainer.seeding import derived_seed

State = dict[str, torch.Tensor]


class Policy(torch.nn.Module):
    """Generator and trainer both compute logits through this class, so that both do it in one precision.

    With `fp32_head` the last hidden state and the head's weights are multiplied in float32 whatever the body
    computes in. In bfloat16 the logits lose so much that log-probabilities of generator and trainer drift
    apart (arXiv 2510.13786, §3.2). The head reads the (tied) embedding's weights at every call: there is no
    float32 copy that could go stale after an update.
    """

    def __init__(self, network: Qwen3ForCausalLM, precision: Precision) -> None:
        super().__init__()
        self.network = network
        self.precision = precision

    def forward(
        self, token_ids: Int[Tensor, "row position"], cache: DynamicCache | None = None
    ) -> Float[Tensor, "row position vocabulary"]:
        """Logits in float32. With a cache, `token_ids` go on from what it holds, and only the last position's
        logits are computed."""
        with self._reduced():
            output = self.network.model(token_ids, cache=cache, use_cache=cache is not None)
        hidden = output.last_hidden_state if cache is None else output.last_hidden_state[:, -1:]
        return head_logits(hidden, self.network.lm_head.weight, self.precision)

    def new_cache(self) -> DynamicCache:
        return DynamicCache(config=self.network.config)

    def _reduced(self) -> AbstractContextManager[object]:
        if self.precision.compute == "bfloat16":
            return torch.autocast("cpu", torch.bfloat16)
        return nullcontext()


def head_logits(
    hidden: Float[Tensor, "row position hidden"],
    weight: Float[Tensor, "vocabulary hidden"],
    precision: Precision,
) -> Float[Tensor, "row position vocabulary"]:
    """hidden @ weight.T, in float32 or in the body's precision, returned in float32 (float64 stays)."""
    if precision.compute == "bfloat16" and not precision.fp32_head:
        return torch.nn.functional.linear(hidden.bfloat16(), weight.bfloat16()).float()
    return torch.nn.functional.linear(hidden.to(weight.dtype), weight)


def build_model(spec: TinyQwen3, precision: Precision, vocab_size: int, max_length: int) -> Policy:
    """A freshly initialised Qwen3 with tied embeddings. Same spec, same weights.

    `max_length` is the longest sequence in tokens, prompt included.
    """
    config = Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=spec.hidden_size,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        intermediate_size=spec.intermediate_size,
        max_position_embeddings=max_length,
        tie_word_embeddings=True,
        # Wider than the usual 0.02, and a faster rotation than the usual 10,000: on sequences of tens of
        # tokens the usual values leave a tiny model on a plateau for thousands of steps.
        initializer_range=spec.hidden_size**-0.5,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},
    )
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed("initial weights"))
        network = Qwen3ForCausalLM(config)
    network.set_attn_implementation("sdpa")
    return Policy(network, precision)


def parameters_of(model: torch.nn.Module) -> State:
    """Parameters by name, detached; tied ones appear once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_parameters(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Copies values in place. Missing, unknown or misshapen names are an error, never skipped."""
    own = dict(model.named_parameters())
    if own.keys() != state.keys():
        different = sorted(own.keys() ^ state.keys())
        raise ValueError(f"weights do not belong to this model: {different[0]} and {len(different) - 1} more")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state[name])
