"""`Idempotency-Key` on POSTs: a request that is sent again gets the first answer and does nothing more.

The key's row is written in the transaction that does the work, so there is never the one without the other.
See the IETF draft "The Idempotency-Key HTTP Header Field". Evaluations need no key: they have their own
identity.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.auth import PrincipalDep
from api.database import Base, CreatedAt, SessionDep, SessionFactory
from api.errors import Conflict, Invalid
from api.fields import single_line

KEPT = timedelta(hours=24)


class IdempotencyKey(Base):
    """The answer to a request, kept for 24 hours."""

    __tablename__ = "idempotency_keys"

    actor: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[CreatedAt] = mapped_column(index=True)
    #: SHA-256 of method, path and body.
    request_sha256: Mapped[bytes]
    status: Mapped[int]
    answer: Mapped[dict[str, Any]] = mapped_column(JSONB)


class Replay(Exception):
    """The request was answered before; `status` and `answer` are what it got."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        self.status = status
        self.answer = answer


class Once:
    """One request's key, or none. The route hands its answer to `keep` before it returns it."""

    def __init__(self, session: SessionDep, response: Response, row: IdempotencyKey | None) -> None:
        self._session = session
        self._response = response
        self._row = row

    async def keep(self, answer: BaseModel, default_status: int = 201) -> None:
        """Stores the answer together with what the request did."""
        if self._row is not None:
            self._row.status = self._response.status_code or default_status
            self._row.answer = answer.model_dump(mode="json")
            self._session.add(self._row)
            await self._session.flush()


async def _once(
    request: Request,
    response: Response,
    session: SessionDep,
    principal: PrincipalDep,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=255, description="Makes it safe to send the request again."),
        AfterValidator(lambda key: key if key is None else single_line(key)),
    ] = None,
) -> Once:
    """Raises `Replay` for a key that was used, `Conflict` while its first request is being answered."""
    if idempotency_key is None:
        return Once(session, response, None)
    content = f"{request.method} {request.url.path}\n".encode() + await request.body()
    digest = hashlib.sha256(content).digest()
    lock = func.hashtextextended(f"idempotency:{principal.name}:{idempotency_key}", 0)
    if not await session.scalar(select(func.pg_try_advisory_xact_lock(lock))):
        raise Conflict("a request with this Idempotency-Key is being answered", code="in_progress")
    found = await session.get(IdempotencyKey, (principal.name, idempotency_key))
    if found is None:
        row = IdempotencyKey(actor=principal.name, key=idempotency_key, request_sha256=digest)
        return Once(session, response, row)
    if found.request_sha256 != digest:
        raise Invalid.field("Idempotency-Key", "was used for another request; choose a new one")
    raise Replay(found.status, found.answer)


async def answer_replay(request: Request, replay: Exception) -> Response:
    """The first answer again, marked as such."""
    assert isinstance(replay, Replay)
    return JSONResponse(replay.answer, replay.status, headers={"Idempotency-Replayed": "true"})


OnceDep = Annotated[Once, Depends(_once, scope="function")]


async def purge(sessions: SessionFactory) -> None:
    """Forgets keys after 24 hours."""
    async with sessions() as session, session.begin():
        old = IdempotencyKey.created_at < func.now() - KEPT
        await session.execute(delete(IdempotencyKey).where(old))
