"""The one error of this package."""

from __future__ import annotations


class FitError(ValueError):
    """Points or options that cannot be used; `field` names the culprit, the message the remedy."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field

    def __reduce__(self) -> tuple[type[FitError], tuple[str, str]]:
        return FitError, (str(self), self.field)
