"""Presets say what the paper says, and a leave-one-out variant leaves out one thing."""

from __future__ import annotations

import pytest

from rlcast.errors import InputError
from rlcast.presets import preset, preset_names
from rlcast.recipe import Recipe

NAMED = {"scalerl", "base", "grpo-deepseek", "dapo-qwen2.5", "magistral", "minimax-m1", "gspo"}


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_valid_recipe_that_survives_yaml(name: str, tiny: bool) -> None:
    recipe = preset(name, tiny=tiny)
    assert Recipe.from_yaml(recipe.to_yaml()) == recipe


def test_scalerl_has_the_papers_ingredients() -> None:
    recipe = preset("scalerl")
    assert recipe.loss.kind == "cispo"
    assert 4 <= recipe.loss.cispo_cap <= 8
    assert (recipe.aggregation, recipe.advantage.scale) == ("prompt", "batch")
    assert (recipe.pipeline.mode, recipe.pipeline.k) == ("pipeline-rl", 8)
    assert recipe.precision.fp32_head
    assert recipe.filters.zero_variance
    assert recipe.filters.no_positive_resampling is not None
    assert recipe.filters.no_positive_resampling.pass_rate == 0.9
    assert recipe.sampling.prompts_per_step * recipe.sampling.samples_per_prompt == 768
    assert recipe.optimizer.eps == 1e-15


def test_named_recipes_are_there_and_all_differ() -> None:
    assert set(preset_names()) >= NAMED
    assert len({preset(name).content_hash for name in preset_names()}) == len(preset_names())


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith("loo-")])
def test_a_leave_one_out_variant_reverts_one_ingredient(name: str, tiny: bool) -> None:
    whole, variant = preset("scalerl", tiny).model_dump(), preset(name, tiny).model_dump()
    assert len({key for key in whole if whole[key] != variant[key]} - {"name"}) == 1


def test_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="scalerl, base"):
        preset("scalrl")
