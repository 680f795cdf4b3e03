"""Errors that a user reads: one line that names what is wrong and what to do."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line. Stable: CI scripts depend on them."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    UNREACHABLE = 4
    INTERNAL = 5


class RlcastError(Exception):
    """Base of the errors that the command line prints without a traceback."""

    exit_code: ExitCode = ExitCode.INTERNAL


class InputError(RlcastError):
    """What the user gave cannot be used; the message names the field and the remedy."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ServiceUnreachable(RlcastError):
    """No answer from the service: not running, wrong address, or the network is down."""

    exit_code = ExitCode.UNREACHABLE


class ServiceError(RlcastError):
    """The service answered with an error (RFC 9457 problem document).

    `status` is the HTTP status, `code` the problem's stable code, `problem` the whole document.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, status: int, problem: dict[str, object]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code") or "")
        detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
        errors = problem.get("errors")
        if isinstance(errors, list) and errors:
            fields = "; ".join(f"{e.get('field')}: {e.get('message')}" for e in errors if isinstance(e, dict))
            if fields not in detail:
                detail = f"{detail.rstrip('.')}. {fields}"
        super().__init__(detail)
        if status >= 500:
            self.exit_code = ExitCode.INTERNAL
        elif status in (401, 403):
            self.exit_code = ExitCode.UNREACHABLE
