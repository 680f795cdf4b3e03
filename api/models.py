"""All models, so that importing this module fills `Base.metadata`."""

from __future__ import annotations

from api.audit.models import AuditEntry
from api.baselines.models import Baseline
from api.database import Base
from api.evaluations.models import Evaluation, SupersededEvaluation
from api.events.models import Event
from api.gates.models import Gate
from api.idempotency import IdempotencyKey
from api.jobs.models import Job, Outbox
from api.recipes.models import Recipe
from api.registry.models import ForecastTarget, StoredForecast
from api.runs.models import Run
from api.tokens.models import Token
from api.workers.models import Worker

__all__ = [
    "AuditEntry",
    "Base",
    "Baseline",
    "Evaluation",
    "Event",
    "ForecastTarget",
    "Gate",
    "IdempotencyKey",
    "Job",
    "Outbox",
    "Recipe",
    "Run",
    "StoredForecast",
    "SupersededEvaluation",
    "Token",
    "Worker",
]
