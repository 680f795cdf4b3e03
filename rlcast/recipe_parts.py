"""The parts that a recipe is made of; `rlcast.recipe` puts them together.

Values carry absolute names (`cispo_cap` is the cap itself), because trainers disagree whether an "epsilon" of
5 means 5 or 6. An unknown key is refused, because a misspelt option that is silently ignored costs a run.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class Part(BaseModel):
    """Base of all parts: immutable, unknown keys refused, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class WarmStart(Part):
    """Supervised training on worked answers until sampling solves `pass_rate` of fresh training prompts.

    The start is an average of the last weights; its pass rate is checked every 10 steps. It stands in for
    the supervised stage before RL; its compute is not RL compute and is not counted.
    """

    pass_rate: Fraction = 0.29
    batch_size: PositiveInt = 64
    learning_rate: PositiveFloat = 2e-3
    max_steps: PositiveInt = 3000


class TinyQwen3(Part):
    """A Qwen3 made on the spot, with a character-level tokenizer. The defaults give 0.34 M parameters.

    Without a `warm_start` it begins with random weights.
    """

    kind: Literal["tiny-qwen3"] = "tiny-qwen3"
    hidden_size: PositiveInt = 96
    layers: PositiveInt = 3
    heads: PositiveInt = 4
    kv_heads: PositiveInt = 2
    head_dim: Annotated[int, Field(ge=2, multiple_of=2)] = 32
    intermediate_size: PositiveInt = 256
    warm_start: WarmStart | None = WarmStart()

    @model_validator(mode="after")
    def _heads_share_keys(self) -> TinyQwen3:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        return self


ALPHABET = "0123456789+=,>"  # of the arithmetic task; the last two with thinking only


