"""What makes a run the same run: the fields that the service compares when a name is used again."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from rlcast.errors import InputError

#: Units of compute that the service knows.
UNITS = ("gpu_hours", "cpu_hours", "flops", "tokens", "samples", "steps", "usd")
_MAX_LENGTH = 200


@dataclass(frozen=True)
class RunIdentity:
    """A run's name and what was fixed at its start."""

    name: str
    recipe: str
    benchmark: str
    compute_unit: str = "gpu_hours"
    model: str | None = None
    task: str | None = None
    seed: int | None = None

    def check(self) -> None:
        """Raises `InputError` for what the service would refuse, so that it shows at the start."""
        for field in ("name", "recipe"):
            text = check_label(field, getattr(self, field))
            if "/" in text or text in (".", ".."):
                raise InputError(f"{field} is {text!r}; it must not contain '/', write '-' or '_'", field)
        check_label("benchmark", self.benchmark)
        for field in ("model", "task"):
            if getattr(self, field) is not None:
                check_label(field, getattr(self, field))
        if self.compute_unit not in UNITS:
            raise InputError(
                f"unit '{self.compute_unit}' is not known; use one of {', '.join(UNITS)}", "unit"
            )
        if self.seed is not None and not (isinstance(self.seed, int) and -(2**31) <= self.seed < 2**31):
            raise InputError(f"seed is {self.seed!r}; give an integer of 32 bits", "seed")

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def folder_name(self) -> str:
        """One folder for each identity, readable, and safe whatever the name holds."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip(".-")[:60] or "run"
        digest = hashlib.sha256(json.dumps(self.fields(), sort_keys=True).encode()).hexdigest()
        return f"{readable}-{digest[:12]}"


def check_label(field: str, text: Any) -> str:
    """One line of at most 200 printable characters. Raises `InputError`."""
    if not isinstance(text, str) or not text:
        raise InputError(f"{field} is {text!r}; give a name", field)
    if len(text) > _MAX_LENGTH:
        raise InputError(f"{field} has {len(text)} characters; {_MAX_LENGTH} at most", field)
    if text != text.strip() or any(not c.isprintable() for c in text):
        raise InputError(f"{field} must be one line without spaces at its ends", field)
    return text
