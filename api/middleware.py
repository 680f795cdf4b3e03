"""What every request passes through: an id, a line in the log, and a limit on its body."""

from __future__ import annotations

import re
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.context import request_id
from api.database import new_id
from api.errors import too_large, unexpected
from api.metrics.service import Metrics

log = structlog.stdlib.get_logger("api.access")

MAX_BODY_BYTES = 1_000_000
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OWN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Gives each request an id (or keeps the caller's `X-Request-ID`), answers with it and logs one line.

    The line has method, path, status and duration; never headers, query or body.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        current = given if _OWN_ID.fullmatch(given) else str(new_id())
        token = request_id.set(current)
        started_at = time.perf_counter()
        status: int | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = current
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception as error:
            if status is not None:  # too late for another answer: the connection breaks off
                raise
            await unexpected(error)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started_at
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"][:300],
                status=status,
                duration_ms=round(1000 * seconds, 1),
            )
            self._count(scope, status, seconds)
            request_id.reset(token)

    def _count(self, scope: Scope, status: int | None, seconds: float) -> None:
        """By the route's template: paths hold names, and there would be a metric for each."""
        context = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
        route = getattr(context, "path", None) or "none"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.metrics.requests.labels(method, route, status).inc()
        self.metrics.request_s.labels(method, route).observe(seconds)


class BodyLimit:
    """Refuses bodies above `MAX_BODY_BYTES`, announced or not.

    Starlette has such a middleware; it answers in plain text, and our errors are problem documents.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if int(Headers(scope=scope).get("content-length", "0")) > MAX_BODY_BYTES:
            await too_large()(scope, receive, send)
            return
        n_bytes = 0

        async def counted() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > MAX_BODY_BYTES:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)
