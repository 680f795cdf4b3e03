"""Who may call: the owner, whose token the first start makes, and tokens that the owner gives out."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.context import actor
from api.errors import Forbidden, Unauthorised
from api.tokens import service as tokens
from api.tokens.secrets import is_well_formed, key_of, make_token

Scope = Literal["read", "ingest", "launch", "admin"]
ALL_SCOPES: tuple[Scope, ...] = ("read", "ingest", "launch", "admin")

_bearer = HTTPBearer(auto_error=False, description="`Authorization: Bearer rlc_…`")


@dataclass(frozen=True)
class Principal:
    """Who calls, and what they may do."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """`admin` includes all others."""
        return scope in self.scopes or "admin" in self.scopes


def read_or_make_token(path: Path) -> str:
    """The token in `path`; made at the first start, readable by its owner only.

    The file appears complete or not at all: a second process that starts meanwhile reads the same token.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(make_token() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # unlike a rename, fails when another process was first
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    token = path.read_text().strip()
    if len(token) < 20:
        raise RuntimeError(f"{path} holds no token; remove the file and start again")
    return token


async def authenticate(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    if credentials is None:
        raise Unauthorised("no token; send `Authorization: Bearer <token>`")
    principal = await _principal(request.app, credentials.credentials)
    if principal is None:
        raise Unauthorised("this token is not valid: wrong, expired or revoked")
    actor.set(principal.name)
    return principal


async def _principal(app: FastAPI, given: str) -> Principal | None:
    owner: str = app.state.token
    if hmac.compare_digest(given.encode(), owner.encode()):
        return Principal("owner", frozenset(ALL_SCOPES))
    if not is_well_formed(given):
        return None  # no question to the database for what cannot be a token
    # A session of its own, given back at once: a stream would hold the request's for hours.
    async with app.state.sessions() as session, session.begin():
        token = await tokens.check(session, key_of(owner), given)
        return Principal(f"token:{token.name}", frozenset(token.scopes)) if token else None


PrincipalDep = Annotated[Principal, Depends(authenticate)]


class Requires:
    """A dependency that lets only tokens with `scope` (or `admin`) pass."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, principal: PrincipalDep) -> Principal:
        if not principal.may(self.scope):
            raise Forbidden(f"this token lacks the scope `{self.scope}`; use one that has it")
        return principal
