from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, FiniteFloat, model_validator

from api.fields import Name, Out, PassRate
from api.forecasts.schemas import FitOptions


class ComparisonRequest(FitOptions):
    """`candidate` and `baseline` are runs or recipes."""

    candidate: Name
    baseline: Name
    margin: Annotated[
        FiniteFloat, Field(ge=0, lt=1, description="Differences of A below this do not count.")
    ] = 0.02
    reach: Annotated[PassRate | None, Field(description="Compare the compute to reach this pass rate.")] = (
        None
    )
    same_prompts: Annotated[bool, Field(description="Both were scored on the same prompts.")] = True

    @model_validator(mode="after")
    def _two_sides(self) -> ComparisonRequest:
        if self.candidate == self.baseline:
            raise ValueError("candidate and baseline are the same; name two")
        return self


class Label(Out):
    """What the change does; `name` is null while the points do not decide."""

    name: str | None
    evidence: list[str]


class ComparisonRead(Out):
    """See `fitting.compare`: each part with its interval at `level` and its probability."""

    candidate: dict[str, Any]
    baseline: dict[str, Any]
    unit: str
    margin: float
    level: float
    same_prompts: bool
    label: Label
    difference: dict[str, Any] | None = Field(description="Of A; null of laws without an asymptote.")
    efficiency: dict[str, Any] | None = Field(description="B at a common A, where the ceilings agree.")
    reach: dict[str, Any]
    crossing: dict[str, Any] | None
    winners: list[dict[str, Any]]
