"""Login by token, logout. The token travels in the body of a POST only, never in an address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from web.pages import page
from web.security import require_same_origin
from web.session import safe_next, sessions_of

router = APIRouter(include_in_schema=False)


@router.get("/login")
def show(request: Request, next: str = "/") -> Response:
    return page(request, "login.html", next=safe_next(next), error=None)


@router.post("/login", dependencies=[Depends(require_same_origin)])
def login(
    request: Request,
    token: Annotated[str, Form(max_length=512)] = "",
    next: Annotated[str, Form(max_length=4096)] = "/",
) -> Response:
    sessions = sessions_of(request)
    if not sessions.token_matches(token):
        error = "This is not the service's token. `rlcast up` prints it, and keeps it in its data folder."
        return page(request, "login.html", 403, next=safe_next(next), error=error)
    response = RedirectResponse(safe_next(next), 303)
    sessions.start(request, response)
    return response


@router.post("/logout", dependencies=[Depends(require_same_origin)])
def logout(request: Request) -> Response:
    response = RedirectResponse("/login", 303)
    sessions_of(request).end(response)
    return response


@router.get("/session")
def session(request: Request) -> dict[str, bool]:
    """Whether the browser is logged in. A link from another site arrives without the cookie
    (SameSite=Strict), so the login page asks here, from our own site, before it asks for a token."""
    return {"logged_in": sessions_of(request).valid(request)}
