"""A dashboard on a real database, and a real Chromium that records what its pages do wrong."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Error as PlaywrightError
from pydantic import SecretStr

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name but the loopback's resolves: a page that needs the network fails here.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@dataclass
class Dashboard:
    """A running service with the dashboard: `api` sends authorised requests to `/api/v1`."""

    url: str
    token: str
    settings: Any
    server: Any

    def restart(self) -> None:
        """Stops the service and starts it again at the same address."""
        from web.app import create_app

        self.server.stop()
        self.server = Server(create_app(self.settings), self.server.port)

    def api(self, method: str, path: str, **kwargs: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx2.request(
            method, f"{self.url}/api/v1{path}", headers=headers, timeout=60, trust_env=False, **kwargs
        )
        assert answer.status_code < 300, answer.text
        return answer.json()

    def add_run(self, name: str, points: list[tuple[float, float]], **fields: Any) -> str:
        """A run with one evaluation a point; returns its id. The step is the point's number."""
        body = {"recipe": "recipe-a", "benchmark": "held-out", "compute_unit": "gpu_hours", **fields}
        run = self.api("POST", "/runs", json={"name": name, **body})
        self.add_points(name, points, unit=body["compute_unit"])
        return str(run["id"])

    def add_points(
        self, run: str, points: list[tuple[float, float]], first_step: int = 0, unit: str = "gpu_hours"
    ) -> None:
        evaluations = [
            {"step": first_step + i, "compute": {unit: compute}, "pass_rate": rate}
            for i, (compute, rate) in enumerate(points)
        ]
        if evaluations:
            self.api("POST", f"/runs/{run}/evaluations", json={"evaluations": evaluations})


class Server:
    """uvicorn in a thread, on a free port or on a given one."""

    def __init__(self, app: Any, port: int = 0) -> None:
        import uvicorn

        config = uvicorn.Config(app, port=port, log_level="warning", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        deadline = time.monotonic() + 30
        while not self.server.started:
            assert self.thread.is_alive(), "the dashboard ended at its start"
            assert time.monotonic() < deadline, "the dashboard did not start in 30 s"
            time.sleep(0.01)
        self.port: int = self.server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(15)
        assert not self.thread.is_alive(), "the dashboard did not stop in 15 s"


@pytest.fixture
def dashboard(database_url: str, tmp_path: Path) -> Iterator[Dashboard]:
    """The service with its dashboard on a fresh database; without a broker jobs wait in their outbox."""
    from api.settings import Settings
    from web.app import create_app

    settings = Settings(
        database_url=SecretStr(database_url), broker_url=SecretStr("redis://127.0.0.1:1/0"), data_dir=tmp_path
    )
    server = Server(create_app(settings))
    dashboard = Dashboard(
        f"http://127.0.0.1:{server.port}", (tmp_path / "token").read_text().strip(), settings, server
    )
    yield dashboard
    dashboard.server.stop()


def chromium_path() -> str | None:
    named = os.environ.get("RLCAST_CHROMIUM")
    return (
        named or shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    )


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium: install it (apt-get install chromium) or set RLCAST_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A browser's window and what happened in it."""

    page: Any
    dashboard: Dashboard
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def login(self, path: str = "/") -> None:
        """Logs in as the link of `rlcast up` does, then opens `path` and waits for its forecasts."""
        self.page.goto(f"{self.dashboard.url}/login#token={self.dashboard.token}")
        self.until("location.pathname === '/'")
        if path != "/":
            self.page.goto(self.dashboard.url + path)

    def until(self, condition: str, timeout_s: float = 20) -> None:
        """Waits for a JavaScript condition. Playwright's own wait evaluates it under the page's policy."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                if self.page.evaluate(condition):
                    return
            except PlaywrightError:  # the page was just left for another one
                pass
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {condition}"
            self.page.wait_for_timeout(50)

    def wait_for_chart(self) -> None:
        self.page.wait_for_selector("#chart .main-svg", timeout=20_000)
        self.page.wait_for_selector("#verdicts[aria-busy=false]", timeout=20_000)

    def outside_requests(self) -> list[str]:
        return [url for url in self.requests if urlsplit(url).hostname not in (None, "127.0.0.1")]


@pytest.fixture
def open_page(chromium: Any, dashboard: Dashboard) -> Iterator[Callable[..., Visit]]:
    """Opens a window; at the end no page may have logged an error or broken the content policy."""
    contexts: list[Any] = []
    visits: list[Visit] = []

    def open_window(**options: Any) -> Visit:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        # Reported through the console, which also shows what happens before the page's own scripts.
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => "
            "console.error('CSP', e.violatedDirective, e.blockedURI, e.sample));"
            "globalThis.pwned = () => { globalThis.wasPwned = true; };"
        )
        visit = Visit(context.new_page(), dashboard)
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.on(
            "console",
            lambda message: visit.problems.append(message.text) if message.type == "error" else None,
        )
        visit.page.on("pageerror", lambda error: visit.problems.append(str(error)))
        visits.append(visit)
        return visit

    yield open_window
    for context in contexts:
        context.close()
    for visit in visits:
        assert visit.problems == []
        assert visit.outside_requests() == []
