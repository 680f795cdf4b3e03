from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def decide(service: Any, expect: int = 201, **body: Any) -> Any:
    return service.api("POST", "/gates", expect=expect, json=body)


def test_a_gate_against_a_number(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=30)  # A = 0.65
    good = decide(service, candidate="run-1", baseline=0.64)
    bad = decide(service, candidate="run-1", baseline=0.70)
    assert (good["verdict"], bad["verdict"]) == ("pass", "fail")
    assert (good["candidate_name"], good["baseline_name"], good["baseline_forecast"]) == (
        "run-1",
        "0.64",
        None,
    )
    assert good["difference"]["value"] == pytest.approx(0.01, abs=0.005)
    assert good["candidate_forecast"]["parameters"]["A"]["value"] == pytest.approx(0.65, abs=0.005)


def test_a_gate_between_recipes_is_stored(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    add_run(service, "old-1", n=20, recipe="old", law={"A": 0.66})
    add_run(service, "new-1", n=20, recipe="new", law={"A": 0.60})
    add_run(service, "new-2", n=20, recipe="new", law={"A": 0.60})
    made: list[Any] = []
    body = {"candidate": "new", "baseline": "old", "margin": 0.02}
    *_, event = read_events(
        service, 7, params={"after": 0}, then=lambda: made.append(decide(service, **body))
    )
    [gate] = made
    assert gate["verdict"] == "fail"
    assert event["event"] == "gate.decided"
    assert event["data"]["gate_id"] == gate["id"]
    assert service.api("GET", f"/gates/{gate['id']}") == gate
    assert [g["id"] for g in service.api("GET", "/gates")["items"]] == [gate["id"]]
    assert service.api("GET", "/gates", params={"verdict": "pass"})["items"] == []
    assert gate["candidate_forecast"]["window"]["n_total"] == 40


def test_a_short_curve_is_inconclusive(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=6, law={"Cmid": 60_000.0})  # seen to a tenth of its midpoint
    assert decide(service, candidate="run-1", baseline=0.64)["verdict"] == "inconclusive"


BAD: list[tuple[dict[str, Any], int, str | None]] = [
    ({"candidate": "run-1"}, 422, "baseline"),
    ({"candidate": "run-1", "baseline": 64}, 422, "baseline"),
    ({"candidate": "run-1", "baseline": 0.6, "margin": -1}, 422, "margin"),
    ({"candidate": "run-1", "baseline": 0.6, "confidence": 0.3}, 422, "confidence"),
    ({"candidate": "nothing", "baseline": 0.6}, 404, None),
    ({"candidate": "run-1", "baseline": "nothing"}, 404, None),
    ({"candidate": "run-1", "baseline": "flops"}, 422, "unit"),
    ({"candidate": "empty", "baseline": 0.6}, 422, "points"),
]


def test_bad_gates(service: Any, add_run: Callable[..., Any], subtests: pytest.Subtests) -> None:
    add_run(service, "run-1", n=8)
    add_run(service, "empty")
    add_run(service, "flops", n=8, compute_unit="flops")
    for body, status, field in BAD:
        with subtests.test(**body):
            problem = decide(service, expect=status, **body)
            assert field is None or problem["errors"][0]["field"].startswith(field)
    assert service.api("GET", "/gates")["items"] == []
