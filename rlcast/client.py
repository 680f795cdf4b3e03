"""A client of the service's REST API (`/api/v1`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from rlcast.errors import InputError, ServiceError, ServiceUnreachable
from rlcast.stack.folder import DataFolder, default_folder

DEFAULT_URL = "http://127.0.0.1:8700"
#: States of a job that has ended.
ENDED = frozenset({"finished", "stopped", "failed", "cancelled"})
#: Most evaluations that the service takes in one request.
BATCH = 1000


def find_service(url: str | None = None, token: str | None = None) -> tuple[str, str | None]:
    """Address and token: arguments, then `RLCAST_URL` and `RLCAST_TOKEN` (or `RLCAST_TOKEN_FILE`),
    then what `rlcast up` wrote into the data folder (`RLCAST_HOME`, default `~/.rlcast`)."""
    folder = DataFolder(default_folder())
    state = folder.read_state() or {}
    url = url or os.environ.get("RLCAST_URL") or state.get("url") or DEFAULT_URL
    token = token or os.environ.get("RLCAST_TOKEN") or _token_from_file(folder)
    return url.rstrip("/"), token


def _token_from_file(folder: DataFolder) -> str | None:
    path = Path(os.environ.get("RLCAST_TOKEN_FILE") or folder.token_file)
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None
    except PermissionError:
        raise InputError(f"the token file {path} is not readable by you; set RLCAST_TOKEN") from None


class Client:
    """Calls the service. Every method raises `ServiceUnreachable` or `ServiceError`.

    Methods return the service's JSON as dictionaries; the OpenAPI document describes them.
    """

    def __init__(self, url: str | None = None, token: str | None = None, timeout_s: float = 30.0) -> None:
        self.url, found = find_service(url, token)
        headers = {"Authorization": f"Bearer {found}"} if found else {}
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout_s)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def request(self, method: str, path: str, **kwargs: Any) -> Any:
        """One call under `/api/v1`; the parsed JSON of a 2xx answer."""
        try:
            response = self._http.request(method, f"/api/v1{path}", **kwargs)
        except httpx2.TransportError as error:
            raise ServiceUnreachable(
                f"no service at {self.url} ({type(error).__name__}); start one with `rlcast up`, "
                "or set RLCAST_URL and RLCAST_TOKEN"
            ) from None
        if response.is_success:
            return response.json() if response.content else None
        raise ServiceError(response.status_code, _problem(response))

    def _items(self, path: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params={**params, **({"cursor": cursor} if cursor else {})})
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    # -- runs and evaluations ------------------------------------------------------------------

    def create_run(self, **fields: Any) -> dict[str, Any]:
        """Makes a run, or returns the one with the same name and fields."""
        return _dict(self.request("POST", "/runs", json=fields))

    def run(self, name: str) -> dict[str, Any]:
        return _dict(self.request("GET", f"/runs/{_quoted(name)}"))

    def runs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        return self._items("/runs", {k: v for k, v in filters.items() if v is not None})

    def recipes(self) -> Iterator[dict[str, Any]]:
        return self._items("/recipes", {})

    def post_evaluations(
        self, run: str, evaluations: Sequence[dict[str, Any]], **attempt: Any
    ) -> dict[str, int]:
        """Sends evaluations in batches; the sums of `created`, `duplicates` and `superseded`."""
        total = {"created": 0, "duplicates": 0, "superseded": 0}
        for start in range(0, len(evaluations), BATCH):
            body = {"evaluations": list(evaluations[start : start + BATCH]), **attempt}
            answer = self.request("POST", f"/runs/{_quoted(run)}/evaluations", json=body)
            for key in total:
                total[key] += int(answer[key])
        return total

    def evaluations(self, run: str, **filters: Any) -> Iterator[dict[str, Any]]:
        return self._items(f"/runs/{_quoted(run)}/evaluations", filters)

    # -- forecasts and gates -------------------------------------------------------------------

    def forecasts(self, **body: Any) -> list[dict[str, Any]]:
        answer = self.request("POST", "/forecasts", json=_given(body), timeout=120.0)
        return list(answer["forecasts"])

    def compare(self, **body: Any) -> dict[str, Any]:
        return _dict(self.request("POST", "/comparisons", json=_given(body), timeout=120.0))

    def gate(self, **body: Any) -> dict[str, Any]:
        return _dict(self.request("POST", "/gates", json=_given(body), timeout=120.0))

    def pin_baseline(self, **body: Any) -> dict[str, Any]:
        """Pins a number (`pass_rate`) or a stored forecast (`forecast`, its id) under `name`."""
        return _dict(self.request("POST", "/baselines", json=_given(body)))

    def baselines(self) -> Iterator[dict[str, Any]]:
        return self._items("/baselines", {})

    # -- jobs ----------------------------------------------------------------------------------

    def submit(
        self, recipe: dict[str, Any] | None = None, name: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Queues a recipe, or with `command=` a command; `more` as in the API, such as `resources`."""
        return _dict(self.request("POST", "/jobs", json=_given({"recipe": recipe, "name": name, **more})))

    def job(self, job: str) -> dict[str, Any]:
        return _dict(self.request("GET", f"/jobs/{_quoted(job)}"))

    def jobs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        return self._items("/jobs", {k: v for k, v in filters.items() if v is not None})

    def cancel(self, job: str) -> dict[str, Any]:
        return _dict(self.request("POST", f"/jobs/{_quoted(job)}/cancel"))

    # -- a runner's side of a job ---------------------------------------------------------------

    def claim(self, job: str, attempt: int, runner: str, worker_id: str | None = None) -> dict[str, Any]:
        body = _given({"attempt": attempt, "runner": runner, "worker_id": worker_id})
        return _dict(self.request("POST", f"/jobs/{_quoted(job)}/claim", json=body))

    def heartbeat(self, job: str, lease_token: str, **report: Any) -> dict[str, Any]:
        body = {"lease_token": lease_token, **_given(report)}
        return _dict(self.request("POST", f"/jobs/{_quoted(job)}/heartbeat", json=body, timeout=10.0))

    def finish(self, job: str, lease_token: str, state: str, **report: Any) -> dict[str, Any]:
        body = {"lease_token": lease_token, "state": state, **_given(report)}
        return _dict(self.request("POST", f"/jobs/{_quoted(job)}/finish", json=body))

    # -- workers -------------------------------------------------------------------------------

    def register_worker(self, **about: Any) -> dict[str, Any]:
        return _dict(self.request("POST", "/workers", json=about))

    def beat_worker(self, worker: str, **report: Any) -> dict[str, Any]:
        return _dict(self.request("POST", f"/workers/{_quoted(worker)}/heartbeat", json=report))

    def workers(self, **filters: Any) -> Iterator[dict[str, Any]]:
        return self._items("/workers", _given(filters))

    def drain_worker(self, worker: str) -> dict[str, Any]:
        return _dict(self.request("POST", f"/workers/{_quoted(worker)}/drain"))


def evaluation_items(
    steps: Iterable[int],
    compute: Iterable[float],
    pass_rate: Iterable[float],
    unit: str,
    n_prompts: Iterable[int | None],
    n_samples: Iterable[int | None],
) -> list[dict[str, Any]]:
    """Rows of a table as the service takes them."""
    items = []
    for step, c, rate, prompts, samples in zip(steps, compute, pass_rate, n_prompts, n_samples, strict=True):
        item: dict[str, Any] = {"step": step, "compute": {unit: c}, "pass_rate": rate}
        item |= _given({"n_prompts": prompts, "n_samples": samples})
        items.append(item)
    return items


def _given(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value is not None}


def _dict(answer: Any) -> dict[str, Any]:
    return dict(answer)


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _problem(response: httpx2.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        problem = None
    if not isinstance(problem, dict):
        problem = {"title": f"HTTP {response.status_code}", "detail": response.text[:200]}
    if response.status_code == 401:
        problem["detail"] = (
            f"{problem.get('detail') or 'not signed in'}; set RLCAST_TOKEN, or RLCAST_HOME to the data folder"
        )
    return problem
