"""Every page passes axe-core's rules, in both themes and at phone width."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest

from rlcast.recipe import Recipe

pytestmark = pytest.mark.browser


def curve(top: float) -> list[tuple[float, float]]:
    return [(c, 0.2 + (top - 0.2) / (1 + (40 / c) ** 1.3)) for c in (4 * 1.5**i for i in range(14))]


def violations(page: Any) -> list[str]:
    # Sent over the debugging channel, so that the page's policy need not allow it.
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run(document)")["violations"]
    return [f"{v['id']}: {node['html'][:160]}" for v in found for node in v["nodes"]]


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_pages_have_no_violations(dashboard: Any, open_page: Callable[..., Any], look: str) -> None:
    dashboard.add_run("a", curve(0.7))
    dashboard.add_run("b", curve(0.6), recipe="recipe-b")
    dashboard.add_run("young", curve(0.6)[:2], recipe="recipe-b")
    dashboard.api("POST", "/gates", json={"candidate": "b", "baseline": "a"})
    dashboard.api("POST", "/jobs", json={"recipe": Recipe(name="tiny").model_dump(mode="json")})
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 844}} if look == "phone" else {}
    visit = open_page(color_scheme="dark" if look == "dark" else "light", **options)
    visit.page.goto(f"{dashboard.url}/login")
    assert violations(visit.page) == []
    visit.login("/?run=a&run=b&run=young&at=5000&baseline=0.6")
    visit.wait_for_chart()
    visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert violations(visit.page) == []
    for path in ("/jobs", "/gates", "/track-record", "/recipes/tiny", "/runs/a"):
        visit.page.goto(dashboard.url + path)
        visit.page.wait_for_selector("main h1")
        if path == "/runs/a":
            visit.page.wait_for_selector("#residuals .main-svg")
        assert violations(visit.page) == [], path


def test_the_empty_page_has_no_violations(dashboard: Any, open_page: Callable[..., Any]) -> None:
    visit = open_page()
    visit.login("/")
    assert visit.page.get_by_role("heading", name="No runs yet").is_visible()
    assert violations(visit.page) == []
