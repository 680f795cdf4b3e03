from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from api.fields import In, JsonObject, Name, Out, Text


class RecipeCreate(In):
    name: Name
    config: JsonObject | None = None
    description: Text | None = None


class RecipeRead(Out):
    id: UUID
    name: str
    version: int
    content_hash: str
    config: dict[str, Any] | None
    description: str | None
    created_at: datetime
