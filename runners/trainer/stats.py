"""What a batch of rollouts looked like."""

from __future__ import annotations

from runners.trainer.types import Group


def rollout_stats(groups: list[Group], trainer_version: int) -> dict[str, float]:
    """Means over a batch, for the log.

    reward_mean: over graded completions. entropy: nats per token, estimated as the mean of -log p of the
    tokens that the policy chose. truncated: share of completions cut by the length limit; interrupted: share
    whose thinking was ended by force. lag: optimiser steps between the weights that sampled a token and those
    that train on it. zero_variance: share of prompts whose samples are all right or all wrong.
    """
    samples = [sample for group in groups for sample in group.samples]
    rewards = [reward for group in groups for reward in group.rewards()]
    lengths = [len(sample.token_ids) for sample in samples]
    logprobs = [
        logprob
        for sample in samples
        for logprob, chosen in zip(sample.logprobs, sample.chosen, strict=True)
        if chosen
    ]
    lags = [trainer_version - version for sample in samples for version in sample.versions]
    return {
        "reward_mean": sum(rewards) / max(1, len(rewards)),
        "ungraded": 1 - len(rewards) / len(samples),
        "entropy": -sum(logprobs) / max(1, len(logprobs)),
        "truncated": sum(not sample.finished for sample in samples) / len(samples),
        "interrupted": sum(sample.is_interrupted for sample in samples) / len(samples),
        "length_mean": sum(lengths) / len(samples),
        "zero_variance": sum(len(set(group.rewards())) < 2 for group in groups) / len(groups),
        "lag_min": min(lags),
        "lag_mean": sum(lags) / len(lags),
        "lag_max": max(lags),
    }
