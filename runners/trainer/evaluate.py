"""mean@k on the held-out prompts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from runners.trainer.generator import Generator
from runners.trainer.grading import Grader
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

    def as_event(self, benchmark: str, step: int, compute: dict[str, float]) -> dict[str, Any]:
        """The evaluation as the service takes it."""
        measured_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {"benchmark": benchmark, "step": step, "compute": compute, "measured_at": measured_at}
        return {**about, **asdict(self)}


def evaluate(
    generator: Generator, grader: Grader, task: Task, samples_per_prompt: int, step: int, seed: int
) -> Score:
    """Samples every held-out prompt `samples_per_prompt` times. A completion that cannot be graded counts as
    unsolved here: leaving it out would raise the score."""
    prompts = task.heldout_prompts()
    groups = generator.generate(prompts, samples_per_prompt, derived_seed("evaluation", seed, step))
    grader.grade(groups)
    solved = [sum(sample.reward == 1.0 for sample in group.samples) for group in groups]
    total = len(prompts) * samples_per_prompt
    cut = sum(not sample.finished for group in groups for sample in group.samples)
    return Score(sum(solved) / total, len(prompts), samples_per_prompt, solved, cut / total)
