"""The training loop: sample, grade, update, evaluate, checkpoint."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import torch

from rlcast.errors import InputError
from rlcast.recipe import Recipe
from rlcast.recipe_parts import PipelineRl, PpoOffPolicy
from runners.trainer.benchmarks import Exams
from runners.trainer.checkpoint import Checkpoint, CheckpointStore
from runners.trainer.evaluate import evaluate
from runners.trainer.events import EventLog
from runners.trainer.flops import FlopCounter
from runners.trainer.generator import TorchGenerator, interruption_of
from runners.trainer.generator_pool import GeneratorPool
from runners.trainer.learner import UpdateStats
from runners.trainer.meter import Meter
from runners.trainer.model import build_model, load_parameters, parameters_of
from runners.trainer.probe import probe, probe_across_push
from runners.trainer.prompts import PassRateTable, PromptStream
from runners.trainer.ranks import make_learner
from runners.trainer.rollouts import OffPolicyBatches, PipelinedBatches, Rollouts
from runners.trainer.stats import rollout_stats
from runners.trainer.stopping import StopFlag, Stopped
from runners.trainer.tokenizer import CharTokenizer
from runners.trainer.types import Group
from runners.trainer.vllm_process import require_vllm
from runners.trainer.warm_start import warm_start

log = logging.getLogger(__name__)

_PROGRESS_EVERY_S = 2.0


class Trainer:
    """One run in one folder. `run()` returns when the recipe's last step is done.

    An evaluation is published (written to the event log) only after a checkpoint of the same step is on disk.
    A run that is resumed after a crash therefore never leaves points behind that its own weights do not have.
    """

    def __init__(self, recipe: Recipe, folder: Path, events: EventLog, stop: StopFlag) -> None:
        torch.set_num_threads(recipe.devices.threads)
        self._recipe = recipe
        self._events = events
        self._stop = stop
        if recipe.pipeline.generator == "vllm":
            require_vllm()
        self._exams = Exams(recipe)
        self._task, self._grader = self._exams.own.task, self._exams.own.grader
        self._tokenizer = CharTokenizer(self._exams.alphabet)
        self._max_length = 1 + self._exams.longest_prompt() + recipe.sampling.max_new_tokens
        self.model = build_model(recipe.model, recipe.precision, self._tokenizer.vocab_size, self._max_length)
        self._generator = TorchGenerator(
            self.model, self._tokenizer, recipe.sampling.max_new_tokens,
            newest_version=lambda: self.step, interruption=interruption_of(recipe),
        )  # fmt: skip
        self._prompts = PromptStream(
            self._task, recipe.seed, PassRateTable(recipe.filters.no_positive_resampling)
        )
        self._learner = make_learner(self.model, recipe, self._tokenizer, self._max_length)
        self._meter = Meter(recipe.devices_held, recipe.compute_unit, self._flop_counter())
        self._checkpoints = CheckpointStore(folder / "checkpoints", recipe.checkpoint.keep)
        self._rollouts: Rollouts | None = None
        self._evaluations: list[dict[str, Any]] = []  # the newest step's, kept until they are published
        self._last_progress_s = 0.0
        self.step = 0

    def run(self) -> float:
        """Trains to the end and returns the last pass rate; raises `Stopped` after a checkpoint."""
        try:
            rollouts = self._start()
            self._meter.start()
            while self.step < self._recipe.steps:
                if self._stop.is_set():
                    self._checkpoint()
                    raise Stopped
                self._train_one_step(rollouts)
                if self._recipe.evaluation.is_due(self.step, self._recipe.steps):
                    self._evaluate()
                elif self.step % self._recipe.checkpoint.every_steps == 0:
                    self._checkpoint()
            return float(self._evaluations[0]["pass_rate"])
        finally:
            if self._rollouts is not None:
                self._rollouts.close()
            self._exams.close()
            self._learner.close()

    def _train_one_step(self, rollouts: Rollouts) -> None:
        groups = rollouts.next_batch(self.step)
        update = self._learner.update(groups, self.step)
        self.step += 1
        rollouts.weights_changed(self.step)
        self._meter.count_step(groups, update.trained_tokens)
        self._report_progress(groups, update, rollouts)

    def _start(self) -> Rollouts:
        """Restores the newest checkpoint, or makes the warm start and evaluates it; then starts sampling."""
        checkpoint = self._checkpoints.newest()
        step = checkpoint.step if checkpoint else 0
        about = {"recipe": self._recipe.name, "total_steps": self._recipe.steps}
        self._events.append("started", {**about, "step": step})
        if checkpoint is None:
            self._events.append(
                "progress", {"step": 0, "total_steps": self._recipe.steps, "phase": "warm-start"}
            )
            warm_start(self.model, self._recipe, self._task, self._tokenizer, self._stop)
            self._learner.start()
            self._rollouts = self._make_rollouts()
            self._evaluate()
        else:
            self._restore(checkpoint)
            self._rollouts = self._make_rollouts()
            self._rollouts.load_state(checkpoint.state["rollouts"])
            log.info("resumed at step %d", self.step)
            self._publish()
        return self._rollouts

    def _make_rollouts(self) -> Rollouts:
        """Starts the generator and refuses to go on when it disagrees with the trainer."""
        prompts = self._task.heldout_prompts()[:8]
        pipeline = self._recipe.pipeline
        if isinstance(pipeline, PpoOffPolicy) and pipeline.generator == "transformers":
            probe(self.model, self._generator, prompts)
            return OffPolicyBatches(self._recipe, self._prompts, self._generator, self._grader, self.model)
        generator = GeneratorPool(
            self._recipe, self.model, self.step, self._tokenizer.alphabet, self._max_length
        )
        generator.watch(self._learner.watched(), self._learner.check)
        try:
            probe_across_push(self.model, generator, self.step, prompts)
        except BaseException:
            generator.close()
            raise
        kind = PipelinedBatches if isinstance(pipeline, PipelineRl) else OffPolicyBatches
        return kind(self._recipe, self._prompts, generator, self._grader, self.model)

    def _evaluate(self) -> None:
        """Scores the held-out prompts, writes a checkpoint, and only then publishes the scores."""
        assert self._rollouts is not None
        self._rollouts.pause()
        with self._meter.evaluation():
            scores = [
                evaluate(
                    self._generator, exam.grader, exam.task, self._recipe.evaluation.samples_per_prompt,
                    self.step, self._recipe.seed,
                )
                for exam in self._exams.all
            ]  # fmt: skip
        self._rollouts.resume()
        compute = self._meter.compute()
        self._evaluations = [
            score.as_event(exam.name, self.step, compute)
            for exam, score in zip(self._exams.all, scores, strict=True)
        ]
        self._checkpoint()
        self._publish()

    def _publish(self) -> None:
        """Writes the newest evaluations to the event log, unless they are there already."""
        published = self._events.evaluated()
        for evaluation in self._evaluations:
            if (evaluation["benchmark"], evaluation["step"]) not in published:
                self._events.append("evaluation", evaluation)
                log.info(
                    "step %d: %s: held-out pass rate %.3f",
                    self.step, evaluation["benchmark"], evaluation["pass_rate"],
                )  # fmt: skip

    def _checkpoint(self) -> None:
        assert self._rollouts is not None
        state = {
            "meter": self._meter.state(),
            "rollouts": self._rollouts.state(),
            "evaluations": self._evaluations,
            "questions": self._exams.fingerprint,
        }
        weights = parameters_of(self.model)
        self._checkpoints.save(Checkpoint(self.step, weights, self._learner.state(), state))

    def _restore(self, checkpoint: Checkpoint) -> None:
        if checkpoint.state["questions"] != self._exams.fingerprint:
            raise InputError("task: the questions are not those that this run began with; use a new folder")
        load_parameters(self.model, checkpoint.weights)
        self._learner.start()
        self._learner.load_state(checkpoint.optimizer)
        self._meter.load_state(checkpoint.state["meter"])
        self._meter.count_lost_hours(self._events.last_value(self._recipe.compute_unit))
        self._evaluations = checkpoint.state["evaluations"]
        self.step = checkpoint.step

    def _report_progress(self, groups: list[Group], update: UpdateStats, rollouts: Rollouts) -> None:
        now = time.monotonic()
        if now - self._last_progress_s < _PROGRESS_EVERY_S and self.step < self._recipe.steps:
            return
        self._last_progress_s = now
        stats = rollout_stats(groups, self.step - 1)
        progress = {
            "step": self.step,
            "total_steps": self._recipe.steps,
            "phase": "train",
            "loss": update.loss,
            "grad_norm": update.grad_norm,
            "trained_rows": update.rows,
            "ess": update.ess,
            "excluded_prompts": self._prompts.table.excluded(),
            **stats,
            **rollouts.metrics(),
            **self._meter.compute(),
        }
        self._events.append("progress", progress)
        log.info(
            "step %d of %d: reward %.3f, loss %.4f, gradient norm %.3f, lag %.1f",
            self.step, self._recipe.steps, stats["reward_mean"], update.loss, update.grad_norm,
            stats["lag_mean"],
        )  # fmt: skip

    def _flop_counter(self) -> FlopCounter:
        spec = self._recipe.model
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return FlopCounter(parameters, spec.layers * spec.heads * spec.head_dim)
