"""Before training: do generator and trainer agree on log-probabilities?

They must, before and after a weight push. When weights never arrive, or one side computes in another
precision, ratios are wrong and training goes on without any error (huggingface/trl issue 5312).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch

from runners.trainer.generator import Generator
from runners.trainer.generator_pool import GeneratorPool
from runners.trainer.learner import token_logprobs
from runners.trainer.model import load_parameters, parameters_of
from runners.trainer.types import Group, Prompt

log = logging.getLogger(__name__)

LIMIT_NATS = 0.01


def mean_gap(model: torch.nn.Module, groups: list[Group]) -> float:
    """Mean absolute difference, in nats per token, between what the generator said and the model says."""
    gaps: list[float] = []
    with torch.inference_mode():
        for group in groups:
            for sample in group.samples:
                row = torch.tensor([group.prompt_ids + sample.token_ids])
                own = token_logprobs(model, row)[0, len(group.prompt_ids) :]
                gap = (own - torch.tensor(sample.logprobs)).abs()
                gaps += gap[torch.tensor(sample.chosen)].tolist()
    return sum(gaps) / len(gaps)


def check_agreement(model: torch.nn.Module, groups: list[Group], when: str) -> None:
    """Raises when the gap is above `LIMIT_NATS`."""
    gap = mean_gap(model, groups)
    log.info("log-probabilities of generator and trainer differ by %.2g nats %s", gap, when)
    if not gap <= LIMIT_NATS:
        raise RuntimeError(
            f"generator and trainer disagree {when}: log-probabilities differ by {gap:.4f} nats per token on "
            f"average, at most {LIMIT_NATS} is allowed; the two do not compute with the same weights"
        )


def probe(model: torch.nn.Module, generator: Generator, prompts: Sequence[Prompt]) -> None:
    check_agreement(model, generator.generate(prompts, 4, seed=0), "at the start")


def probe_across_push(
    model: torch.nn.Module, generator: GeneratorPool, version: int, prompts: Sequence[Prompt]
) -> None:
    """Probes the first weights, then clearly different ones after a push, and pushes the first ones back."""
    probe(model, generator, prompts)
    saved = {name: value.clone() for name, value in parameters_of(model).items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    generator.push(model, version + 1)
    check_agreement(model, generator.generate(prompts, 4, seed=0), "after a weight push")
    load_parameters(model, saved)
    generator.push(model, version)