class Arithmetic(Part):
    """Addition of two numbers of `digits` digits. `seed` draws the prompts; held-out ones never train.

    With `thinking`, the worked answers first add column by column, and only what follows `>` is graded.

    It is apart from the recipe's seed, so that repeats of a recipe are evaluated on the same questions.
    """

    kind: Literal["arithmetic"] = "arithmetic"
    digits: Annotated[int, Field(ge=1, le=9)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    train_prompts: PositiveInt = 20_000
    heldout_prompts: PositiveInt = 200
    thinking: bool = False
    grader_timeout_s: PositiveFloat = 10.0

    @model_validator(mode="after")
    def _enough_prompts(self) -> Arithmetic:
        possible = (10**self.digits - 10 ** (self.digits - 1)) ** 2
        asked = self.train_prompts + self.heldout_prompts
        if asked > possible // 2:
            raise ValueError(
                f"{asked} prompts asked, {possible} exist with {self.digits} digits: ask for at most "
                f"{possible // 2}, or more digits"
            )
        return self


THINK_END = ">"


class Interruption(Part):
    """Ends the thinking by force: `phrase` is inserted when it is still open after a number of tokens that is
    drawn for every completion from [min_tokens, max_tokens]. Inserted tokens are not trained on.
    """

    kind: Literal["interruption"]
    min_tokens: PositiveInt
    max_tokens: PositiveInt
    phrase: Annotated[str, Field(min_length=1, max_length=200)] = THINK_END

    @model_validator(mode="after")
    def _range_and_end(self) -> Interruption:
        if self.min_tokens > self.max_tokens:
            raise ValueError(
                f"min_tokens ({self.min_tokens}) must not be above max_tokens ({self.max_tokens})"
            )
        if not self.phrase.endswith(THINK_END) or set(self.phrase) - set(ALPHABET):
            raise ValueError(f"phrase must end with `{THINK_END}` and use only the characters {ALPHABET}")
        return self


class LengthPenalty(Part):
    """A right answer of n tokens gets clip((max_tokens - n) / cache_tokens - 1, -1, 0) less in training."""

    kind: Literal["penalty"]
    max_tokens: PositiveInt
    cache_tokens: PositiveInt


LengthControl = Annotated[Interruption | LengthPenalty, Field(discriminator="kind")]


class Sampling(Part):
    """Prompts per optimiser step, completions per prompt, and the longest completion in tokens.

    Temperature is 1 and nothing is cut from the distribution: then the log-probabilities of the generator
    and of the trainer are those of one distribution.
    """

    prompts_per_step: PositiveInt = 32
    samples_per_prompt: Annotated[int, Field(ge=2)] = 16
    max_new_tokens: PositiveInt = 8


GeneratorKind = Literal["transformers", "vllm"]


class PpoOffPolicy(Part):
    """Generation and training take turns: k batches of prompts are sampled by one policy, then k updates use
    one batch each, so that the last update is k - 1 steps off-policy. k = 1 is on-policy.

    `generator` says what samples: transformers in the trainer's process, or vLLM in one of its own.
    """

    mode: Literal["ppo-off-policy"] = "ppo-off-policy"
    k: Annotated[int, Field(ge=1, le=8)] = 1
    generator: GeneratorKind = "transformers"


class PipelineRl(Part):
    """Generator processes sample all the time and take new weights in the middle of completions.

    No token that is trained on is more than k optimiser steps old. Each of the `generators` holds
    `generator_threads` cores besides those of `devices`; they count as compute. `generator` says what
    samples in them: transformers or vLLM.
    """

    mode: Literal["pipeline-rl"]
    k: Annotated[int, Field(ge=1, le=8)] = 8
    generator: GeneratorKind = "transformers"
    generators: Annotated[int, Field(ge=1, le=64)] = 1
    generator_threads: PositiveInt = 1


Pipeline = Annotated[PpoOffPolicy | PipelineRl, Field(discriminator="mode")]


class Cispo(Part):
    """CISPO: -sg(min(ratio, cispo_cap)) * A * log p. `cispo_cap` is the cap itself, not 1 + something."""

    kind: Literal["cispo"] = "cispo"
    cispo_cap: Annotated[float, Field(ge=1.0)] = 5.0
    floor: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class Dapo(Part):
    """Clipped policy gradient with two bounds: the ratio stays in [1 - clip_low, 1 + clip_high]."""

    kind: Literal["dapo"]
    clip_low: Fraction = 0.2
    clip_high: PositiveFloat = 0.26


class Grpo(Part):
    """Clipped policy gradient with one bound on both sides: the ratio stays in [1 - clip, 1 + clip]."""

    kind: Literal["grpo"]
    clip: Fraction = 0.2


class Gspo(Part):
    """Clipped policy gradient on the length-normalised ratio of whole sequences, exp(mean log ratio)."""

    kind: Literal["gspo"]
    clip_low: Fraction = 3e-3
    clip_high: PositiveFloat = 5e-3


class Reinforce(Part):
    """Plain policy gradient without a correction for stale samples: -A * log p."""

    kind: Literal["reinforce"]


Loss = Annotated[Cispo | Dapo | Grpo | Gspo | Reinforce, Field(discriminator="kind")]
Aggregation = Literal["prompt", "sample", "token"]
AdvantageScale = Literal["batch", "prompt", "none", "leave-one-out"]


class Advantage(Part):
    """Rewards minus their prompt's mean, divided by the spread named in `scale`."""

    scale: AdvantageScale = "batch"


class NoPositiveResampling(Part):
    """Prompts that are solved nearly always are not asked again.

    The pass rate is the mean over all visits, and there must be `min_visits` of them: one visit of 16 samples
    would wrongly drop a prompt that is solved 80% of the time with probability 0.14.
    """

    pass_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    min_visits: PositiveInt = 4


class Filters(Part):
    """`zero_variance` drops prompts whose samples all got the same reward: they carry no signal."""

    zero_variance: bool = True
    no_positive_resampling: NoPositiveResampling | None = None


class Optimizer(Part):
    """AdamW with a linear warm-up and then a constant learning rate."""

    learning_rate: PositiveFloat = 3e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 10
    beta1: Fraction = 0.9
    beta2: Fraction = 0.95
    eps: PositiveFloat = 1e-15
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    max_grad_norm: PositiveFloat = 1.0


class EvaluationPlan(Part):
    """mean@k on the held-out prompts: at step 0, every `every_steps`, and at the end.

    With `early`, also at steps 1, 2, 4, … before the first regular one, because the law is read on a
    logarithmic axis.
    """

    every_steps: PositiveInt = 20
    samples_per_prompt: PositiveInt = 4
    early: bool = True

    def is_due(self, step: int, total_steps: int) -> bool:
        early = self.early and step < self.every_steps and step & (step - 1) == 0
        return step in (0, total_steps) or step % self.every_steps == 0 or early


class CheckpointPlan(Part):
    """When a checkpoint is written (besides the end and a stop request) and how many are kept."""

    every_steps: PositiveInt = 50
    keep: PositiveInt = 2


class Precision(Part):
    """What the forward pass computes in; weights and optimiser stay float32.

    With `bfloat16`, `fp32_head` still multiplies the language-model head in float32, on generator and
    trainer.
    """

    compute: Literal["float32", "bfloat16"] = "float32"
    fp32_head: bool = True

    @model_validator(mode="after")
    def _head_is_not_below_the_body(self) -> Precision:
        if self.compute == "float32" and not self.fp32_head:
            raise ValueError("fp32_head: false needs compute: bfloat16; in float32 the head is float32 too")
        return self


class Devices(Part):
    """What the run holds: `trainers` ranks share the model and each batch, and each has `threads` cores.

    All of them are counted as held for as long as it trains.
    """

    device: Literal["cpu"] = "cpu"
    threads: PositiveInt = 1
    trainers: Annotated[int, Field(ge=1, le=1024)] = 1
