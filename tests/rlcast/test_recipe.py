"""A recipe is data that is refused early, in words that name the field."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from pydantic import ValidationError

from rlcast.errors import InputError
from rlcast.recipe import Recipe, recipe_errors


def errors_of(config: dict) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(config)
    return {error["field"]: error["message"] for error in recipe_errors(caught.value)}


def test_a_name_is_enough() -> None:
    recipe = Recipe.model_validate({"name": "plain"})
    assert recipe.loss.kind == "cispo"
    assert recipe.loss.cispo_cap == 5.0
    assert recipe.compute_unit == "cpu_hours"


def test_the_kind_may_be_left_out_where_it_is_the_default() -> None:
    recipe = Recipe.model_validate({"name": "a", "loss": {"cispo_cap": 4}, "pipeline": {"k": 2}})
    assert recipe.loss.model_dump() == {"kind": "cispo", "cispo_cap": 4.0, "floor": 0.0}
    assert recipe.pipeline.model_dump() == {"mode": "ppo-off-policy", "k": 2, "generator": "transformers"}


def test_yaml_round_trip_keeps_every_value() -> None:
    text = "name: a\nloss: {kind: dapo, clip_high: 0.28}\noptimizer: {learning_rate: 3e-4}\n"
    recipe = Recipe.from_yaml(text)
    assert recipe.optimizer.learning_rate == 3e-4  # PyYAML reads 3e-4 as a string
    assert Recipe.from_yaml(recipe.to_yaml()) == recipe


def test_a_path_is_read(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("name: from-file\n")
    assert Recipe.from_yaml(file).name == "from-file"
    assert Recipe.from_yaml(str(file)).name == "from-file"


@pytest.mark.parametrize("text", ["- a\n- b\n", "name: [\n", "just words\n", "missing-file.yaml"])
def test_what_is_not_a_mapping_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Recipe.from_yaml(text)
    assert "\n" not in str(caught.value)
    assert caught.value.field == "recipe"


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({"name": "a", "lerning_rate": 1}, "lerning_rate", "did you mean `learning_rate`"),
        ({"name": "a", "loss": {"kind": "cispo", "epsilon": 5}}, "loss.epsilon", "absolute `cispo_cap`"),
        (
            {"name": "a", "loss": {"kind": "cispo", "cispo_cap": 0.9}},
            "loss.cispo_cap",
            "greater than or equal to 1",
        ),
        ({"name": "a", "loss": {"kind": "cispo", "clip_low": 0.2}}, "loss.clip_low", "unknown key"),
        ({"name": "a", "loss": {"kind": "ppo"}}, "loss", "cispo"),
        ({"name": "a", "steps": 0}, "steps", "greater than or equal to 1"),
        ({"name": "a", "pipeline": {"mode": "pipeline-rl", "k": 9}}, "pipeline.k", "less than or equal to 8"),
        (
            {"name": "a", "pipeline": {"mode": "ppo-off-policy", "generator_threads": 2}},
            "pipeline.generator_threads",
            "unknown key",
        ),
        ({"name": "a", "optimizer": {"learning_rate": float("nan")}}, "optimizer.learning_rate", "finite"),
        ({"name": "a", "model": {"heads": 3}}, "model", "multiple of kv_heads"),
        ({"name": "a", "task": {"digits": 1, "train_prompts": 90}}, "task", "more digits"),
        (
            {"name": "a", "length": {"kind": "interruption", "min_tokens": 9, "max_tokens": 8}},
            "length",
            "min_tokens (9)",
        ),
        (
            {"name": "a", "length": {"kind": "interruption", "min_tokens": 2, "max_tokens": 8}},
            "recipe",
            "task.thinking: true",
        ),
        (
            {
                "name": "a",
                "task": {"thinking": True},
                "length": {"kind": "interruption", "min_tokens": 2, "max_tokens": 8},
            },
            "recipe",
            "needs 14 tokens",
        ),
        (
            {"name": "a", "task": {"kind": "reasoning-gym", "generator": "chainsum"}},
            "task.generator",
            "did you mean `chain_sum`?",
        ),
        ({"name": "a", "task": {"kind": "jsonl", "file": "../etc/passwd.jsonl"}}, "task.file", "pattern"),
        (
            {"name": "a", "task": {"kind": "python", "entry_point": "os.system"}},
            "task.entry_point",
            "pattern",
        ),
        (
            {"name": "a", "also_evaluate": [{"name": "b", "task": {"kind": "arithmetic", "digit": 2}}]},
            "also_evaluate.0.task.digit",
            "did you mean `digits`?",
        ),
        (
            {"name": "a", "also_evaluate": [{"name": "b", "task": {"kind": "chess"}}]},
            "also_evaluate.0.task",
            "use one of `arithmetic`, `reasoning-gym`",
        ),
        (
            {"name": "a", "pipeline": {"generator": "vllm"}, "model": {"head_dim": 16}},
            "recipe",
            "multiple of 32",
        ),
        ({"name": "a", "pipeline": {"generator": "sglang"}}, "pipeline.generator", "'vllm'"),
        ({"name": "a", "precision": {"fp32_head": False}}, "precision", "needs compute: bfloat16"),
        ({"name": "../../etc"}, "name", "pattern"),
        ({}, "name", "required"),
    ],
)
def test_bad_fields_are_named(config: dict, field: str, words: str) -> None:
    errors = errors_of(config)
    assert list(errors) == [field]
    assert words in errors[field]
    assert "\n" not in errors[field]


def test_hash_follows_the_training_and_not_the_name() -> None:
    base = Recipe.model_validate({"name": "a"})
    renamed = base.model_copy(update={"name": "b", "description": "other words"})
    assert renamed.content_hash == base.content_hash
    for change in ({"seed": 1}, {"loss": {"kind": "grpo"}}, {"sampling": {"samples_per_prompt": 8}}):
        assert Recipe.model_validate({"name": "a", **change}).content_hash != base.content_hash
    assert Recipe.model_validate({"name": "a", "steps": 300}).content_hash == base.content_hash


def test_evaluations_are_dense_early_and_never_miss_the_ends() -> None:
    plan = Recipe.model_validate({"name": "a", "evaluation": {"every_steps": 10}}).evaluation
    assert [s for s in range(26) if plan.is_due(s, 25)] == [0, 1, 2, 4, 8, 10, 20, 25]
    regular = Recipe.model_validate(
        {"name": "a", "evaluation": {"every_steps": 10, "early": False}}
    ).evaluation
    assert [s for s in range(26) if regular.is_due(s, 25)] == [0, 10, 20, 25]


def test_shipped_recipes_are_valid_and_the_two_of_the_demo_differ_in_one_ingredient() -> None:
    folder = Path(str(resources.files("rlcast"))) / "data" / "recipes"
    shipped = {file.stem: Recipe.from_yaml(file) for file in folder.glob("*.yaml")}
    assert all(recipe.name == stem for stem, recipe in shipped.items())
    first, second = shipped["tiny-cispo"].model_dump(), shipped["tiny-reinforce"].model_dump()
    differing = {key for key in first if first[key] != second[key]}
    assert differing == {"name", "description", "loss"}
    plan = shipped["tiny-cispo"].evaluation
    assert sum(plan.is_due(step, 300) for step in range(301)) >= 15


def test_the_example_for_two_hosts_counts_all_its_cores() -> None:
    example = Path(__file__).parents[2] / "examples" / "recipes" / "two-hosts.yaml"
    assert Recipe.from_yaml(example).devices_held == 8 * 1 + 2 * 2


@pytest.mark.parametrize(
    ("task", "benchmark"),
    [
        ({"digits": 2, "train_prompts": 100}, "arithmetic-heldout"),
        ({"kind": "reasoning-gym", "generator": "gcd"}, "gcd-heldout"),
        ({"kind": "jsonl", "file": "maths.jsonl"}, "maths-heldout"),
        ({"kind": "python", "entry_point": "ours.tasks:riddles"}, "ours.tasks:riddles-heldout"),
    ],
)
def test_a_benchmark_without_a_name_is_named_after_its_task(task: dict, benchmark: str) -> None:
    assert Recipe.model_validate({"name": "a", "task": task}).benchmark == benchmark
    assert Recipe.model_validate({"name": "a", "task": task, "benchmark": "b"}).benchmark == "b"
