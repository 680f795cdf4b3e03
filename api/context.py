"""What belongs to the request that is being answered."""

from __future__ import annotations

from contextvars import ContextVar

#: Id of the current request, in every problem document and log line.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
#: Name of the token that the current request came with.
actor: ContextVar[str] = ContextVar("actor", default="service")
