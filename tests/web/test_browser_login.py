"""Logging in, as a person with a browser does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_login_link_never_sends_the_token_in_an_address(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.page.goto(f"{dashboard.url}/login#token={dashboard.token}")
    visit.until("location.pathname === '/'")
    assert visit.page.get_by_role("link", name="Compare").is_visible()
    assert len(visit.requests) > 3
    assert all(dashboard.token not in url for url in visit.requests)
    assert dashboard.token not in visit.page.url
    visit.page.go_back()
    assert dashboard.token not in visit.page.url


def test_the_cookie_is_not_the_token_and_scripts_cannot_read_it(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.login()
    (cookie,) = visit.page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["expires"] > 0
    assert dashboard.token not in cookie["value"]
    assert visit.page.evaluate("document.cookie") == ""


def test_login_by_form_returns_to_the_page_that_was_asked_for(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.page.goto(f"{dashboard.url}/jobs")
    assert "/login?next=" in visit.page.url
    visit.page.get_by_label("Access token").fill(dashboard.token)
    visit.page.get_by_role("button", name="Log in").click()
    visit.page.wait_for_url(f"{dashboard.url}/jobs")


def test_a_wrong_token_is_told_and_logging_out_ends_the_session(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.page.goto(f"{dashboard.url}/login")
    visit.page.get_by_label("Access token").fill("rlc_wrong")
    visit.page.get_by_role("button", name="Log in").click()
    assert "not the service's token" in visit.page.get_by_role("alert").inner_text()
    visit.problems.clear()  # Chromium logs the 403
    visit.login()
    visit.page.get_by_role("button", name="Log out").click()
    visit.page.wait_for_url(f"{dashboard.url}/login")
    visit.page.goto(dashboard.url)
    assert "/login" in visit.page.url


def test_a_link_from_another_site_needs_no_second_login(
    dashboard: Any, open_page: Callable[..., Any]
) -> None:
    visit = open_page()
    visit.login()
    # The other site's page is answered here; SameSite=Strict holds the cookie back on its link.
    visit.page.route(
        "http://elsewhere.test/", lambda route: route.fulfill(body=link, content_type="text/html")
    )
    link = f'<a href="{dashboard.url}/jobs">jobs</a>'
    visit.page.goto("http://elsewhere.test/")
    visit.page.get_by_role("link").click()
    visit.page.wait_for_url(f"{dashboard.url}/jobs")
    visit.requests[:] = [url for url in visit.requests if "elsewhere.test" not in url]
