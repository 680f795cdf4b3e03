"""A recipe's configuration as one line an option, and what differs between recipes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Shown where one recipe has an option that the other lacks.
ABSENT = "–"


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted paths and values as text, by name (the store keeps no order); lists stay one value."""
    flat: dict[str, str] = {}
    for key, value in sorted(config.items()):
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{path}.")
        else:
            flat[path] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat


@dataclass(frozen=True)
class Differences:
    """`rows` are (option, value in each recipe) for options in which they are not all alike."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def differences(recipes: Sequence[Mapping[str, Any]]) -> Differences:
    """What differs between recipes that have a configuration; names and seeds always do and are left out."""
    known = [recipe for recipe in recipes if recipe.get("config")]
    flats = [flatten(recipe["config"]) for recipe in known]
    options = sorted({option for flat in flats for option in flat})
    rows = []
    for option in options:
        values = tuple(flat.get(option, ABSENT) for flat in flats)
        if option not in ("name", "description", "seed") and len(set(values)) > 1:
            rows.append((option, values))
    return Differences(tuple(title(recipe) for recipe in known), tuple(rows))


def title(recipe: Mapping[str, Any]) -> str:
    return recipe["name"] if recipe["version"] == 1 else f"{recipe['name']} (version {recipe['version']})"
