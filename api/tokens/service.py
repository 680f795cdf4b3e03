"""Makes, checks and revokes tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from api.audit import service as audit
from api.database import new_id
from api.errors import Conflict, NotFound
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.tokens.models import Token
from api.tokens.secrets import PREFIX, digest, make_token

_KEEP_USE = timedelta(minutes=1)


async def create(
    session: AsyncSession, key: bytes, name: str, scopes: Iterable[str], expires_at: datetime | None
) -> tuple[Token, str]:
    """Makes a token; returns it and its text, which is nowhere kept. Raises `Conflict` for a taken name."""
    text = make_token()
    values = {
        "id": new_id(),
        "name": name,
        "prefix": text[: len(PREFIX) + 4],
        "hmac": digest(text, key),
        "scopes": sorted(set(scopes)),
        "expires_at": expires_at,
    }
    statement = insert(Token).values(values).on_conflict_do_nothing(index_elements=["name"]).returning(Token)
    token = await session.scalar(statement)
    if token is None:
        raise Conflict(f"a token named {name!r} exists; choose another name", errors=[("name", "is taken")])
    audit.note(session, "token.made", name, token_id=str(token.id), scopes=token.scopes)
    return token, text


async def check(session: AsyncSession, key: bytes, text: str) -> Token | None:
    """The valid token with this text, or None. Notes its use."""
    now = func.clock_timestamp()
    valid = or_(Token.expires_at.is_(None), Token.expires_at > now)
    query = select(Token).where(Token.hmac == digest(text, key), Token.revoked_at.is_(None), valid)
    token = await session.scalar(query)
    if token is not None:
        unused = or_(Token.last_used_at.is_(None), Token.last_used_at < now - _KEEP_USE)
        await session.execute(update(Token).where(Token.id == token.id, unused).values(last_used_at=now))
    return token


async def get(session: AsyncSession, token: str) -> Token:
    """A token by id or name. Raises `NotFound`."""
    token_id = parse_id(token)
    query = select(Token).where((Token.name == token) | (Token.id == token_id if token_id else False))
    found = await session.scalar(query)
    if found is None:
        raise NotFound.named("token", token)
    return found


async def revoke(session: AsyncSession, name: str) -> Token:
    """Ends a token at once and for good."""
    token = await get(session, name)
    if token.revoked_at is None:
        token.revoked_at = func.clock_timestamp()
        audit.note(session, "token.revoked", token.name, token_id=str(token.id))
        await session.flush()
        await session.refresh(token)
    return token


async def page(
    session: AsyncSession, *, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[Token], str | None]:
    """Tokens, also those that are no longer valid, newest first."""
    return await fetch_page(session, select(Token), Sort(Token.created_at), Token.id, limit, cursor)
