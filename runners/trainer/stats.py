"""What a batch of rollouts looked like."""

from __future__ import annotations

from runners.trainer.batch import has_signal
from runners.trainer.types import Group


def rollout_stats(groups: list[Group], trainer_version: int) -> dict[str, float]:
    """Means over a batch, for the log.

    reward_mean: over graded completions. entropy: nats per token, estimated as the mean of -log p of the
    sampled tokens. truncated: share of completions cut by the length limit. lag: optimiser steps between the
    weights that sampled a token and those that train on it. zero_variance: share of prompts without signal.
    """
    samples = [sample for group in groups for sample in group.samples]
    rewards = [reward for group in groups for reward in group.rewards()]
    logprobs = [logprob for sample in samples for logprob in sample.logprobs]
    lags = [trainer_version - version for sample in samples for version in sample.versions]
    return {
        "reward_mean": sum(rewards) / max(1, len(rewards)),
        "ungraded": 1 - len(rewards) / len(samples),
        "entropy": -sum(logprobs) / len(logprobs),
        "truncated": sum(not sample.finished for sample in samples) / len(samples),
        "length_mean": len(logprobs) / len(samples),
        "zero_variance": sum(not has_signal(group) for group in groups) / len(groups),
        "lag_min": min(lags),
        "lag_mean": sum(lags) / len(lags),
        "lag_max": max(lags),
    }
