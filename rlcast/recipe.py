"""What a recipe is: a named training configuration as data, checked before anything starts.

No torch here: the service validates recipes, and the service installs without torch. Values carry absolute
names (`cispo_cap` is the cap itself), because trainers disagree whether an "epsilon" of 5 means 5 or 6, and
an unknown key is refused, because a misspelt option that is silently ignored costs a whole run.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rlcast.errors import InputError

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
    """A Qwen3 made on the spot, with a character-level tokenizer. The defaults give 0.34 M parameters."""

    kind: Literal["tiny-qwen3"] = "tiny-qwen3"
    hidden_size: PositiveInt = 96
    layers: PositiveInt = 3
    heads: PositiveInt = 4
    kv_heads: PositiveInt = 2
    head_dim: Annotated[int, Field(ge=2, multiple_of=2)] = 32
    intermediate_size: PositiveInt = 256
    warm_start: WarmStart = WarmStart()

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


class PpoOffPolicy(Part):
    """Generation and training take turns: k batches of prompts are sampled by one policy, then k updates use
    one batch each, so that the last update is k - 1 steps off-policy. k = 1 is on-policy.
    """

    mode: Literal["ppo-off-policy"] = "ppo-off-policy"
    k: Annotated[int, Field(ge=1, le=8)] = 1


class PipelineRl(Part):
    """A generator process of its own samples all the time and takes new weights in the middle of completions.

    No token that is trained on is more than k optimiser steps old. The generator holds `generator_threads`
    cores besides those of `devices`; they count as compute.
    """

    mode: Literal["pipeline-rl"]
    k: Annotated[int, Field(ge=1, le=8)] = 8
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
    """What the run holds. On `cpu`, `threads` cores are counted as held for as long as it trains."""

    device: Literal["cpu"] = "cpu"
    threads: PositiveInt = 1


class Recipe(Part):
    """A whole recipe. `Recipe.model_validate(dict)` or `Recipe.from_yaml(path or text)`."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    description: Annotated[str, Field(max_length=2000)] = ""
    benchmark: Annotated[str, Field(min_length=1, max_length=200)] = "arithmetic-heldout"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    steps: PositiveInt = 300
    devices: Devices = Devices()
    model: TinyQwen3 = TinyQwen3()
    precision: Precision = Precision()
    task: Arithmetic = Arithmetic()
    sampling: Sampling = Sampling()
    length: LengthControl | None = None
    pipeline: Pipeline = PpoOffPolicy()
    loss: Loss = Cispo()
    aggregation: Aggregation = "prompt"
    advantage: Advantage = Advantage()
    filters: Filters = Filters()
    optimizer: Optimizer = Optimizer()
    evaluation: EvaluationPlan = EvaluationPlan()
    checkpoint: CheckpointPlan = CheckpointPlan()

    @model_validator(mode="before")
    @classmethod
    def _name_the_default_kinds(cls, data: Any) -> Any:
        """`loss: {cispo_cap: 4}` means cispo and `pipeline: {k: 4}` means ppo-off-policy, the defaults."""
        if not isinstance(data, dict):
            return data
        defaults = {"loss": ("kind", "cispo"), "pipeline": ("mode", "ppo-off-policy")}
        filled = {
            part: {tag: value, **data[part]}
            for part, (tag, value) in defaults.items()
            if isinstance(data.get(part), dict)
        }
        return {**data, **filled}

    @model_validator(mode="after")
    def _interruption_leaves_room(self) -> Recipe:
        if isinstance(self.length, Interruption):
            if not self.task.thinking:
                raise ValueError("length: interruption needs a task that thinks; set task.thinking: true")
            needed = self.length.max_tokens + len(self.length.phrase) + self.task.digits + 2
            if self.sampling.max_new_tokens < needed:
                raise ValueError(f"sampling.max_new_tokens: an interrupted completion needs {needed} tokens")
        return self

    @property
    def devices_held(self) -> int:
        """Cores (or GPUs) that the run holds, generators and trainers together."""
        generator = self.pipeline.generator_threads if isinstance(self.pipeline, PipelineRl) else 0
        return self.devices.threads + generator

    @property
    def compute_unit(self) -> str:
        """The unit in which this recipe's curve is drawn: `cpu_hours` or `gpu_hours`."""
        return "cpu_hours" if self.devices.device == "cpu" else "gpu_hours"

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) of everything that affects training: names and checkpoint plan do not."""
        content = self.model_dump(mode="json", exclude={"name", "description", "checkpoint"})
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_yaml(self) -> str:
        """The recipe with every default written out; `from_yaml` of it gives an equal recipe."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls, source: Path | str) -> Recipe:
        """Reads a recipe from a path, or from a string that holds either YAML or a path to a .yaml file.

        Raises `InputError` when there is no readable mapping, `ValidationError` when a field is wrong.
        """
        return cls.model_validate(load_mapping(source))


def load_mapping(source: Path | str) -> dict[str, Any]:
    """The mapping in a YAML file or text. Raises `InputError` with a one-line message."""
    is_path = isinstance(source, Path) or ("\n" not in source and source.endswith((".yaml", ".yml")))
    try:
        text = Path(source).read_text(encoding="utf-8") if is_path else str(source)
        mapping = yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"recipe: cannot read {source}: {error.strerror}", field="recipe") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"recipe: not valid YAML: {problem}", field="recipe") from error
    if not isinstance(mapping, dict):
        raise InputError("recipe: expected a mapping of options, such as `name: my-recipe`", field="recipe")
    return mapping


def recipe_errors(exc: ValidationError) -> list[dict[str, str]]:
    """The errors of a validation, one line each: `{"field": "loss.cispo_cap", "message": …}`."""
    return [{"field": _field(error["loc"]), "message": _message(error)} for error in exc.errors()]


_TAGS = {
    "loss": ("cispo", "dapo", "grpo", "gspo", "reinforce"),
    "pipeline": ("ppo-off-policy", "pipeline-rl"),
    "length": ("interruption", "penalty"),
}
_AMBIGUOUS = {"epsilon", "epsilon_high", "epsilon_low", "eps_max", "eps_clip", "clip_ratio", "ratio_clip_max"}


def _field(loc: tuple[int | str, ...]) -> str:
    """A dotted path as the user wrote it: pydantic also names the branch of a union, which is dropped."""
    tags = _TAGS.get(str(loc[0]), ()) if loc else ()
    parts = [str(part) for i, part in enumerate(loc) if not (i == 1 and part in tags)]
    return ".".join(parts) or "recipe"


def _message(error: Any) -> str:
    if error["type"] != "extra_forbidden":
        message = str(error["msg"]).removeprefix("Value error, ")
        return " ".join(message.split())
    key = str(error["loc"][-1])
    if key in _AMBIGUOUS:
        return (
            "unknown key: trainers disagree on what it means; give the absolute `cispo_cap` for cispo, or "
            "`clip_low`/`clip_high` for dapo and gspo"
        )
    near = difflib.get_close_matches(key, _all_field_names(), n=1)
    return f"unknown key; did you mean `{near[0]}`?" if near else "unknown key: remove it"


def _all_field_names() -> list[str]:
    parts: list[type[BaseModel]] = [Recipe, *Part.__subclasses__()]
    return sorted({name for part in parts for name in part.model_fields})
