"""Builds the policy and moves its weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlcast.recipe import TinyQwen3
from runners.trainer.seeding import derived_seed

State = dict[str, torch.Tensor]


def build_model(spec: TinyQwen3, vocab_size: int, max_length: int) -> Qwen3ForCausalLM:
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
        model = Qwen3ForCausalLM(config)
    model.set_attn_implementation("sdpa")
    return model


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
