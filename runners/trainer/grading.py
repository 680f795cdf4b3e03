"""Gives every completion its reward."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from runners.trainer.tasks import Task
from runners.trainer.types import Group

log = logging.getLogger(__name__)


def grade(groups: Iterable[Group], task: Task) -> None:
    """Sets `reward` in place: 1 or 0, or None when the grader failed.

    A grader that fails says nothing about the answer, and a 0 would teach the model that it was wrong. An
    answer cut by the length limit is not finished, whatever its beginning looks like: 0.
    """
    for group in groups:
        for sample in group.samples:
            try:
                sample.reward = task.grade(group.prompt, sample.text) if sample.finished else 0.0
            except Exception:
                log.exception("grader failed on prompt %d", group.prompt.id)
                sample.reward = None
