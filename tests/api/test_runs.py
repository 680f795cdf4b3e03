from __future__ import annotations

from typing import Any

RUN = {"name": "run-1", "recipe": "recipe-a", "benchmark": "held-out", "compute_unit": "gpu_hours"}


def test_a_run_is_made_once(service: Any) -> None:
    first = service.api("POST", "/runs", expect=201, json=RUN)
    again = service.api("POST", "/runs", expect=200, json=RUN)
    assert again["id"] == first["id"]
    assert service.api("GET", "/runs/run-1")["id"] == first["id"]
    assert service.api("GET", f"/runs/{first['id']}")["name"] == "run-1"
    assert [run["name"] for run in service.api("GET", "/runs")["items"]] == ["run-1"]


def test_a_run_brings_its_recipe_by_name(service: Any) -> None:
    run = service.api("POST", "/runs", json=RUN)
    assert (run["recipe"]["name"], run["recipe"]["version"]) == ("recipe-a", 1)
    recipe = service.api("GET", "/recipes/recipe-a")
    assert (recipe["id"], recipe["config"]) == (run["recipe"]["id"], None)


def test_another_run_of_the_same_name_is_refused(service: Any) -> None:
    service.api("POST", "/runs", json=RUN)
    problem = service.api("POST", "/runs", expect=409, json={**RUN, "compute_unit": "flops"})
    assert problem["code"] == "run_exists"
    assert [error["field"] for error in problem["errors"]] == ["compute_unit"]
    problem = service.api("POST", "/runs", expect=409, json={**RUN, "recipe": "recipe-b"})
    assert [error["field"] for error in problem["errors"]] == ["recipe"]


def test_runs_are_filtered_sorted_and_paged(service: Any) -> None:
    for i in range(7):
        fields = {"name": f"run-{i}", "recipe": "even" if i % 2 == 0 else "odd"}
        service.api("POST", "/runs", json={**RUN, **fields})
    names: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        query = {"limit": 2, "sort": "name", "recipe": "even", **({"cursor": cursor} if cursor else {})}
        page = service.api("GET", "/runs", params=query)
        names += [run["name"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["run-0", "run-2", "run-4", "run-6"]
    newest_first = service.api("GET", "/runs")["items"]
    assert [run["name"] for run in newest_first] == [f"run-{i}" for i in reversed(range(7))]


def test_a_foreign_cursor_is_refused(service: Any) -> None:
    for i in range(2):
        service.api("POST", "/runs", json={**RUN, "name": f"run-{i}"})
    cursor = service.api("GET", "/runs", params={"limit": 1})["next_cursor"]
    for bad in (cursor[:-4], "x", "%00", cursor):
        sort = "name" if bad == cursor else "-created_at"
        problem = service.api("GET", "/runs", expect=422, params={"cursor": bad, "sort": sort})
        assert problem["errors"][0]["field"] == "cursor"


def test_unknown_names_say_where_to_look(service: Any) -> None:
    problem = service.api("GET", "/runs/nothing", expect=404)
    assert problem["detail"] == "no run named 'nothing'; GET /api/v1/runs lists them"
    assert service.api("GET", "/recipes/nothing", expect=404)["code"] == "not_found"


def test_a_recipe_gets_a_new_version_for_new_content_only(service: Any) -> None:
    one = service.api("POST", "/recipes", expect=201, json={"name": "r", "config": {"lr": 1e-3, "x": [1]}})
    same = service.api("POST", "/recipes", expect=200, json={"name": "r", "config": {"x": [1], "lr": 0.001}})
    two = service.api("POST", "/recipes", expect=201, json={"name": "r", "config": {"lr": 2e-3}})
    assert (one["version"], same["id"], two["version"]) == (1, one["id"], 2)
    assert service.api("GET", "/recipes/r")["id"] == two["id"]
    assert service.api("GET", f"/recipes/{one['id']}")["config"] == {"lr": 1e-3, "x": [1]}


def test_seeds_of_one_recipe_share_a_version(service: Any) -> None:
    ids = {
        service.api("POST", "/recipes", json={"name": "tiny", "config": {"name": "tiny", "seed": seed}})["id"]
        for seed in (1, 2)
    }
    assert len(ids) == 1
