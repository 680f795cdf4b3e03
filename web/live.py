"""The page's stream of events: the API's own, opened by the cookie instead of the token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from web.gateway import API, forward
from web.session import sessions_of


class LiveEvents:
    """An ASGI endpoint, since a stream has to be passed on as it comes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        sessions = sessions_of(request)
        if not sessions.valid(request):
            await Response("Not logged in; open /login.", 401, media_type="text/plain")(scope, receive, send)
            return
        await forward(f"{API}/events", request.url.query, sessions.token, scope, receive, send)


route = Route("/live", LiveEvents(), methods=["GET"], include_in_schema=False)
