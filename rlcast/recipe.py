"""What a recipe is: a named training configuration as data, checked before anything starts.

No torch here: the service validates recipes, and the service installs without torch.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from rlcast.errors import InputError
from rlcast.recipe_parts import (
    Advantage,
    Aggregation,
    Arithmetic,
    CheckpointPlan,
    Cispo,
    Devices,
    EvaluationPlan,
    Filters,
    Interruption,
    LengthControl,
    Loss,
    Optimizer,
    Part,
    Pipeline,
    PipelineRl,
    PositiveInt,
    PpoOffPolicy,
    Precision,
    Sampling,
    TinyQwen3,
)
from rlcast.recipe_tasks import Benchmark, TaskSpec


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
    task: TaskSpec = Arithmetic()
    also_evaluate: Annotated[tuple[Benchmark, ...], Field(max_length=20)] = ()
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
        """`loss: {cispo_cap: 4}` means cispo, `pipeline: {k: 4}` means ppo-off-policy, `task: {digits: 2}`
        means arithmetic: the defaults."""
        if not isinstance(data, dict):
            return data
        defaults = {
            "loss": ("kind", "cispo"),
            "pipeline": ("mode", "ppo-off-policy"),
            "task": ("kind", "arithmetic"),
        }
        filled = {
            part: {tag: value, **data[part]}
            for part, (tag, value) in defaults.items()
            if isinstance(data.get(part), dict)
        }
        return {"benchmark": _benchmark_of(data.get("task")), **data, **filled}

    @model_validator(mode="after")
    def _interruption_leaves_room(self) -> Recipe:
        if isinstance(self.length, Interruption):
            if not isinstance(self.task, Arithmetic) or not self.task.thinking:
                raise ValueError("length: interruption needs a task that thinks; set task.thinking: true")
            needed = self.length.max_tokens + len(self.length.phrase) + self.task.digits + 2
            if self.sampling.max_new_tokens < needed:
                raise ValueError(f"sampling.max_new_tokens: an interrupted completion needs {needed} tokens")
        return self

    @model_validator(mode="after")
    def _vllm_knows_the_heads(self) -> Recipe:
        if self.pipeline.generator == "vllm" and self.model.head_dim % 32:
            raise ValueError(
                f"model.head_dim: vLLM needs a multiple of 32, not {self.model.head_dim}; change it, or set "
                "pipeline.generator: transformers"
            )
        return self

    @model_validator(mode="after")
    def _benchmarks_have_names_of_their_own(self) -> Recipe:
        names = [self.benchmark, *(benchmark.name for benchmark in self.also_evaluate)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"also_evaluate: two benchmarks are named {twice[0]!r}; give each its own name")
        return self

    @property
    def devices_held(self) -> int:
        """Cores (or GPUs) that the run holds, generators and trainers together."""
        generators = self.pipeline.generators if isinstance(self.pipeline, PipelineRl) else 0
        return self.devices.trainers * self.devices.threads + generators * self.generator_threads

    @property
    def generator_threads(self) -> int:
        """Cores of one generator; without pipelining it takes turns with the trainer on the trainer's."""
        if isinstance(self.pipeline, PipelineRl):
            return self.pipeline.generator_threads
        return self.devices.threads

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


def _benchmark_of(task: Any) -> str:
    """The name of a task's held-out questions, when the recipe gives none: two tasks never share a curve."""
    about = task.model_dump() if isinstance(task, BaseModel) else task if isinstance(task, dict) else {}
    name = about.get("generator") or about.get("file") or about.get("entry_point") or "arithmetic"
    return f"{str(name)[:180].removesuffix('.jsonl')}-heldout"


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
    "task": ("arithmetic", "reasoning-gym", "jsonl", "python"),
}
_AMBIGUOUS = {"epsilon", "epsilon_high", "epsilon_low", "eps_max", "eps_clip", "clip_ratio", "ratio_clip_max"}


def _field(loc: tuple[int | str, ...]) -> str:
    """A dotted path as the user wrote it: pydantic also names the branch of a union, which is dropped."""
    pairs = zip(("", *loc), loc, strict=False)
    parts = [str(part) for before, part in pairs if part not in _TAGS.get(str(before), ())]
    return ".".join(parts) or "recipe"


def _message(error: Any) -> str:
    if error["type"] == "union_tag_not_found":
        return f"say which one with `kind`: {_tags(error)}"
    if error["type"] == "union_tag_invalid":
        return f"kind {error['ctx']['tag']!r} is not known; use one of {_tags(error)}"
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


def _tags(error: Any) -> str:
    """The kinds of the union in which the error lies."""
    union = next(str(part) for part in reversed(error["loc"]) if part in _TAGS)
    return ", ".join(f"`{tag}`" for tag in _TAGS[union])


def _all_field_names() -> list[str]:
    return sorted({name for part in _with_subclasses(Part) for name in part.model_fields})


def _with_subclasses(part: type[BaseModel]) -> list[type[BaseModel]]:
    return [part, *(deeper for child in part.__subclasses__() for deeper in _with_subclasses(child))]
