"""Pages of a real service, without a browser: who may read them, what they carry."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

PAGES = ("/", "/jobs", "/gates", "/track-record")
DATA = ("/compare/data", "/compare/side", "/compare/catalogue", "/compare/points.csv", "/jobs/part", "/live")


@pytest.fixture
def reader(dashboard: Any) -> Iterator[httpx2.Client]:
    """A client that is logged in by cookie, as a browser is."""
    with httpx2.Client(base_url=dashboard.url, trust_env=False, timeout=60) as client:
        answer = client.post(
            "/login", data={"token": dashboard.token}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert answer.status_code == 303
        yield client


def curve(top: float = 0.7, n: int = 12) -> list[tuple[float, float]]:
    return [(c, 0.2 + (top - 0.2) / (1 + (40 / c) ** 1.3)) for c in (5 * 1.6**i for i in range(n))]


@pytest.mark.parametrize("path", PAGES)
def test_pages_send_strangers_to_the_login(dashboard: Any, path: str) -> None:
    headers = {"Accept": "text/html", "Authorization": f"Bearer {dashboard.token}"}
    answer = httpx2.get(dashboard.url + path, headers=headers, trust_env=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")


@pytest.mark.parametrize("path", DATA)
def test_data_is_not_given_without_the_cookie_even_with_the_token(dashboard: Any, path: str) -> None:
    headers = {"Authorization": f"Bearer {dashboard.token}"}
    assert httpx2.get(dashboard.url + path, headers=headers, trust_env=False).status_code == 401


def test_every_route_of_the_dashboard_refuses_strangers() -> None:
    from fastapi.routing import APIRoute

    from web import compare, gates, jobs, recipes, runs, track_record
    from web.session import require_session

    routes = [
        r for module in (compare, gates, jobs, recipes, runs, track_record) for r in module.router.routes
    ]
    assert len(routes) > 10
    for route in routes:
        assert isinstance(route, APIRoute)
        assert require_session in [dependency.dependency for dependency in route.dependencies], route.path


def test_the_api_does_not_accept_the_cookie(reader: httpx2.Client) -> None:
    assert reader.get("/jobs").status_code == 200
    assert reader.get("/api/v1/runs").status_code == 401


def test_a_forged_or_old_cookie_is_refused(dashboard: Any, reader: httpx2.Client) -> None:
    from web.session import Sessions

    (name,) = reader.cookies.keys()
    value = reader.cookies[name]
    for forged in ("", "x", value[:-1] + ("A" if value[-1] != "A" else "B"), dashboard.token):
        answer = httpx2.get(
            f"{dashboard.url}/jobs/part", headers={"Cookie": f"{name}={forged}"}, trust_env=False
        )
        assert answer.status_code == 401
    # Signed for another token: as after the token was changed.
    other = Sessions("rlc_another_token_0123456789")._serializer().dumps("x")
    answer = httpx2.get(f"{dashboard.url}/jobs/part", headers={"Cookie": f"{name}={other}"}, trust_env=False)
    assert answer.status_code == 401


def test_sessions_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from starlette.requests import Request
    from starlette.responses import Response

    from web.session import SESSION_S, Sessions

    sessions = Sessions("rlc_a_token_of_some_length")
    scope = {"type": "http", "scheme": "http", "headers": [], "path": "/", "server": ("127.0.0.1", 80)}
    response = Response()
    sessions.start(Request(scope), response)
    cookie = response.headers["set-cookie"].split(";")[0].encode()
    request = {**scope, "headers": [(b"cookie", cookie)]}
    assert sessions.valid(Request(request))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + SESSION_S + 2)
    assert not sessions.valid(Request(request))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_changes_from_elsewhere_are_refused(
    dashboard: Any, reader: httpx2.Client, headers: dict[str, str]
) -> None:
    for path, body in (
        ("/login", {"token": dashboard.token}),
        ("/logout", {}),
        ("/jobs/x/cancel", {}),
        ("/compare/keep", {}),
    ):
        answer = reader.post(path, data=body, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_older_browsers_are_known_by_their_origin(dashboard: Any) -> None:
    answer = httpx2.post(
        f"{dashboard.url}/login",
        data={"token": dashboard.token},
        headers={"Origin": dashboard.url},
        trust_env=False,
    )
    assert answer.status_code == 303
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/evil"]
)
def test_login_never_leads_to_another_site(dashboard: Any, target: str) -> None:
    answer = httpx2.post(
        f"{dashboard.url}/login",
        data={"token": dashboard.token, "next": target},
        headers={"Sec-Fetch-Site": "same-origin"},
        trust_env=False,
    )
    assert answer.headers["location"] == "/"


def test_every_answer_carries_the_policy(dashboard: Any, reader: httpx2.Client) -> None:
    for path in ("/", "/login", "/static/js/compare.js", "/api/v1/info", "/livez", "/no-such-page"):
        headers = reader.get(path, headers={"Accept": "text/html"}).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_hold_no_inline_code_and_no_foreign_address(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", curve())
    for path in (*PAGES, "/login", "/?run=a"):
        html = reader.get(path, headers={"Accept": "text/html"}).text
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|javascript:", html), path
        foreign = [a for a in re.findall(r"https?://[^\s\"'<]+", html) if not a.startswith(dashboard.url)]
        assert foreign == [], path


def test_plotly_comes_from_the_installed_wheel(reader: httpx2.Client) -> None:
    from importlib import resources

    dashboard_page = reader.get("/login").text
    assert "plotly" not in dashboard_page
    from web.assets import PLOTLY_PATH

    answer = reader.get(PLOTLY_PATH)
    assert answer.content == resources.files("plotly").joinpath("package_data/plotly.min.js").read_bytes()
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]


def test_comparison_gives_the_service_s_own_forecast(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", curve())
    body = reader.get("/compare/data?run=a&at=5000&level=0.8").json()
    asked = {"runs": ["a"], "at": [5000], "level": 0.8, "unit": "gpu_hours"}
    (forecast,) = dashboard.api("POST", "/forecasts", json=asked)["forecasts"]
    assert body["hashes"] == [forecast["inputs_sha256"]]
    assert f"{forecast['parameters']['A']['value']:.3f}" in body["panel"]
    assert f"{forecast['at'][0]['value']:.3f}" in body["panel"]
    assert body["errors"] == {}


def test_a_target_s_compute_is_the_law_s(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", curve(0.7, n=16))
    panel = reader.get("/compare/data?run=a&reach=0.45").json()["panel"]
    assert "Compute to reach 0.450" in panel
    # Half of the gain from 0.2 to 0.7 is made at 40 GPU-hours, the midpoint of the curve above.
    shown = re.search(r"<td>([\d.]+) \([\d.]+ to [\d.]+\)</td>", panel)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(40, rel=0.02)
    assert "not reached" in reader.get("/compare/data?run=a&reach=0.95").json()["panel"]


def test_error_bars_come_from_the_stored_numbers_of_samples(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", [])
    evaluations = [
        {
            "step": i,
            "compute": {"gpu_hours": c},
            "pass_rate": round(r * 500) / 500,
            "n_prompts": 125,
            "n_samples": 4,
        }
        for i, (c, r) in enumerate(curve())
    ]
    dashboard.api("POST", "/runs/a/evaluations", json={"evaluations": evaluations})
    figure = reader.get("/compare/data?run=a").json()["figure"]
    (points,) = [trace for trace in figure["data"] if trace.get("name") == "used points"]
    n, z = 500, 1.6449
    for rate, up in zip(points["y"], points["error_y"]["array"], strict=True):
        assert up == pytest.approx(z * (rate * (1 - rate) / n) ** 0.5, rel=0.15)


def test_runs_in_other_units_say_so_and_stay_listed(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("hours", curve())
    dashboard.add_run("tokens", [(c * 1e6, r) for c, r in curve()], compute_unit="tokens")
    body = reader.get("/compare/data?run=hours&run=tokens").json()
    assert "has compute in tokens, not in gpu_hours" in body["panel"]
    assert "GPU-hours" in body["figure"]["layout"]["xaxis"]["title"]["text"]
    in_tokens = reader.get("/compare/data?run=hours&run=tokens&unit=tokens").json()
    assert "tokens" in in_tokens["figure"]["layout"]["xaxis"]["title"]["text"]


def test_seeds_of_a_recipe_can_be_pooled(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("seed-1", curve(0.70), seed=1)
    dashboard.add_run("seed-2", [(c * 1.1, r) for c, r in curve(0.71)], seed=2)
    body = reader.get("/compare/data?recipe=recipe-a").json()
    assert len(body["run_ids"]) == 2
    assert len(body["hashes"]) == 1
    shown = [t for t in body["figure"]["data"] if t.get("name", "").endswith(("points", "outside the fit"))]
    assert sum(len(t["x"]) for t in shown) == 24


@pytest.mark.parametrize(
    ("query", "field"),
    [("run=nobody", "run"), ("run=a&baseline=nobody", "baseline"), ("run=a&baseline=7", "baseline")],
)
def test_unknown_names_are_told_and_the_rest_is_shown(
    dashboard: Any, reader: httpx2.Client, query: str, field: str
) -> None:
    dashboard.add_run("a", curve())
    body = reader.get(f"/compare/data?{query}").json()
    assert list(body["errors"]) == [field]


def test_a_baseline_run_draws_its_asymptote(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", curve(0.6))
    dashboard.add_run("base", curve(0.7, n=16))
    body = reader.get("/compare/data?run=a&baseline=base&margin=0.05").json()
    assert body["errors"] == {}
    shapes = {shape["name"]: shape for shape in body["figure"]["layout"]["shapes"]}
    assert shapes["baseline"]["y0"] == pytest.approx(0.7, abs=0.01)
    assert shapes["baseline"]["y0"] - shapes["baseline margin"]["y0"] == pytest.approx(0.05)


def test_downloads_hold_all_points_and_the_forecast(dashboard: Any, reader: httpx2.Client) -> None:
    points = curve()
    dashboard.add_run("=cmd()", [])
    run = next(r for r in dashboard.api("GET", "/runs")["items"])
    dashboard.add_points(run["id"], points)
    query = {"run": "=cmd()"}
    rows = list(csv.DictReader(io.StringIO(reader.get("/compare/points.csv", params=query).text)))
    assert [(float(r["compute"]), float(r["pass_rate"])) for r in rows] == points
    assert {r["run"] for r in rows} == {"'=cmd()"}
    saved = json.loads(reader.get("/compare/forecasts.json", params=query).text)
    assert saved["forecasts"][0]["inputs_sha256"] == rows[0]["forecast"]
    grid = list(csv.DictReader(io.StringIO(reader.get("/compare/forecasts.csv", params=query).text)))
    assert len(grid) == len(saved["forecasts"][0]["grid"]["compute"])


def test_live_events_pass_through_as_they_come(dashboard: Any, reader: httpx2.Client) -> None:
    with reader.stream("GET", "/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        dashboard.add_run("new", curve()[:1])
        seen = ""
        for line in lines:
            seen += line + "\n"
            if "evaluation.created" in seen and '"run"' in seen:
                break
        assert "run.created" in seen
        assert dashboard.token not in str(stream.headers)


@pytest.mark.parametrize("n", [0, 2, 12])
def test_a_run_s_page_shows_what_there_is(dashboard: Any, reader: httpx2.Client, n: int) -> None:
    dashboard.add_run("a", curve()[:n])
    assert "<h1>a</h1>" in reader.get("/runs/a", headers={"Accept": "text/html"}).text
    body = reader.get("/runs/a/data").json()
    shown = sum(len(t["x"]) for t in body["figures"]["curve"]["data"] if "point" in t["name"])
    assert shown == n
    assert bool(body["figures"]["history"]["data"]) is (n == 12)
    assert f"{n} evaluations" in body["evaluations"]


def test_a_wrong_address_is_a_page_for_people_and_a_problem_for_programs(reader: httpx2.Client) -> None:
    for path in ("/no-such-page", "/runs/nobody", "/recipes/nobody"):
        answer = reader.get(path, headers={"Accept": "text/html,*/*"})
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
    answer = reader.get("/api/v1/no-such-thing", headers={"Accept": "text/html,*/*"})
    assert answer.headers["content-type"] == "application/problem+json"


def test_names_in_addresses_cannot_reach_other_routes(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("a", curve())
    for name in ("..%2f..%2finfo", "a%2fevaluations", "..", "%2e%2e%2frecipes", "a%3flimit=1"):
        answer = reader.get(f"/runs/{name}/data")
        assert answer.status_code in (404, 405, 422), name


def test_two_curves_are_compared_in_words(dashboard: Any, reader: httpx2.Client) -> None:
    dashboard.add_run("high", curve(0.7, n=22))
    dashboard.add_run("low", curve(0.5, n=22), recipe="recipe-b")
    panel = reader.get("/compare/data?run=high&run=low&law=sigmoid").json()["panel"]
    assert "high is a ceiling mover against low" in panel
    assert "Difference of A: +0.2" in panel
    assert "10% more compute gains" in panel
    dashboard.add_run("third", curve(0.6, n=22), recipe="recipe-c")
    panel = reader.get("/compare/data?run=high&run=low&run=third").json()["panel"]
    assert "against low" not in panel
    assert "Laws by how well they have forecast this curve so far" in panel
