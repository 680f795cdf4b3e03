"""Reads a recipe file for the commands that take one, with `--set key=value` overrides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from rlcast.errors import InputError

if TYPE_CHECKING:
    from rlcast.recipe import Recipe

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE.yaml", help="The recipe.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one field, as in --set loss.cispo_cap=4 (repeatable)."
    ),
]


def read_recipe(path: Path, overrides: list[str] | None = None) -> Recipe:
    """The validated recipe. Raises `InputError` that names the first wrong field and the remedy."""
    from pydantic import ValidationError

    from rlcast.recipe import Recipe, load_mapping, recipe_errors

    mapping = load_mapping(path)
    for override in overrides or ():
        _apply(mapping, override)
    try:
        return Recipe.model_validate(mapping)
    except ValidationError as error:
        problems = recipe_errors(error)
        first = "; ".join(f"{p['field']}: {p['message']}" for p in problems[:3])
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise InputError(f"{path}: {first}{more}", problems[0]["field"]) from None


def _apply(mapping: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {override}: write it as KEY=VALUE, as in --set steps=100", "--set")
    *parents, last = key.strip().split(".")
    at = mapping
    for name in parents:
        child = at.setdefault(name, {})
        if not isinstance(child, dict):
            raise InputError(f"--set {override}: '{name}' holds no further fields", "--set")
        at = child
    at[last] = yaml.safe_load(value)
