"""The Run, Jobs and Gates pages in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from rlcast.recipe import Recipe

pytestmark = pytest.mark.browser


def curve(top: float = 0.7, n: int = 14) -> list[tuple[float, float]]:
    return [(c, 0.2 + (top - 0.2) / (1 + (40 / c) ** 1.3)) for c in (4 * 1.5**i for i in range(n))]


def a_recipe() -> dict[str, Any]:
    return Recipe(name="tiny").model_dump(mode="json")


def submit_and_claim(dashboard: Any) -> tuple[dict[str, Any], str]:
    """A running job, as a runner would have it; returns the job and its lease token."""
    job = dashboard.api("POST", "/jobs", json={"recipe": a_recipe()})
    body = {"attempt": job["attempt"], "runner": "host-<1>"}
    lease = dashboard.api("POST", f"/jobs/{job['id']}/claim", json=body)["lease_token"]
    return job, lease


def test_a_run_shows_how_its_forecast_came_about(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", [(0.0, 0.2), *curve()], model="Qwen3-8B", tags={"team": "reasoning"})
    visit = open_page()
    visit.login("/runs/a")
    page = visit.page
    page.wait_for_selector("#residuals .main-svg", timeout=20_000)
    facts = page.locator(".facts").first.inner_text()
    assert "Qwen3-8B" in facts
    assert "team: reasoning" in facts
    history = page.evaluate(
        "document.getElementById('history').data"
        ".filter((t) => t.name.startsWith('A')).flatMap((t) => [...t.x])"
    )
    assert len(history) >= 4
    assert max(history) == pytest.approx(curve()[-1][0])
    residuals = page.evaluate(
        "document.getElementById('residuals').data"
        ".filter((t) => /points/.test(t.name)).flatMap((t) => [...t.y])"
    )
    assert len(residuals) == 14
    assert max(map(abs, residuals)) < 0.01
    page.get_by_role("heading", name="15 evaluations").click()
    assert page.locator("#evaluations tbody tr").count() == 15


def test_a_run_s_page_grows_with_its_points(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve()[:10])
    visit = open_page()
    visit.login("/runs/a")
    visit.page.wait_for_selector("#residuals .main-svg", timeout=20_000)
    visit.page.wait_for_selector("#live[data-state=live]")
    dashboard.add_points("a", curve()[10:12], first_step=10)
    visit.page.get_by_role("heading", name="12 evaluations").wait_for(timeout=10_000)


def test_a_job_s_progress_moves_without_a_reload(dashboard: Any, open_page: Callable[..., Any]) -> None:
    job, lease = submit_and_claim(dashboard)
    visit = open_page()
    visit.login("/jobs")
    page = visit.page
    page.wait_for_selector("#live[data-state=live]")
    assert "host-<1>" in page.locator("article").inner_text()
    beat = {
        "lease_token": lease,
        "progress": {"step": 30, "total_steps": 120, "reward_mean": 0.5, "phase": "train"},
        "log_tail": "step 30 <b>reward</b> 0.5",
    }
    dashboard.api("POST", f"/jobs/{job['id']}/heartbeat", json=beat)
    visit.until("document.querySelector('progress')?.value === 0.25")
    page.get_by_text("End of its log").click()
    page.get_by_text("step 30 <b>reward</b> 0.5").wait_for()
    # The Compare page shows it as well.
    page.goto(dashboard.url)
    assert "step 30 of 120" in page.locator("#side").inner_text()


def test_cancelling_asks_first_and_then_reaches_the_runner(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    job, lease = submit_and_claim(dashboard)
    visit = open_page()
    visit.login("/jobs")
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss() if len(asked) == 1 else dialog.accept()

    visit.page.on("dialog", answer)
    visit.page.get_by_role("button", name="Cancel").click()
    assert not dashboard.api("GET", f"/jobs/{job['id']}")["cancel_requested"]
    visit.page.get_by_role("button", name="Cancel").click()
    visit.page.get_by_text("cancel asked for").wait_for()
    assert len(asked) == 2
    assert (
        dashboard.api("POST", f"/jobs/{job['id']}/heartbeat", json={"lease_token": lease})["cancel"] is True
    )


def test_a_gate_s_decision_appears_with_its_evidence(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("good", curve(0.75))
    dashboard.add_run("bad", curve(0.5), recipe="recipe-b")
    visit = open_page()
    visit.login("/gates")
    visit.page.wait_for_selector("#live[data-state=live]")
    decision = dashboard.api("POST", "/gates", json={"candidate": "recipe-b", "baseline": "good"})
    assert decision["verdict"] == "fail"
    article = visit.page.locator("article")
    article.wait_for(timeout=10_000)
    assert article.locator(".badge").inner_text() == "fail"
    difference = (
        article.get_by_role("row", name=re.compile("^Difference")).get_by_role("cell").first.inner_text()
    )
    assert float(difference) == pytest.approx(-0.25, abs=0.02)
    article.get_by_role("link", name="Show the curves").click()
    visit.wait_for_chart()
    names = visit.page.locator(".legendtext").all_text_contents()
    assert {"good", "recipe-b"} == set(names)


def test_recipes_that_differ_in_one_option_say_in_which(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    first, second = a_recipe(), a_recipe()
    second["optimizer"] = {**second["optimizer"], "learning_rate": 1e-9}
    for name, config, top in (("plain", first, 0.7), ("slow", second, 0.5)):
        dashboard.api("POST", "/recipes", json={"name": name, "config": {**config, "name": name}})
        dashboard.add_run(f"{name}-1", curve(top), recipe=name)
    visit = open_page()
    visit.login("/?run=plain-1&run=slow-1")
    visit.wait_for_chart()
    rows = visit.page.locator(".differences tbody tr").all_inner_texts()
    assert len(rows) == 1
    assert rows[0].startswith("optimizer.learning_rate")
    assert "1e-09" in rows[0]
    visit.page.goto(f"{dashboard.url}/runs/plain-1")
    visit.page.get_by_role("link", name="plain", exact=True).click()
    visit.page.get_by_label("Other recipe", exact=True).select_option("slow")
    visit.page.get_by_role("button", name="Show differences").click()
    visit.page.wait_for_url("**against=*")
    assert "optimizer.learning_rate" in visit.page.get_by_role("region", name="Differences").inner_text()
    assert visit.page.get_by_role("link", name="plain-1").is_visible()


def test_a_kept_forecast_is_scored_when_its_run_gets_there(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    points = curve(0.7, n=16)
    dashboard.add_run("a", points[:10])
    budget = points[13][0]
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    page = visit.page
    page.get_by_role("button", name="Keep for the track record").click()
    page.get_by_text("Give a budget first").wait_for()
    visit.problems.clear()  # Chromium logs the 422
    page.get_by_label("Budget").fill(f"{budget}")
    visit.until("new URLSearchParams(location.search).get('at') > 0")
    page.get_by_role("button", name="Keep for the track record").click()
    page.get_by_text("1 forecast kept").wait_for()
    page.goto(f"{dashboard.url}/track-record")
    assert "0 forecast values scored, 1 still to come" in page.locator("main").inner_text()
    dashboard.add_points("a", points[10:], first_step=10)
    deadline = time.monotonic() + 30
    while "1 forecast value scored" not in page.locator("main").inner_text():
        assert time.monotonic() < deadline
        page.wait_for_timeout(500)
        page.reload()
    row = page.get_by_role("region", name="Table of misses").get_by_role("row").nth(1)
    assert "0.6" in row.inner_text()
    actual = float(row.get_by_role("cell").nth(3).inner_text())
    assert actual == pytest.approx(points[13][1], abs=0.002)
