from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, FiniteFloat, field_validator, model_validator

from api.fields import In, JsonObject, Label, Name, Out, single_line, storable
from api.workers.schemas import Gib, Labels, QueueName

MAX_LOG_CHARS = 20_000

JobState = Literal["queued", "starting", "running", "finished", "stopped", "failed", "cancelled"]
#: A rule of the job's own that stopped it.
StopReason = Literal["max_hours", "max_gpu_hours"]


def _tail(text: str) -> str:
    """The end of a log, without what a database cannot hold: trainers print anything."""
    return "".join(map(_plain, text[-MAX_LOG_CHARS:]))


def _plain(c: str) -> str:
    if c == "\r":
        return "\n"
    return c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF) else "\ufffd"


LogText = Annotated[str, Field(max_length=1_000_000), AfterValidator(_tail)]


class Resources(In):
    """What a job asks of a worker. `gpu_memory_gib` is of each GPU, `memory_gib` of the host.

    A worker must have each of `labels` with the same value.
    """

    gpus: Annotated[int, Field(ge=0, le=1024)] = 0
    gpu_memory_gib: Gib | None = None
    cpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    memory_gib: Gib | None = None
    labels: Labels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _memory_of_some_gpu(self) -> Resources:
        if self.gpu_memory_gib and not self.gpus:
            raise ValueError("gpu_memory_gib needs gpus; say how many")
        return self


Hours = Annotated[FiniteFloat, Field(gt=0, le=1e6)]


FileName = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
FileText = Annotated[str, Field(max_length=200_000), AfterValidator(storable)]
Argument = Annotated[str, Field(max_length=10_000), AfterValidator(storable)]


def _inside(path: str) -> str:
    """A path that cannot leave the folder that it is relative to."""
    parts = single_line(path).split("/")
    if not all(parts) or any(part in (".", "..") for part in parts) or "\\" in path:
        raise ValueError("must be a path inside the job's folder, such as results.jsonl")
    return path


class Command(In):
    """A training command of any kind: an argument list that is started as it stands, never by a shell.

    It runs in an empty folder of its own that holds `files`, and reports evaluations as lines of JSON with
    `step` and `pass_rate` (and `gpu_hours`, `n_prompts`, `n_samples`, `benchmark` where it knows them), on
    its standard output or in `results_file` in that folder. Whoever may read jobs sees the command: it must
    hold no secret.
    """

    argv: Annotated[list[Argument], Field(min_length=1, max_length=500)]
    files: Annotated[dict[FileName, FileText], Field(max_length=20)] = Field(default_factory=dict)
    results_file: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_inside)] | None = None
    recipe: Name | None = Field(None, description="What the run counts as; default: the program's name.")
    benchmark: Label = "heldout"
    compute_unit: Literal["gpu_hours", "cpu_hours"] | None = None
    model: Label | None = None
    task: Label | None = None
    seed: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None

    @field_validator("argv")
    @classmethod
    def _names_a_program(cls, argv: list[str]) -> list[str]:
        if not argv[0].strip():
            raise ValueError("the first argument must be a program")
        return argv


class JobCreate(In):
    """A job is a `recipe` for our trainer or a `command`.

    `recipe` is a configuration, or the id or name of a stored recipe that has one.

    `overrides` changes single values by dotted path, such as `{"loss.cispo_cap": 4.0}`. `name` is the
    run's; by default `<recipe>-<n>`. Without `resources` the recipe's devices are asked for, and without
    `queue` the job waits for any worker with (`gpu`) or without (`cpu`) GPUs. Once all attempts together
    have been held for `max_hours`, or for `max_gpu_hours` times the GPUs, the job is stopped.
    """

    recipe: JsonObject | Name | None = None
    command: Command | None = None
    name: Name | None = None
    overrides: JsonObject = Field(default_factory=dict)
    resources: Resources | None = None
    queue: QueueName | None = None
    max_hours: Hours | None = None
    max_gpu_hours: Hours | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> JobCreate:
        if (self.recipe is None) == (self.command is None):
            raise ValueError("give either recipe or command")
        if self.command is not None and self.overrides:
            raise ValueError("overrides change a recipe; a command has none")
        return self


class JobRead(Out):
    id: UUID
    kind: Literal["recipe", "command"]
    name: str
    run_id: UUID
    run_name: str
    recipe_id: UUID
    state: JobState
    attempt: int
    max_attempts: int
    queue: str
    resources: Resources
    max_hours: float | None
    max_gpu_hours: float | None
    used_hours: float = Field(description="Hours that earlier attempts were held.")
    runner: str | None
    worker_id: UUID | None
    devices: list[str] | None
    progress: dict[str, Any] | None
    lease_expires_at: datetime | None
    exit_code: int | None
    error: str | None
    stop_reason: str | None
    #: The end of the trainer's log; left out of lists.
    log_tail: str | None
    cancel_requested: bool
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Claim(In):
    """Without `worker_id` only a job that asks for no resources can be had."""

    attempt: Annotated[int, Field(ge=1, lt=2**31)]
    runner: Label
    worker_id: UUID | None = None


class Claimed(Out):
    """What the winner of a claim gets. `lease_token` goes with all that it writes for this attempt."""

    job_id: UUID
    attempt: int
    lease_token: UUID
    lease_s: float
    run_id: UUID
    run_name: str
    recipe: dict[str, Any] | None
    command: dict[str, Any] | None
    resources: Resources
    devices: list[str] | None = Field(description="GPUs to use; null for a runner that is not registered.")
    max_hours: float | None
    max_gpu_hours: float | None
    used_hours: float


class Heartbeat(In):
    lease_token: UUID
    progress: JsonObject | None = None
    log_tail: LogText | None = None


class Beat(Out):
    """`cancel`: stop the trainer, then finish the job as cancelled."""

    cancel: bool
    lease_expires_at: datetime


class Finish(In):
    """`released` gives the job back, so that another runner goes on from its checkpoint.

    `stopped` says that a rule of the job's own ended it; `stop_reason` names the rule.
    """

    lease_token: UUID
    state: Literal["finished", "stopped", "failed", "cancelled", "released"]
    stop_reason: StopReason | None = None
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    error: Annotated[str, Field(max_length=100_000), AfterValidator(_tail)] | None = None

    @model_validator(mode="after")
    def _a_reason_for_stopping(self) -> Finish:
        if (self.state == "stopped") != (self.stop_reason is not None):
            raise ValueError("stop_reason: say which rule stopped the job, with state `stopped` only")
        return self
