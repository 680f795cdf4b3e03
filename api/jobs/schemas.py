from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from api.fields import In, JsonObject, Label, Name, Out

MAX_LOG_CHARS = 20_000

JobState = Literal["queued", "starting", "running", "finished", "failed", "cancelled"]


def _tail(text: str) -> str:
    """The end of a log, without what a database cannot hold: trainers print anything."""
    return "".join(map(_plain, text[-MAX_LOG_CHARS:]))


def _plain(c: str) -> str:
    if c == "\r":
        return "\n"
    return c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF) else "\ufffd"


LogText = Annotated[str, Field(max_length=1_000_000), AfterValidator(_tail)]


class JobCreate(In):
    """`recipe` is a configuration, or the id or name of a stored recipe that has one.

    `overrides` changes single values by dotted path, such as `{"loss.cispo_cap": 4.0}`. `name` is the
    run's; by default `<recipe>-<n>`.
    """

    recipe: JsonObject | Name
    name: Name | None = None
    overrides: JsonObject = Field(default_factory=dict)


class JobRead(Out):
    id: UUID
    name: str
    run_id: UUID
    run_name: str
    recipe_id: UUID
    state: JobState
    attempt: int
    max_attempts: int
    runner: str | None
    progress: dict[str, Any] | None
    lease_expires_at: datetime | None
    exit_code: int | None
    error: str | None
    #: The end of the trainer's log; left out of lists.
    log_tail: str | None
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Claim(In):
    attempt: Annotated[int, Field(ge=1, lt=2**31)]
    runner: Label


class Claimed(Out):
    """What the winner of a claim gets. `lease_token` goes with all that it writes for this attempt."""

    job_id: UUID
    attempt: int
    lease_token: UUID
    lease_s: float
    run_id: UUID
    run_name: str
    recipe: dict[str, Any]


class Heartbeat(In):
    lease_token: UUID
    progress: JsonObject | None = None
    log_tail: LogText | None = None


class Beat(Out):
    """`cancel`: stop the trainer, then finish the job as cancelled."""

    cancel: bool
    lease_expires_at: datetime


class Finish(In):
    """`released` gives the job back, so that another runner goes on from its checkpoint."""

    lease_token: UUID
    state: Literal["finished", "failed", "cancelled", "released"]
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    error: Annotated[str, Field(max_length=100_000), AfterValidator(_tail)] | None = None
