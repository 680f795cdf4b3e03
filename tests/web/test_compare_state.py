"""The address of the Compare page and back."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from web.compare_state import MAX_CURVES, CompareState, parse_compute, parse_state


@pytest.mark.parametrize(
    ("text", "compute"),
    [
        ("50000", 5e4),
        (" 50,000 ", 5e4),
        ("5e4", 5e4),
        ("50k", 5e4),
        ("1.2M", 1.2e6),
        ("1e18", 1e18),
        ("3T", 3e12),
    ],
)
def test_compute_is_read_as_people_write_it(text: str, compute: float) -> None:
    assert parse_compute(text) == pytest.approx(compute)


@pytest.mark.parametrize("text", ["", "k", "lots", "-5", "0", "nan", "inf", "1e999", "1 hour"])
def test_other_text_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 50000"):
        parse_compute(text)


def test_state_survives_its_own_address() -> None:
    state = CompareState(
        runs=("a b&c=d", "ünï <x>"),
        recipes=("r",),
        unit="flops",
        level=0.8,
        min_compute=1.5e18,
        max_compute=2e19,
        at=1e21,
        reach=0.65,
        baseline="0.62",
        margin=0.01,
        chosen=True,
    )
    assert parse_state(QueryParams(state.query())) == state


def test_defaults_are_left_out_of_the_address() -> None:
    assert CompareState(runs=("a",)).query() == "run=a"


def test_a_choice_of_nothing_is_kept_apart_from_no_choice() -> None:
    nothing = parse_state(QueryParams("run="))
    assert nothing.chosen
    assert not parse_state(QueryParams("")).chosen
    assert parse_state(QueryParams(nothing.query())).chosen


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("at=soon", "at"),
        ("min=0", "min"),
        ("max=-3", "max"),
        ("law=cubic", "law"),
        ("level=2", "level"),
        ("margin=1.5", "margin"),
        ("margin=nan", "margin"),
        ("reach=65", "reach"),
        ("reach=high", "reach"),
        ("min=10&max=5", "max"),
    ],
)
def test_a_bad_value_names_its_field_and_leaves_the_default(query: str, field: str) -> None:
    state = parse_state(QueryParams(query))
    assert list(state.errors) == [field]
    plain = CompareState()
    assert (state.at, state.min_compute, state.max_compute) == (None, None, None)
    assert (state.law, state.level, state.margin) == (plain.law, plain.level, plain.margin)


def test_too_many_curves_are_cut_and_told() -> None:
    query = QueryParams([("run", f"r{i}") for i in range(MAX_CURVES + 10)])
    state = parse_state(query)
    assert len(state.runs) == MAX_CURVES
    assert "first 50" in state.errors["run"]
