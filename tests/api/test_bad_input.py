"""What cannot be stored or fitted is refused with field and remedy, never with a 500."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def send(service: Any, add_run: Callable[..., Any]) -> Callable[..., Any]:
    """Posts one evaluation as raw JSON text, with `pass_rate` and others as written."""
    add_run(service, "run-1")

    def post(**fields: str) -> Any:
        parts = {"step": "1", "compute": '{"gpu_hours": 1}', "pass_rate": "0.5", **fields}
        text = ", ".join(f'"{name}": {value}' for name, value in parts.items())
        return service.request(
            "POST",
            "/runs/run-1/evaluations",
            content=f'{{"evaluations": [{{{text}}}]}}'.encode(),
            headers={"content-type": "application/json"},
        )

    return post


BAD = [
    ("pass_rate", "NaN", "finite"),
    ("pass_rate", "Infinity", "finite"),
    ("pass_rate", "-Infinity", "finite"),
    ("pass_rate", "1e999", "finite"),
    ("pass_rate", '"NaN"', "finite"),
    ("pass_rate", "45.2", "divide percent by 100"),
    ("pass_rate", "1.0000001", "fraction from 0 to 1"),
    ("pass_rate", "-0.1", "fraction from 0 to 1"),
    ("pass_rate", "null", "valid number"),
    ("compute", '{"gpu_hours": NaN}', "finite"),
    ("compute", '{"gpu_hours": 1e999}', "finite"),
    ("compute", '{"gpu_hours": -1}', "greater than or equal to 0"),
    ("compute", '{"parsecs": 1}', "gpu_hours"),
    ("compute", "{}", "at least 1"),
    ("step", "-1", "greater than or equal to 0"),
    ("step", "1.5", "integer"),
    ("step", "9223372036854775808", "less than or equal"),
    ("n_prompts", "0", "greater than or equal to 1"),
    ("solved", "[40000]", "less than 32768"),
    ("truncated", "2", "less than or equal to 1"),
    ("measured_at", '"2026-01-01T00:00:00"', "time zone"),
    ("measured_at", '"0001-01-01T00:00:00Z"', "year"),
    ("benchmark", '"a\\u0000b"', "control characters"),
    ("benchmark", '"\\ud800"', "unicode"),
    ("passrate", "0.5", "unknown field"),
]


def test_bad_values_name_their_field(send: Callable[..., Any], subtests: pytest.Subtests) -> None:
    for field, value, words in BAD:
        with subtests.test(field=field, value=value):
            answer = send(**{field: value})
            assert answer.status_code == 422, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            [error] = answer.json()["errors"]
            assert error["field"].startswith(f"evaluations.0.{field}")
            assert words in error["message"]
            assert "\n" not in answer.json()["detail"]
            assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_the_edges_are_accepted(send: Callable[..., Any]) -> None:
    zero = {"compute": '{"gpu_hours": 0}'}
    edges = [{"pass_rate": "-0.0"}, {"pass_rate": "1"}, {"pass_rate": "4.9e-324"}, zero]
    for step, fields in enumerate(edges):
        assert send(step=str(step), **fields).status_code == 200
        assert send(step=str(step), **fields).json()["duplicates"] == 1


NO_OBJECT = [
    b"",
    b"{",
    b"[1, 2]",
    b'"text"',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b'{"evaluations": ' + b"[" * 5000,
    b"1" * 5000,
]


def test_bodies_that_are_no_json_object(
    service: Any, add_run: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    add_run(service, "run-1")
    headers = {"content-type": "application/json"}
    for content in NO_OBJECT:
        with subtests.test(content=content[:20]):
            answer = service.request("POST", "/runs/run-1/evaluations", content=content, headers=headers)
            assert answer.status_code in (400, 422), answer.text
            assert answer.headers["content-type"] == "application/problem+json"


NO_NAMES = ["", " x", "x\n", "a/b", "..", "a\x00b", "x" * 201, "\x7f", "\ud800"]


def test_names_that_cannot_stand_in_addresses(service: Any, subtests: pytest.Subtests) -> None:
    headers = {"content-type": "application/json"}
    for name in NO_NAMES:
        with subtests.test(name=ascii(name)[:20]):
            body = {"name": name, "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
            answer = service.request("POST", "/runs", content=json.dumps(body).encode(), headers=headers)
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["field"] == "name"


def test_names_are_text_and_nothing_else(service: Any) -> None:
    body = {"recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    for name in (
        "'; DROP TABLE runs; --",
        "<img src=x onerror=alert(1)>",
        "名前 🚀",
        "%2e%2e",
        "a%00b",
        "x;y?z#w",
    ):
        made = service.api("POST", "/runs", json={"name": name, **body})
        assert made["name"] == name
        assert service.api("GET", f"/runs/{made['id']}")["name"] == name


def test_odd_addresses_are_refused(service: Any, subtests: pytest.Subtests) -> None:
    for path in ("/runs/%00", "/runs/a%0Ab", "/recipes/%00", "/jobs/%00", "/gates/%00"):
        with subtests.test(path=path):
            assert service.request("GET", path).status_code == 422


ODD_QUERIES = [
    ("/runs", {"limit": "0"}),
    ("/runs", {"limit": "1001"}),
    ("/runs", {"sort": "id; DROP"}),
    ("/runs", {"recipe": "\0"}),
    ("/runs", {"compute_unit": "parsecs"}),
    ("/events", {"after": "-1"}),
    ("/events", {"after": "99999999999999999999"}),
]


def test_odd_queries_are_refused(service: Any, subtests: pytest.Subtests) -> None:
    for path, query in ODD_QUERIES:
        with subtests.test(path=path, **query):
            problem = service.api("GET", path, expect=422, params=query)
            assert problem["errors"][0]["field"] == next(iter(query))


def test_configurations_are_finite_storable_and_bounded(service: Any) -> None:
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"x": deep}
    headers = {"content-type": "application/json"}
    for config in ({"lr": float("nan")}, {"a\0": 1}, {"a": ["\0"]}, deep, {"a": 2**70}, {"a": "x" * 100_000}):
        body = json.dumps({"name": "r", "config": config}).encode()
        answer = service.request("POST", "/recipes", content=body, headers=headers)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == "config"


def test_fields_that_only_the_service_sets_are_refused(service: Any) -> None:
    body = {"name": "x", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    for field in ("id", "created_at", "n_evaluations", "job_id"):
        problem = service.api("POST", "/runs", expect=422, json={**body, field: "1"})
        assert problem["errors"] == [
            {"field": field, "message": "unknown field; remove it or check its spelling"}
        ]
    problem = service.api("POST", "/jobs", expect=422, json={"recipe": {"name": "tiny"}, "state": "finished"})
    assert problem["errors"][0]["field"] == "state"


def test_unknown_addresses_and_methods_are_problems_too(service: Any) -> None:
    assert service.api("GET", "/nothing", expect=404)["code"] == "not_found"
    assert service.api("DELETE", "/runs", expect=405)["code"] == "method_not_allowed"
