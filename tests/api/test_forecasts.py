from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest


def ask(service: Any, expect: int = 200, **body: Any) -> Any:
    return service.api("POST", "/forecasts", expect=expect, json=body)


@pytest.fixture
def service_settings() -> dict[str, Any]:
    return {"broker_url": "redis://127.0.0.1:1/0", "forecast_timeout_s": 30}


def test_a_stored_run_is_forecast(service: Any, add_run: Callable[..., Any]) -> None:
    """The points lie on the law with A = 0.65, so the fit must find it and what follows from it."""
    run = add_run(service, "run-1", n=30)
    [forecast] = ask(service, runs=["run-1"], at=[100_000.0], reach=[0.6, 0.9])["forecasts"]
    assert (forecast["run"], forecast["run_id"], forecast["unit"]) == ("run-1", run["id"], "gpu_hours")
    assert forecast["parameters"]["A"]["value"] == pytest.approx(0.65, abs=0.003)
    expected = 0.25 + 0.40 / (1 + (2000 / 100_000) ** 1.2)
    assert forecast["at"][0]["value"] == pytest.approx(expected, abs=0.003)
    assert forecast["verdict"]["state"] == "identified"
    assert forecast["n_points"] == 30
    assert forecast["reach"][1]["compute"] is None  # above the asymptote


def test_the_same_question_has_the_same_answer(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=12)
    body = {"runs": ["run-1"], "seed": 3, "at": [5e4]}
    first = service.request("POST", "/forecasts", json=body).content
    service.app.state.forecaster.forget()  # not from memory, but made again
    assert service.request("POST", "/forecasts", json=body).content == first
    other = ask(service, **{**body, "seed": 4})["forecasts"][0]
    assert other["inputs_sha256"] not in first.decode()


def test_a_new_point_changes_the_answer(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=10)
    before = ask(service, runs=["run-1"])["forecasts"][0]
    late = {"step": 99, "compute": {"gpu_hours": 99_000.0}, "pass_rate": 0.64}
    service.api("POST", "/runs/run-1/evaluations", json={"evaluations": [late]})
    after = ask(service, runs=["run-1"])["forecasts"][0]
    assert (before["n_points"], after["n_points"]) == (10, 11)
    assert before["inputs_sha256"] != after["inputs_sha256"]


def test_runs_and_recipes_together(service: Any, add_run: Callable[..., Any]) -> None:
    for seed in (1, 2):
        add_run(service, f"run-{seed}", n=10, law={"A": 0.60 + 0.01 * seed}, seed=seed)
    answer = ask(service, runs=["run-1"], recipes=["recipe-a"])["forecasts"]
    assert [(f["run"], f["run_id"] is None) for f in answer] == [("run-1", False), ("recipe-a", True)]
    assert answer[1]["window"]["n_total"] == 20


def test_versions_of_a_recipe_are_never_mixed(service: Any, add_run: Callable[..., Any]) -> None:
    """A name stands for the newest version that has points; another version is reached by its id."""
    ids = []
    for version in (1, 2, 3):
        recipe = service.api("POST", "/recipes", json={"name": "r", "config": {"lr": version}})
        ids.append(recipe["id"])
        add_run(service, f"run-{version}", n=8 if version < 3 else 0, recipe=recipe["id"])
    by_name, by_id = ask(service, recipes=["r", ids[0]])["forecasts"]
    assert (by_name["recipe_id"], by_id["recipe_id"]) == (ids[1], ids[0])
    assert by_name["window"]["n_total"] == 8
    problem = ask(service, expect=422, recipes=[ids[2]])
    assert problem["errors"] == [{"field": "recipe", "message": "no run of 'r' has evaluations yet"}]


def test_units_are_never_mixed(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "hours", n=8)
    add_run(service, "flops", n=8, compute_unit="flops")
    problem = ask(service, expect=422, runs=["hours", "flops"])
    assert problem["errors"][0]["field"] == "unit"
    assert "flops and gpu_hours" in problem["detail"]
    problem = ask(service, expect=422, runs=["hours"], unit="flops")
    assert problem["errors"][0]["message"] == "8 of 8 evaluations of run 'hours' carry no flops"


def test_benchmarks_are_never_mixed(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "one", n=8)
    add_run(service, "two", n=8, benchmark="other")
    problem = ask(service, expect=422, runs=["one", "two"])
    assert problem["errors"][0]["field"] == "benchmark"


CANNOT: list[tuple[dict[str, Any], str]] = [
    ({"runs": ["run-1"]}, "points"),
    ({"runs": ["run-1"], "law": "magic"}, "law"),
    ({"runs": ["run-1"], "level": 1.0}, "level"),
    ({"runs": ["run-1"], "at": [0]}, "at.0"),
    ({"runs": ["run-1"], "at": [1.0] * 21}, "at"),
    ({"runs": ["run-1"], "reach": [60]}, "reach.0"),
    ({"runs": ["run-1"], "replicates": 10_000_000}, "replicates"),
    ({"runs": ["run-1"] * 51}, "runs"),
]


def test_what_cannot_be_forecast_says_why(
    service: Any, add_run: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    add_run(service, "run-1", n=3)
    for body, field in CANNOT:
        with subtests.test(field=field):
            problem = ask(service, expect=422, **body)
            assert problem["errors"][0]["field"] == field
            assert "\n" not in problem["detail"]


def test_unknown_and_missing_names(service: Any, add_run: Callable[..., Any]) -> None:
    assert ask(service, expect=404, runs=["nothing"])["code"] == "not_found"
    assert ask(service, expect=404, recipes=["nothing"])["code"] == "not_found"
    assert "name at least one" in ask(service, expect=422)["detail"]


def test_one_of_several_that_fails_is_named(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "long", n=10)
    add_run(service, "short", n=2)
    assert ask(service, expect=422, runs=["long", "short"])["errors"][0]["message"].startswith("short: ")


def test_a_slow_forecast_holds_up_no_point(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=200)
    ask(service, runs=["run-1"], replicates=100)  # the pool is up
    asking = threading.Thread(target=ask, args=(service,), kwargs={"runs": ["run-1"], "replicates": 3000})
    asking.start()
    answered = 0
    slowest_s = 0.0
    while asking.is_alive():
        started = time.monotonic()
        service.api("GET", "/runs")
        slowest_s = max(slowest_s, time.monotonic() - started)
        answered += 1
    assert answered >= 3
    assert slowest_s < 1.0


def test_a_killed_forecasting_process_is_replaced(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=10)
    ask(service, runs=["run-1"])
    for process in list(service.app.state.forecaster._pool._processes.values()):
        process.kill()
    assert ask(service, runs=["run-1"], seed=9)["forecasts"][0]["seed"] == 9


def test_a_forecast_that_takes_too_long_is_given_up(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=300)
    service.app.state.forecaster._timeout_s = 0.01
    problem = ask(service, expect=503, runs=["run-1"])
    assert problem["code"] == "fit_timeout"
    service.app.state.forecaster._timeout_s = 30
    assert ask(service, runs=["run-1"], replicates=100)["forecasts"]
