"""The browser's session: a signed cookie that expires, made from the service's token but not it.

The signing key is derived from the token. So nothing has to be stored, sessions outlive a restart, and a
new token ends all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer

SESSION_S = 12 * 3600


class NotLoggedIn(Exception):
    """The request has no valid session; answered with the login page or 401."""


@dataclass(frozen=True)
class Sessions:
    """Makes, checks and ends sessions for one token."""

    token: str
    session_s: int = SESSION_S

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies ignore ports, so two stacks on one host need names of their own."""
        return f"rlcast_{self._derive('cookie name').hex()[:8]}"

    def _derive(self, purpose: str) -> bytes:
        return hmac.digest(self.token.encode(), f"rlcast web {purpose}".encode(), hashlib.sha256)

    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._derive("session"), salt="session")

    def token_matches(self, given: str) -> bool:
        return hmac.compare_digest(given.strip().encode(), self.token.encode())

    def start(self, request: Request, response: Response) -> None:
        response.set_cookie(
            self.cookie,
            self._serializer().dumps(secrets.token_urlsafe(12)),
            max_age=self.session_s,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def end(self, response: Response) -> None:
        response.delete_cookie(self.cookie, path="/", httponly=True, samesite="strict")

    def valid(self, request: Request) -> bool:
        value = request.cookies.get(self.cookie)
        if not value:
            return False
        try:
            self._serializer().loads(value, max_age=self.session_s)
        except BadSignature:  # also its subclass for an expired one
            return False
        return True


def sessions_of(request: Request) -> Sessions:
    """The sessions of the running service's token."""
    return Sessions(request.app.state.token)


def require_session(request: Request) -> None:
    """Dependency of every page and data route of the dashboard."""
    if not sessions_of(request).valid(request):
        raise NotLoggedIn


def safe_next(target: str | None) -> str:
    """A path on this server to go to after login; anything else becomes the start page."""
    if not target or not target.startswith("/") or target.startswith("//") or "\\" in target:
        return "/"
    if any(ord(c) < 32 for c in target):
        return "/"
    return target


async def answer_not_logged_in(request: Request, _: Exception) -> Response:
    """A page sends its reader to the login; a data route says 401, so that scripts do not read HTML."""
    if "text/html" not in request.headers.get("accept", ""):
        return Response("Not logged in; open /login.", 401, media_type="text/plain")
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if target == "/" else f"/login?next={quote(target, safe='')}", 303)
