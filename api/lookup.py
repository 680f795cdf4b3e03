"""Wherever a run or recipe is named, its id or its name is accepted."""

from __future__ import annotations

import uuid


def parse_id(text: str) -> uuid.UUID | None:
    """The id in `text`, or None when it is a name."""
    try:
        return uuid.UUID(text) if len(text) in (32, 36) else None
    except ValueError:
        return None
