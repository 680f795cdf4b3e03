"""Types of request fields, shared by all resources: what they refuse would otherwise fail in the database."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

ComputeUnit = Literal["gpu_hours", "cpu_hours", "flops", "tokens", "samples", "steps", "usd"]

MAX_JSON_BYTES = 100_000


def storable(text: str) -> str:
    """Refuses what PostgreSQL cannot hold (NUL, lone surrogates) and other control characters."""
    if any((ord(c) < 32 and c not in "\n\t") or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise ValueError("control characters are not allowed")
    return text


def single_line(text: str) -> str:
    if "\n" in storable(text) or "\t" in text or text != text.strip():
        raise ValueError("must be one line without spaces at its ends")
    return text


def addressable(text: str) -> str:
    """A name stands in addresses (`/runs/{run}`), so it may not be a path."""
    if "/" in single_line(text) or text in (".", ".."):
        raise ValueError("must not contain '/' or be '.' or '..'; write '-' or '_' instead")
    return text


def _check_json(value: Any, depth: int = 0) -> None:
    if depth > 20:
        raise ValueError("nested more than 20 levels deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and Infinity are not allowed; leave the value out")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        raise ValueError("integers must fit into 64 bits")
    if isinstance(value, str):
        storable(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            storable(key)
            _check_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, depth + 1)


def storable_json(value: dict[str, Any]) -> dict[str, Any]:
    """An object of finite numbers and storable text, at most 100 kB."""
    _check_json(value)
    if len(json.dumps(value)) > MAX_JSON_BYTES:
        raise ValueError(f"larger than {MAX_JSON_BYTES // 1000} kB")
    return value


def _fraction(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"must be a fraction from 0 to 1, not {value:g}; divide percent by 100")
    return value


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(addressable)]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(single_line)]
Text = Annotated[str, Field(max_length=2000), AfterValidator(storable)]
JsonObject = Annotated[dict[str, Any], AfterValidator(storable_json)]
#: An integer that JavaScript and PostgreSQL's bigint hold exactly.
Count = Annotated[int, Field(ge=0, le=2**53 - 1, strict=True)]
PositiveCompute = Annotated[FiniteFloat, Field(gt=0)]
PassRate = Annotated[FiniteFloat, AfterValidator(_fraction)]


#: A resource in a path, by id or by name.
PathName = Annotated[str, Path(min_length=1, max_length=200), AfterValidator(single_line)]
Limit = Annotated[int, Query(ge=1, le=1000, description="Most items in the answer.")]
Cursor = Annotated[str | None, Query(max_length=300, description="`next_cursor` of the page before.")]


class In(BaseModel):
    """Base of request bodies: unknown fields are refused, so that a misspelt one is not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Out(BaseModel):
    """Base of answers; made from models by attribute."""

    model_config = ConfigDict(from_attributes=True)


Item = TypeVar("Item", bound=Out)


class Page(Out, Generic[Item]):
    """One page of a list; `next_cursor` is null on the last."""

    items: list[Item]
    next_cursor: str | None = None


def moment_in_range(value: datetime) -> datetime:
    if not 1970 <= value.year <= 9998:
        raise ValueError("the year must be from 1970 to 9998")
    if value.tzinfo is None:
        raise ValueError("needs a time zone, such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, AfterValidator(moment_in_range)]
