"""What differs between two recipes."""

from __future__ import annotations

from typing import Any

from web.recipe_view import ABSENT, differences, flatten


def recipe(name: str, version: int = 1, /, **config: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "config": config}


def test_options_are_named_by_their_path() -> None:
    config = {"loss": {"kind": "cispo", "cap": 4.0}, "layers": [1, 2], "extra": {}, "on": True, "off": None}
    assert flatten(config) == {
        "loss.kind": "cispo",
        "loss.cap": "4.0",
        "layers": "[1, 2]",
        "extra": "{}",
        "on": "true",
        "off": "null",
    }


def test_only_what_differs_is_listed_and_names_and_seeds_are_not() -> None:
    first = recipe("a", name="a", seed=1, loss={"kind": "cispo", "cap": 4.0}, steps=300)
    second = recipe("a", 2, name="b", seed=2, loss={"kind": "grpo"}, steps=300)
    found = differences([first, second])
    assert found.names == ("a", "a (version 2)")
    assert found.rows == (("loss.cap", ("4.0", ABSENT)), ("loss.kind", ("cispo", "grpo")))


def test_a_recipe_without_a_configuration_cannot_be_compared() -> None:
    without = {"name": "logged", "version": 1, "config": None}
    assert differences([recipe("a", steps=1), without]).names == ("a",)
