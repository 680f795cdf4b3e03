from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.fields import ComputeUnit, In, JsonObject, Label, Name, Out


class RunCreate(In):
    """`recipe` is an id or a name; a name that does not exist yet is made without a configuration.

    `tags` are free labels, such as `{"team": "reasoning"}`.
    """

    name: Name
    recipe: Name
    benchmark: Label
    compute_unit: ComputeUnit
    model: Label | None = None
    task: Label | None = None
    seed: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    source: Label | None = None
    tags: JsonObject = Field(default_factory=dict)


class RecipeRef(Out):
    id: UUID
    name: str
    version: int


class RunRead(Out):
    id: UUID
    name: str
    recipe: RecipeRef
    benchmark: str
    compute_unit: str
    model: str | None
    task: str | None
    seed: int | None
    source: str | None
    tags: dict[str, Any]
    n_evaluations: int
    last_evaluation_at: datetime | None
    created_at: datetime
    job_id: UUID | None
