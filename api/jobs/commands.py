"""Jobs that are commands: who may launch them, and the run that they make.

A command can do on its runner whatever the runner's user can. So a service has to allow them, and each one is
noted with its arguments.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Any

from api.errors import Forbidden
from api.jobs.schemas import Command, Resources
from api.settings import Settings


def check_allowed(settings: Settings) -> None:
    """Raises `Forbidden` unless the service's operator has opted in."""
    if not settings.allow_commands:
        raise Forbidden(
            "this service launches recipes only; its operator can allow commands by starting it with "
            "RLCAST_ALLOW_COMMANDS=true",
            code="commands_not_allowed",
        )


def recipe_name(command: Command) -> str:
    """What the run counts as: the given name, or the program's."""
    if command.recipe is not None:
        return command.recipe
    name = PurePosixPath(command.argv[0]).name
    return "".join(c if c.isprintable() else "-" for c in name).strip()[:200] or "command"


def config_of(command: Command, resources: Resources) -> dict[str, Any]:
    """What is stored of it, with the unit of its curve chosen."""
    unit = command.compute_unit or ("gpu_hours" if resources.gpus else "cpu_hours")
    return {**command.model_dump(mode="json"), "compute_unit": unit}


def audit_details(command: Command) -> dict[str, Any]:
    """The command as the audit log keeps it: arguments, and a hash of each file."""
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in command.files.items()}
    return {"argv": [argument[:500] for argument in command.argv[:100]], "files_sha256": files}
