from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, FiniteFloat, model_validator

from api.fields import ComputeUnit, In, Label, Name, Out, PassRate, PositiveCompute


class FitOptions(In):
    """What a fit is asked for. `min_compute` and `max_compute` bound the window of points."""

    benchmark: Label | None = None
    unit: ComputeUnit | None = None
    law: Annotated[
        str,
        Field(max_length=50, description="auto, scalerl-paper, or a law's name; an unknown one lists them."),
    ] = "auto"
    min_compute: Annotated[
        PositiveCompute | Literal["auto"] | None, Field(description="auto: chosen by the fit's stability.")
    ] = None
    max_compute: PositiveCompute | None = None
    level: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 0.9
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    loss: Annotated[str, Field(max_length=20, description="linear, soft_l1, huber or cauchy.")] = "linear"
    seed_sd: Annotated[
        FiniteFloat, Field(ge=0, lt=0.5, description="Assumed spread of A between repeats of a recipe.")
    ] = 0.0075

    @model_validator(mode="after")
    def _window_is_not_empty(self) -> FitOptions:
        low, high = self.min_compute, self.max_compute
        if low and high and not isinstance(low, str) and low >= high:
            raise ValueError("min_compute must be below max_compute")
        return self


class ForecastRequest(FitOptions):
    """Runs are forecast one by one, a recipe from all its runs together.

    `at` asks for the score at a compute, `reach` for the compute to reach a score.
    """

    runs: Annotated[list[Name], Field(max_length=50)] = Field(default_factory=list)
    recipes: Annotated[list[Name], Field(max_length=50)] = Field(default_factory=list)
    at: Annotated[list[PositiveCompute], Field(max_length=20)] = Field(default_factory=list)
    reach: Annotated[list[PassRate], Field(max_length=20)] = Field(default_factory=list)
    replicates: Annotated[int, Field(ge=100, le=5000)] = 1000
    bands: Annotated[str, Field(max_length=20, description="posterior, or bootstrap (of one law).")] = (
        "posterior"
    )
    price: Annotated[PositiveCompute | None, Field(description="Of one unit of compute.")] = None
    worth: Annotated[
        PositiveCompute | None, Field(description="Of 0.01 of pass rate, in the currency of price.")
    ] = None
    details: Annotated[bool, Field(description="Also lmfit's correlations and profile intervals.")] = False
    save: Annotated[bool, Field(description="Keep it, and score it when the run gets there.")] = False

    @model_validator(mode="after")
    def _names_something(self) -> ForecastRequest:
        if not self.runs and not self.recipes:
            raise ValueError("name at least one run or recipe")
        return self


class Estimate(Out):
    """A number with its interval; null where there is no finite one."""

    model_config = ConfigDict(extra="allow")

    value: float | None
    low: float | None
    high: float | None


class Verdict(Out):
    model_config = ConfigDict(extra="allow")

    state: str
    reasons: list[str]
    remedy: str | None = None


class ForecastRead(Out):
    """A forecast: parameters, asked values, the band on a grid, and how far it can be trusted."""

    model_config = ConfigDict(extra="allow")

    id: UUID | None = Field(description="Id of the stored forecast; null without `save`.")
    run: str
    run_id: UUID | None = Field(description="Null for a forecast from all runs of a recipe.")
    recipe_id: UUID | None
    law: str
    laws: list[dict[str, Any]] = Field(description="The laws with their weights.")
    unit: str
    n_points: int
    window: dict[str, Any]
    sensitivity: list[dict[str, Any]] = Field(description="The sigmoid's fit as the window's start moves.")
    parameters: dict[str, Estimate]
    at: list[dict[str, Any]]
    reach: list[dict[str, Any]]
    verdict: Verdict
    headroom: Estimate | None
    value: dict[str, Any] = Field(description="What more compute gains, and from where it no longer pays.")
    noise: dict[str, Any]
    uncertainty: list[str] = Field(description="Which parts of the uncertainty are in the intervals.")
    fit: dict[str, Any] | None = Field(description="lmfit's account, with `details`.")
    notes: list[str]
    level: float
    seed: int
    replicates: int
    grid: dict[str, Any]
    points: dict[str, Any]
    inputs_sha256: str


class ForecastList(Out):
    forecasts: list[ForecastRead]
