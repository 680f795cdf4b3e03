"""Keyset pages: the cursor holds the sort key of the last row, so that a page costs the same anywhere."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from api.database import HasId
from api.errors import Invalid

Row = TypeVar("Row", bound=HasId)


@dataclass(frozen=True)
class Sort:
    """A column to sort by, and its direction; rows with equal values follow by id.

    The column may not be null.
    """

    column: InstrumentedAttribute[Any]
    descending: bool = True


async def fetch_page(
    session: AsyncSession,
    query: Select[Row],
    sort: Sort,
    id_column: InstrumentedAttribute[uuid.UUID],
    limit: int,
    cursor: str | None,
) -> tuple[Sequence[Row], str | None]:
    """At most `limit` rows after `cursor`, and the cursor of the next page or None."""
    key = tuple_(sort.column, id_column)
    if cursor is not None:
        after = tuple_(*_decode(cursor, sort))
        query = query.where(key < after if sort.descending else key > after)
    order = (sort.column.desc(), id_column.desc()) if sort.descending else (sort.column, id_column)
    rows = (await session.scalars(query.order_by(*order).limit(limit + 1))).all()
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], _encode(sort, getattr(last, sort.column.key), last.id)


def _encode(sort: Sort, value: Any, row_id: uuid.UUID) -> str:
    plain = value.isoformat() if isinstance(value, datetime) else value
    content = json.dumps([sort.column.key, sort.descending, plain, str(row_id)])
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _decode(cursor: str, sort: Sort) -> tuple[Any, uuid.UUID]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key, descending, value, row_id = json.loads(base64.urlsafe_b64decode(padded))
        if (key, descending) != (sort.column.key, sort.descending):
            raise ValueError
        if sort.column.type.python_type is datetime:
            value = datetime.fromisoformat(value)
        elif not isinstance(value, sort.column.type.python_type) or "\0" in str(value):
            raise ValueError
        return value, uuid.UUID(row_id)
    except (ValueError, TypeError, binascii.Error):
        raise Invalid.field("cursor", "not a cursor of this list; start again without one") from None
