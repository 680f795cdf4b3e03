"""All models, so that importing this module fills `Base.metadata`."""

from __future__ import annotations

from api.database import Base
from api.evaluations.models import Evaluation, SupersededEvaluation
from api.events.models import Event
from api.gates.models import Gate
from api.jobs.models import Job, Outbox
from api.recipes.models import Recipe
from api.runs.models import Run

__all__ = ["Base", "Evaluation", "Event", "Gate", "Job", "Outbox", "Recipe", "Run", "SupersededEvaluation"]
