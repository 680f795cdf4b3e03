from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, FiniteFloat

from api.fields import Name, Out, PassRate
from api.forecasts.schemas import Estimate, FitOptions


class GateRequest(FitOptions):
    """`candidate` is a run or a recipe; `baseline` too, or a pinned baseline, or a number."""

    candidate: Name
    baseline: PassRate | Name
    margin: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.02
    confidence: Annotated[FiniteFloat, Field(gt=0.5, lt=1)] = 0.95


class GateRead(Out):
    """A decision. `pass` and `fail` are only said when `confidence` is reached; else `inconclusive`."""

    model_config = ConfigDict(extra="allow")

    id: UUID
    verdict: Literal["pass", "fail", "inconclusive"]
    metric: str
    candidate: dict[str, Any]
    baseline: dict[str, Any]
    difference: Estimate
    margin: float
    confidence: float
    p_below: float | None
    reasons: list[str]
    candidate_name: str
    baseline_name: str
    candidate_forecast: dict[str, Any]
    baseline_forecast: dict[str, Any] | None
    created_at: datetime
