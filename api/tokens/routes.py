from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, Field

from api.auth import Requires, Scope
from api.database import SessionDep
from api.fields import Cursor, In, Limit, Moment, Name, Out, Page, PathName
from api.tokens import service
from api.tokens.secrets import key_of

router = APIRouter(prefix="/tokens", tags=["tokens"], dependencies=[Depends(Requires("admin"))])


def _in_future(value: datetime) -> datetime:
    if value <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return value


class TokenCreate(In):
    """`read` sees everything, `ingest` adds runs and points and works on jobs, `launch` submits and gates."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    expires_at: Annotated[Moment, AfterValidator(_in_future)] | None = None


class TokenRead(Out):
    id: UUID
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class TokenMade(TokenRead):
    token: str = Field(description="The token itself. It is shown this once and not stored.")


@router.post("", status_code=201)
async def create_token(body: TokenCreate, session: SessionDep, request: Request) -> TokenMade:
    """Makes a token and shows it once."""
    key = key_of(request.app.state.token)
    token, text = await service.create(session, key, body.name, body.scopes, body.expires_at)
    return TokenMade(**TokenRead.model_validate(token).model_dump(), token=text)


@router.get("")
async def list_tokens(session: SessionDep, limit: Limit = 100, cursor: Cursor = None) -> Page[TokenRead]:
    """Tokens without their text, newest first."""
    tokens, next_cursor = await service.page(session, limit=limit, cursor=cursor)
    return Page(items=[TokenRead.model_validate(token) for token in tokens], next_cursor=next_cursor)


@router.delete("/{token}")
async def revoke_token(token: PathName, session: SessionDep) -> TokenRead:
    """Ends a token at once. Doing it again is harmless."""
    return TokenRead.model_validate(await service.revoke(session, token))
