"""What every request passes through: an id, a line in the log, and a limit on its body."""

from __future__ import annotations

import re
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.context import request_id
from api.database import new_id

log = structlog.stdlib.get_logger("api.access")

MAX_BODY_BYTES = 1_000_000
_OWN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Gives each request an id (or keeps the caller's `X-Request-ID`), answers with it and logs one line.

    The line has method, path, status and duration; never headers, query or body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        current = given if _OWN_ID.fullmatch(given) else str(new_id())
        token = request_id.set(current)
        started = time.perf_counter()
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = current
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"][:300],
                status=status,
                duration_ms=round(1000 * (time.perf_counter() - started), 1),
            )
            request_id.reset(token)
