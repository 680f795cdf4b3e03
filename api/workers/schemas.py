from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from api.fields import In, Label, Out, single_line

WorkerState = Literal["starting", "idle", "busy", "draining", "gone"]

_WORD = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _not_private(queue: str) -> str:
    if queue.startswith("worker."):
        raise ValueError("names that start with 'worker.' are the workers' own; choose another")
    return queue


WorkerName = Annotated[str, Field(min_length=1, max_length=100, pattern=_WORD)]
QueueName = Annotated[str, Field(min_length=1, max_length=100, pattern=_WORD), AfterValidator(_not_private)]
LabelKey = Annotated[str, Field(min_length=1, max_length=100, pattern=_WORD)]
LabelValue = Annotated[str, Field(max_length=200), AfterValidator(single_line)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=50)]
Gib = Annotated[FiniteFloat, Field(gt=0, lt=1e9)]


class Device(In):
    """A GPU, known by the UUID that its driver gives it."""

    uuid: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9-]+$")]
    name: Label
    memory_gib: Gib


class WorkerCreate(In):
    """What a worker says of itself when it starts. `versions` must hold `rlcast`."""

    name: WorkerName
    hostname: Label
    devices: Annotated[list[Device], Field(max_length=256)] = Field(default_factory=list)
    cpus: Annotated[int, Field(ge=1, le=100_000)]
    memory_gib: Gib
    slots: Annotated[int, Field(ge=1, le=64)] = 1
    versions: Annotated[dict[LabelKey, LabelValue], Field(max_length=20)]
    labels: Labels = Field(default_factory=dict)
    queues: Annotated[list[QueueName], Field(min_length=1, max_length=20)]

    @model_validator(mode="after")
    def _each_device_once(self) -> WorkerCreate:
        if len({device.uuid for device in self.devices}) < len(self.devices):
            raise ValueError("devices: the same device is named twice")
        return self


class WorkerRead(Out):
    """`healthy` tells whether it would take a job now; where not, `reason` says why."""

    id: UUID
    name: str
    hostname: str
    devices: list[Device]
    cpus: int
    memory_gib: float
    slots: int
    versions: dict[str, str]
    labels: dict[str, str]
    queues: list[str]
    state: WorkerState
    drain_requested: bool
    created_at: datetime
    last_heartbeat_at: datetime
    last_taken_at: datetime | None
    healthy: bool
    reason: str | None
    jobs: list[UUID] = Field(description="Jobs that it holds.")


class Registered(Out):
    """`own_queue` is read by this worker alone, beside those that it asked for."""

    id: UUID
    name: str
    own_queue: str
    beat_s: float


class WorkerBeat(In):
    """`n_taken` counts the messages taken from the queue since the start, `n_running` the jobs of now."""

    state: WorkerState
    n_taken: Annotated[int, Field(ge=0, lt=2**31)] = 0
    n_running: Annotated[int, Field(ge=0, le=1000)] = 0


class WorkerOrders(Out):
    """`drain`: finish what runs, take no more, then end. `stalled`: it takes nothing though jobs wait."""

    drain: bool
    stalled: bool
