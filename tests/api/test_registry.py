"""Stored forecasts: made once, proved again, scored when the run gets there; and baselines made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from scoringrules import crps_normal

from api.registry import scores


@pytest.fixture
def service_settings() -> dict[str, Any]:
    return {"broker_url": "redis://127.0.0.1:1/0", "sweep_s": 0.1}


def save(service: Any, **body: Any) -> Any:
    body = {"replicates": 200, "save": True, **body}
    [forecast] = service.api("POST", "/forecasts", json=body)["forecasts"]
    return service.api("GET", f"/forecasts/{forecast['id']}")


def add_point(service: Any, run: str, step: int, compute: float, pass_rate: float) -> None:
    item = {"step": step, "compute": {"gpu_hours": compute}, "pass_rate": pass_rate}
    service.api("POST", f"/runs/{run}/evaluations", json={"evaluations": [item]})


def test_a_saved_forecast_is_kept_and_proved(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=12)
    stored = save(service, runs=["run-1"], at=[50_000.0], seed=5)
    assert (stored["name"], stored["unit"], stored["answer"]["seed"]) == ("run-1", "gpu_hours", 5)
    assert stored["stale"] is False
    add_point(service, "run-1", 13, 13_000.0, 0.1)  # what comes later does not change it
    proved = service.api("POST", f"/forecasts/{stored['id']}/verify")
    assert proved["same"] is True
    assert proved["recomputed_sha256"] == stored["answer_sha256"]
    later = service.api("GET", f"/forecasts/{stored['id']}")
    assert (later["answer"], later["stale"]) == (stored["answer"], True)
    listed = service.api("GET", "/forecasts", params={"run": "run-1"})["items"]
    assert [f["id"] for f in listed] == [stored["id"]]


def test_a_tampered_forecast_is_found_out(
    service: Any, add_run: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    add_run(service, "run-1", n=12)
    stored = save(service, runs=["run-1"])
    sql("""UPDATE stored_forecasts SET task = jsonb_set(task, '{curves,0,pass_rate,3}', '0.1')""")
    assert service.api("POST", f"/forecasts/{stored['id']}/verify")["same"] is False


def test_a_forecast_is_scored_when_the_run_gets_there(
    service: Any, add_run: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    add_run(service, "run-1", n=12)  # to 12,000 GPU-hours
    stored = save(service, runs=["run-1"], at=[20_000.0, 40_000.0])
    assert [t["scored_at"] for t in stored["targets"]] == [None, None]
    add_point(service, "run-1", 13, 16_000.0, 0.60)
    add_point(service, "run-1", 14, 25_000.0, 0.62)

    def first_target() -> Any:
        target = service.api("GET", f"/forecasts/{stored['id']}")["targets"][0]
        return target if target["scored_at"] else None

    target = wait_until(first_target)
    weight = math.log(20_000 / 16_000) / math.log(25_000 / 16_000)
    assert target["actual"] == pytest.approx(0.60 + 0.02 * weight)
    assert target["error"] == pytest.approx(target["value"] - target["actual"])
    assert target["inside"] == (target["low"] <= target["actual"] <= target["high"])
    assert target["fraction_seen"] == pytest.approx(12_000 / 20_000)
    assert target["crps"] > 0
    record = service.api("GET", "/track-record")
    assert (record["n_scored"], record["n_open"]) == (1, 1)
    [group] = record["groups"]
    assert (group["law"], group["fraction_seen_to"], group["n"]) == ("auto", 1.0, 1)
    assert group["mean_absolute_error"] == pytest.approx(abs(target["error"]))
    assert group["level"] == 0.9


def test_hindsight_is_not_counted(
    service: Any, add_run: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    """A forecast from a window, for compute that the run has already seen, is scored but kept apart."""
    add_run(service, "run-1", n=20)
    stored = save(service, runs=["run-1"], max_compute=10_000.0, at=[20_000.0])
    wait_until(lambda: service.api("GET", f"/forecasts/{stored['id']}")["targets"][0]["scored_at"])
    assert service.api("GET", "/track-record")["n_scored"] == 0
    hindsight = service.api("GET", "/track-record", params={"retrospective": True})
    assert (hindsight["n_scored"], hindsight["groups"][0]["fraction_seen_to"]) == (1, 0.5)


def test_a_forecast_of_several_runs_is_kept_but_not_scored(service: Any, add_run: Callable[..., Any]) -> None:
    for seed in (1, 2):
        add_run(service, f"run-{seed}", n=10, seed=seed)
    stored = save(service, recipes=["recipe-a"], at=[50_000.0])
    assert stored["run_id"] is None
    assert service.api("POST", f"/forecasts/{stored['id']}/verify")["same"] is True
    assert service.api("GET", "/track-record")["n_open"] == 0


def test_a_pinned_forecast_stays_the_reference(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "old", n=20, law={"A": 0.66})
    add_run(service, "new", n=20, law={"A": 0.60})
    stored = save(service, runs=["old"])
    pinned = service.api("POST", "/baselines", expect=201, json={"name": "main", "forecast": stored["id"]})
    service.api("POST", "/baselines", expect=409, json={"name": "main", "pass_rate": 0.1})
    for i in range(21, 31):
        add_point(service, "old", i, 1000.0 * i, 0.2)  # ruins the run, not the baseline
    gate = service.api("POST", "/gates", json={"candidate": "new", "baseline": "main"})
    assert (gate["verdict"], gate["baseline_name"]) == ("fail", "main")
    assert gate["baseline_forecast"] == stored["answer"]
    assert service.api("GET", "/baselines/main") == pinned
    assert [b["name"] for b in service.api("GET", "/baselines")["items"]] == ["main"]


def test_a_pinned_number(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "new", n=20)  # A = 0.65
    service.api("POST", "/baselines", json={"name": "paper", "pass_rate": 0.61, "reason": "Table 2"})
    gate = service.api("POST", "/gates", json={"candidate": "new", "baseline": "paper"})
    assert (gate["verdict"], gate["baseline_name"], gate["baseline_forecast"]) == ("pass", "paper", None)


def test_a_baseline_of_another_unit_is_refused(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "flops", n=8, compute_unit="flops")
    add_run(service, "new", n=8)
    stored = save(service, runs=["flops"])
    service.api("POST", "/baselines", json={"name": "main", "forecast": stored["id"]})
    problem = service.api("POST", "/gates", expect=422, json={"candidate": "new", "baseline": "main"})
    assert problem["errors"][0]["field"] == "unit"


def test_a_baseline_has_one_source(service: Any) -> None:
    missing = "01a2317e-594a-766b-b70e-0b1b7e2c0989"
    for body, status in (
        ({}, 422),
        ({"pass_rate": 0.5, "forecast": missing}, 422),
        ({"forecast": missing}, 404),
    ):
        service.api("POST", "/baselines", expect=status, json={"name": "x", **body})


@pytest.mark.parametrize(("actual", "tolerance"), [(0.6, 0.002), (0.63, 0.002), (0.7, 0.004)])
def test_crps_agrees_with_the_closed_form_of_a_normal(actual: float, tolerance: float) -> None:
    """Twenty quantiles of N(0.6, 0.02) against the formula of another library."""
    from statistics import NormalDist

    quantiles = [NormalDist(0.6, 0.02).inv_cdf(p) for p in scores.PROBABILITIES]
    assert scores.crps(quantiles, actual) == pytest.approx(crps_normal(actual, 0.6, 0.02), abs=tolerance)


def test_crps_of_a_single_value_is_the_absolute_error() -> None:
    assert scores.crps([0.5] * 20, 0.62) == pytest.approx(0.12)


def test_the_value_between_two_evaluations() -> None:
    points = [(1000.0, 0.6), (0.0, 0.1), (10.0, 0.4)]
    assert scores.value_at(100.0, points) == pytest.approx(0.5)  # half-way on a log axis
    assert scores.value_at(1000.0, points) == 0.6
    assert scores.value_at(1001.0, points) is None
    assert scores.value_at(5.0, points) is None
