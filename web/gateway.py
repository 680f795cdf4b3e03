"""The dashboard's way to the service: its public API, called in the same process.

So the dashboard can show and do only what any client can, by the same rules and from the same forecasts.
Calls go through the ASGI application directly, without a socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from web.remembered import Remembered
from web.session import sessions_of

API = "/api/v1"
#: Runs and jobs that one page lists at most; older ones are reached by search and by page.
MAX_LISTED = 500


class Problem(Exception):
    """The service refused: `detail` is one line for the reader, `fields` maps field to message."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(body.get("code") or "")
        self.detail = str(body.get("detail") or body.get("title") or f"the service answered {status}")
        errors = body.get("errors") or []
        self.fields = {str(e.get("field")): str(e.get("message")) for e in errors if isinstance(e, Mapping)}
        super().__init__(self.detail)

    @property
    def line(self) -> str:
        """What is wrong and what to do, in one line."""
        return "; ".join(self.fields.values()) or self.detail


class Gateway:
    """Calls the API as a client that holds the service's token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.remembered = Remembered()
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app, raise_app_exceptions=False),
            base_url="http://dashboard",
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        )

    async def get(self, path: str, **query: Any) -> Any:
        params = {key: value for key, value in query.items() if value is not None}
        return _body(await self._client.get(API + path, params=params))

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return _body(await self._client.post(API + path, json=body))

    async def items(
        self, path: str, at_most: int = MAX_LISTED, page_size: int = 500, **query: Any
    ) -> list[dict[str, Any]]:
        """The items of a paged list, in its order, up to `at_most`."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(items) < at_most:
            page = await self.get(path, **query, limit=min(page_size, at_most - len(items)), cursor=cursor)
            items += page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                break
        return items


def _body(answer: httpx2.Response) -> Any:
    if answer.is_success:
        return answer.json()
    try:
        body = answer.json()
    except ValueError:
        body = {}
    raise Problem(answer.status_code, body if isinstance(body, dict) else {})


def gateway_of(request: Request) -> Gateway:
    """Dependency: one gateway for the application, made at its first use."""
    state = request.app.state
    if not hasattr(state, "web_gateway"):
        state.web_gateway = Gateway(request.app, sessions_of(request).token)
    gateway: Gateway = state.web_gateway
    return gateway


async def forward(path: str, query: str, token: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request with another route of the same application, as a client with the token.

    For streams: what the route sends goes to the browser at once, and it sees when the browser leaves.
    """
    kept = [(k, v) for k, v in scope["headers"] if k not in (b"cookie", b"authorization")]
    inner = {
        **scope,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [*kept, (b"authorization", f"Bearer {token}".encode())],
        "state": dict(scope.get("state") or {}),
    }
    # What routing found for the outer route must not reach the inner one.
    for key in ("route", "endpoint", "path_params", "root_path", "app"):
        inner.pop(key, None)
    await scope["app"](inner, receive, send)
