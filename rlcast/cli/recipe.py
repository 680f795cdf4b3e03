"""`rlcast recipe`: what a recipe says, whether it is valid, and how two differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlcast.cli.output import console
from rlcast.cli.recipes import Overrides, RecipeFile, read_recipe
from rlcast.errors import InputError

if TYPE_CHECKING:
    from rlcast.recipe import Recipe

app = typer.Typer(help="Show, check and compare recipes; list the presets.", no_args_is_help=True)

Source = Annotated[
    str, typer.Argument(metavar="PRESET|FILE.yaml", help="Name of a preset, or a recipe file.")
]
Tiny = Annotated[bool, typer.Option("--tiny", help="The preset at a size that two cores can train.")]


def find_recipe(source: str, tiny: bool = False) -> Recipe:
    """The preset of this name, else the recipe in this file."""
    from rlcast.presets import preset, preset_names

    if source in preset_names():
        return preset(source, tiny=tiny)
    if Path(source).suffix not in {".yaml", ".yml"} and not Path(source).exists():
        raise InputError(
            f"'{source}' is no preset and no file; presets: {', '.join(preset_names())}", "recipe"
        )
    return read_recipe(Path(source))


@app.command("presets")
def presets_command() -> None:
    """List the presets: the published recipes and the leave-one-out variants of ScaleRL."""
    from rlcast.presets import preset, preset_names

    for name in preset_names():
        console.print(f"{name:28} {preset(name).description}".rstrip(), markup=False)


@app.command("show")
def show_command(source: Source, tiny: Tiny = False) -> None:
    """Print a recipe with every default written out: a file to start from."""
    console.print(find_recipe(source, tiny).to_yaml(), markup=False, end="")


@app.command("validate")
def validate_command(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Check a recipe file: exit code 2 and one line when a field is wrong."""
    checked = read_recipe(recipe, overrides)
    console.print(f"{recipe} is valid: {checked.name}, content {checked.content_hash[:12]}", markup=False)


@app.command("diff")
def diff_command(first: Source, second: Source, tiny: Tiny = False) -> None:
    """Print the fields in which two recipes differ."""
    sides = [_flat(find_recipe(source, tiny).model_dump(mode="json")) for source in (first, second)]
    fields = [f for f in dict.fromkeys([*sides[0], *sides[1]]) if sides[0].get(f) != sides[1].get(f)]
    for field in fields:
        before, after = (side.get(field, "–") for side in sides)
        console.print(f"{field}: {before} → {after}", markup=False)
    if not fields:
        console.print("no difference")


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted fields."""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, child in value.items():
        found |= _flat(child, f"{prefix}.{key}" if prefix else str(key))
    return found
