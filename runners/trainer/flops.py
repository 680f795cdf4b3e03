"""Floating-point operations of a transformer, counted the usual way.

Per token: 2 N for the forward pass of N parameters and 4 N for the backward one (arXiv 2001.08361, §2.1),
plus attention, whose scores and mix cost 4 * layers * heads * head_dim * context forward, and twice that
backward.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FlopCounter:
    """`parameters` includes the output head, which tied embeddings share."""

    parameters: int
    attention_width: int  # layers * heads * head_dim

    def forward(self, tokens: int, mean_context: float) -> float:
        """FLOPs of a forward pass over `tokens` tokens that attend to `mean_context` tokens on average."""
        return tokens * (2.0 * self.parameters + 4.0 * self.attention_width * mean_context)

    def train(self, tokens: int, mean_context: float) -> float:
        """FLOPs of a forward and a backward pass."""
        return 3.0 * self.forward(tokens, mean_context)
