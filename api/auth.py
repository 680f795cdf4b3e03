"""Bearer tokens: the one that the first start makes, kept in a file that only its owner can read."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.errors import Forbidden, Unauthorised

Scope = Literal["read", "ingest", "launch", "admin"]
ALL_SCOPES: tuple[Scope, ...] = ("read", "ingest", "launch", "admin")

_bearer = HTTPBearer(auto_error=False, description="`Authorization: Bearer rlc_…`")


@dataclass(frozen=True)
class Principal:
    """Who calls, and what they may do."""

    name: str
    scopes: frozenset[str]


def read_or_make_token(path: Path) -> str:
    """The token in `path`; made at the first start, readable by its owner only.

    The file appears complete or not at all: a second process that starts meanwhile reads the same token.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"rlc_{secrets.token_urlsafe(32)}\n")
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
    expected: str = request.app.state.token
    if hmac.compare_digest(credentials.credentials.encode(), expected.encode()):
        return Principal("owner", frozenset(ALL_SCOPES))
    raise Unauthorised("this token is not valid; the service's own one is in its data folder")


PrincipalDep = Annotated[Principal, Depends(authenticate)]


class Requires:
    """A dependency that lets only tokens with `scope` (or `admin`) pass."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, principal: PrincipalDep) -> Principal:
        if self.scope not in principal.scopes and "admin" not in principal.scopes:
            raise Forbidden(f"this token lacks the scope `{self.scope}`; use one that has it")
        return principal
