"""The Compare page in a real browser, by what a person does and sees there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = pytest.mark.browser

EVIL = '<img src=x onerror="pwned()"><b>bold'


def curve(top: float, n: int = 14, middle: float = 40.0) -> list[tuple[float, float]]:
    """A curve that has bent: from 0.2 to near `top`, half-way at `middle` GPU-hours; small zigzag noise."""
    compute = [4 * 1.5**i for i in range(n)]
    rate = [0.2 + (top - 0.2) / (1 + (middle / c) ** 1.3) for c in compute]
    return [(c, r + 0.003 * (-1) ** i) for i, (c, r) in enumerate(zip(compute, rate, strict=True))]


MEASURED = (
    "document.getElementById('chart').data.filter(t => /points/.test(t.name))"
    ".reduce((n, t) => n + t.x.length, 0)"
)


def measured(page: Any) -> int:
    """How many measured points the chart shows."""
    return int(page.evaluate(MEASURED))


def test_curves_are_drawn_with_verdict_and_numbers(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("better", curve(0.75))
    dashboard.add_run("worse", curve(0.55), recipe="recipe-b")
    visit = open_page()
    visit.login("/?run=better&run=worse&at=5000")
    visit.wait_for_chart()
    page = visit.page
    assert measured(page) == 28
    assert page.evaluate("document.getElementById('chart').layout.xaxis.type") == "log"
    dashes = page.evaluate(
        "document.getElementById('chart').data.filter(t => t.name === 'extrapolation').map(t => t.line.dash)"
    )
    assert len(dashes) == 2
    assert all(dash not in (None, "solid") for dash in dashes)
    verdict = page.locator("#verdicts").inner_text()
    assert re.search(r"At 5,000 GPU-hours, better leads", verdict)
    row = page.get_by_role("row", name=re.compile("^better"))
    asymptote = float(row.get_by_role("cell").first.inner_text().split()[0])
    assert asymptote == pytest.approx(0.75, abs=0.02)
    # The words come before the chart, the chart before its table.
    order = [page.locator(s).bounding_box()["y"] for s in ("#verdicts", "#chart", "#data-table")]
    assert order == sorted(order)


def test_a_posted_evaluation_appears_without_a_reload(dashboard: Any, open_page: Callable[..., Any]) -> None:
    points = curve(0.7)
    dashboard.add_run("growing", points[:8])
    visit = open_page()
    visit.login("/?run=growing")
    visit.wait_for_chart()
    page = visit.page
    page.wait_for_selector("#live[data-state=live]")
    page.evaluate("globalThis.sameDocument = true")
    assert measured(page) == 8
    dashboard.add_points("growing", points[8:10], first_step=8)
    visit.until(f"{MEASURED} === 10")
    assert page.evaluate("globalThis.sameDocument") is True
    visit.until("/10 points/.test(document.getElementById('catalogue').textContent)")


def test_a_new_run_appears_in_the_list_and_can_be_chosen(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    dashboard.add_run("first", curve(0.7))
    visit = open_page()
    visit.login("/?run=first")
    visit.wait_for_chart()
    visit.page.wait_for_selector("#live[data-state=live]")
    dashboard.add_run("second", curve(0.6))
    box = visit.page.get_by_role("checkbox", name=re.compile("second"))
    box.wait_for(timeout=10_000)
    box.check()
    visit.page.get_by_role("row", name=re.compile("^second")).wait_for()
    assert parse_qs(urlsplit(visit.page.url).query)["run"] == ["first", "second"]


def test_an_evil_name_stays_text_everywhere(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("plain", curve(0.7), recipe=EVIL)
    dashboard.add_run(EVIL, [], recipe=EVIL)
    run_id = dashboard.api("GET", "/runs?limit=10")["items"]
    evil_id = next(run["id"] for run in run_id if run["name"] == EVIL)
    dashboard.add_points(evil_id, curve(0.6))
    visit = open_page()
    visit.login("/")
    visit.wait_for_chart()
    page = visit.page
    visit.until("document.querySelectorAll('.legendtext').length === 2")
    assert any("<img src=x" in text for text in page.locator(".legendtext").all_text_contents())
    # Hover over a point of the evil run.
    page.evaluate(
        "() => { const chart = document.getElementById('chart');"
        "const i = chart.data.findIndex("
        "t => t.name === 'used points' && t.customdata[3].includes('&lt;img'));"
        "Plotly.Fx.hover(chart, [{curveNumber: i, pointNumber: 3}]); }"
    )
    assert "<img src=x" in page.locator(".hoverlayer").text_content()
    assert EVIL in page.locator("#verdicts").inner_text()
    assert EVIL in page.locator("#catalogue").inner_text()
    assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    assert page.evaluate("globalThis.wasPwned") is None


def test_the_page_works_without_its_stream(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page()
    visit.page.route("**/live", lambda route: route.abort())
    visit.login("/?run=a")
    visit.wait_for_chart()
    assert measured(visit.page) == 14
    assert "may be old" in visit.page.locator("#live").inner_text()
    visit.problems.clear()  # the stream that was refused, which Chromium logs


def test_curves_in_flops_are_drawn_within_the_policy(dashboard: Any, open_page: Callable[..., Any]) -> None:
    points = [(c * 1e17, r) for c, r in curve(0.7)]
    dashboard.add_run("a", points, compute_unit="flops")
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    assert "FLOPs" in visit.page.locator(".xtitle").text_content()
    assert "1e+18" in visit.page.locator(".xtick").all_text_contents()
    visit.page.evaluate(
        "Plotly.Fx.hover(document.getElementById('chart'), [{curveNumber: 2, pointNumber: 3}])"
    )
    visit.page.wait_for_selector(".hovertext")


def test_the_address_restores_the_whole_state(dashboard: Any, open_page: Callable[..., Any]) -> None:
    for name in ("a", "b", "c"):
        dashboard.add_run(name, curve(0.7), recipe=f"recipe-{name}")
    first = open_page()
    first.login("/?run=a")
    first.wait_for_chart()
    page = first.page
    page.get_by_role("checkbox", name=re.compile("^b ")).check()
    page.get_by_label("Budget").fill("20k")
    page.get_by_role("textbox", name="Fit from").fill("8")
    page.get_by_label("Interval").select_option("0.8")
    page.get_by_label("Baseline").fill("0.62")
    first.until("new URLSearchParams(location.search).get('baseline') === '0.62'")
    page.wait_for_selector("#verdicts[aria-busy=false]")
    numbers = page.locator("#verdicts table").inner_text()
    address = page.url
    second = open_page()
    second.login(address.removeprefix(dashboard.url))
    second.wait_for_chart()
    assert second.page.locator("#verdicts table").inner_text() == numbers
    assert second.page.get_by_label("Budget").input_value() == "20000"
    assert second.page.get_by_label("Interval").input_value() == "0.8"
    chosen = second.page.locator("#catalogue input:checked").evaluate_all(
        "all => all.map(i => i.value).sort()"
    )
    assert chosen == ["a", "b"]
    shapes = second.page.evaluate(
        "document.getElementById('chart').layout.shapes.map(s => [s.name, s.y0, s.x0])"
    )
    assert ["baseline", 0.62, 0] in shapes
    assert any(name == "budget" and x == 20_000 for name, _, x in shapes)


def test_a_bad_number_is_told_beside_its_field(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    visit.page.get_by_label("Budget").fill("lots")
    visit.page.get_by_text("'lots' is not a number").wait_for()
    assert visit.page.get_by_label("Budget").get_attribute("aria-invalid") == "true"
    assert measured(visit.page) == 14


def test_the_window_moves_by_keyboard_and_by_mouse(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    page = visit.page
    first, end = page.get_by_role("slider", name="Fit from"), page.get_by_role("slider", name="Fit to")
    first.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    visit.until("Number(new URLSearchParams(location.search).get('min')) > 6")
    visit.until("document.getElementById('chart').data.some(t => t.name === 'points outside the fit')")
    box = end.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 120, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    visit.until("Number(new URLSearchParams(location.search).get('max')) > 0")
    assert float(page.get_by_role("textbox", name="Fit to").input_value()) < 4 * 1.5**13


def test_news_do_not_move_an_end_that_the_reader_holds(dashboard: Any, open_page: Callable[..., Any]) -> None:
    points = curve(0.7)
    dashboard.add_run("a", points[:12])
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    page = visit.page
    page.wait_for_selector("#live[data-state=live]")
    end = page.get_by_role("slider", name="Fit to")
    before = float(end.get_attribute("aria-valuenow"))
    box = end.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 150, box["y"] + box["height"] / 2, steps=5)
    held = float(end.get_attribute("aria-valuenow"))
    assert held < before
    dashboard.add_points("a", points[12:], first_step=12)
    visit.until(f"{MEASURED} === {len(points)}")
    assert float(end.get_attribute("aria-valuenow")) == held
    page.mouse.up()
    visit.until("Number(new URLSearchParams(location.search).get('max')) > 0")


def test_too_few_points_are_shown_with_what_is_missing(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("young", curve(0.7)[:2])
    visit = open_page()
    visit.login("/?run=young")
    visit.wait_for_chart()
    assert measured(visit.page) == 2
    assert "no forecast yet" in visit.page.locator("#verdicts").inner_text()


def test_the_empty_page_teaches_and_notices_the_first_run(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.login("/")
    assert "evaluations" in visit.page.locator("#s-log").inner_text()
    assert dashboard.url in visit.page.locator("#s-log").inner_text()
    dashboard.add_run("first", curve(0.7))
    visit.page.wait_for_selector("#chart .main-svg", timeout=15_000)


def test_phone_width_needs_no_sideways_scrolling(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a-rather-long-run-name-of-a-recipe-with-many-ingredients-seed-1", curve(0.7))
    visit = open_page(viewport={"width": 375, "height": 800})
    visit.login("/?at=20000")
    visit.wait_for_chart()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 375


def test_dark_follows_the_system(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page(color_scheme="dark")
    visit.login("/")
    visit.wait_for_chart()
    ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", ground)) < 60
    paper = visit.page.evaluate("document.querySelector('#chart .main-svg').style.background")
    assert "20, 24, 29" in paper


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_an_image_carries_the_forecast_it_shows(
    dashboard: Any, open_page: Callable[..., Any], kind: str
) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page()
    visit.login("/?run=a&at=5000")
    visit.wait_for_chart()
    asked = {"runs": ["a"], "at": [5000]}
    (forecast,) = dashboard.api("POST", "/forecasts", json=asked)["forecasts"]
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=kind.upper()).click()
    short = forecast["inputs_sha256"][:12]
    assert download.value.suggested_filename == f"rlcast-{short}.{kind}"
    content = download.value.path().read_bytes()
    if kind == "svg":
        assert short in content.decode()
    else:
        assert content.startswith(b"\x89PNG")
        assert len(content) > 20_000


def test_the_page_reconnects_after_a_restart_of_the_service(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    points = curve(0.7)
    dashboard.add_run("a", points[:8])
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    visit.page.wait_for_selector("#live[data-state=live]")
    dashboard.server.stop()
    visit.page.wait_for_selector("#live[data-state=reconnecting]", timeout=10_000)
    assert "may be old" in visit.page.locator("#live").inner_text()
    dashboard.restart()
    visit.page.wait_for_selector("#live[data-state=live]", timeout=20_000)
    dashboard.add_points("a", points[8:9], first_step=8)
    visit.until("/9 points/.test(document.getElementById('catalogue').textContent)")
    visit.until(
        "document.getElementById('chart').data.some(t => t.name === 'used points' && t.x.length === 9)"
    )
    visit.problems.clear()  # refused connections, which Chromium logs


def test_the_law_can_be_seen_straightened(dashboard: Any, open_page: Callable[..., Any]) -> None:
    dashboard.add_run("a", curve(0.7))
    visit = open_page()
    visit.login("/?run=a")
    visit.wait_for_chart()
    visit.page.get_by_label("View").select_option("line")
    visit.until("new URLSearchParams(location.search).get('view') === 'line'")
    visit.until("document.getElementById('chart').layout.yaxis.type === 'log'")
    assert measured(visit.page) >= 12
    x, y = visit.page.evaluate("(t => [[...t.x], [...t.y]])(document.getElementById('chart').data[0])")
    assert math.log(y[1] / y[0]) / math.log(x[1] / x[0]) == pytest.approx(1.3, abs=0.1)
