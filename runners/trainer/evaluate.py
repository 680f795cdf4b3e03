"""mean@k on the held-out prompts."""

from __future__ import annotations

from dataclasses import dataclass

from runners.trainer.generator import Generator
from runners.trainer.grading import grade
from runners.trainer.seeding import derived_seed
from runners.trainer.tasks import Task


@dataclass(frozen=True)
class Score:
    """solved: right answers of each prompt, out of n_samples. truncated: share cut by the length limit."""

    pass_rate: float
    n_prompts: int
    n_samples: int
    solved: list[int]
    truncated: float


def evaluate(generator: Generator, task: Task, samples_per_prompt: int, step: int, seed: int) -> Score:
    """Samples every held-out prompt `samples_per_prompt` times. A completion that cannot be graded counts as
    unsolved here: leaving it out would raise the score."""
    prompts = task.heldout_prompts()
    groups = generator.generate(prompts, samples_per_prompt, step, derived_seed("evaluation", seed, step))
    grade(groups, task)
    solved = [sum(sample.reward == 1.0 for sample in group.samples) for group in groups]
    total = len(prompts) * samples_per_prompt
    cut = sum(not sample.finished for group in groups for sample in group.samples)
    return Score(sum(solved) / total, len(prompts), samples_per_prompt, solved, cut / total)
