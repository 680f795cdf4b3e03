"""Errors as RFC 9457 problem documents: `application/problem+json` that names field and remedy.

Services raise the domain errors below; the table `_STATUS` is the one place that knows HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import exc as sql
from starlette.exceptions import HTTPException

from api.context import request_id

log = logging.getLogger("api.errors")


class FieldError(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    """An error as the service tells it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] = []
    request_id: str | None = None


class ServiceProblem(Exception):
    """Base of the errors that a caller can mend. `extra` members are added to the document."""

    code = "error"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[tuple[str, str]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code
        self.errors = [FieldError(field=field, message=message) for field, message in errors]
        self.extra = dict(extra or {})


class Invalid(ServiceProblem):
    """The request is understood but a value in it cannot be used."""

    code = "invalid"

    @classmethod
    def field(cls, field: str, message: str) -> Invalid:
        return cls(f"{field}: {message}", errors=[(field, message)])


class NotFound(ServiceProblem):
    code = "not_found"

    @classmethod
    def named(cls, kind: str, name: str, remedy: str | None = None) -> NotFound:
        return cls(f"no {kind} named {name!r}; {remedy or f'GET /api/v1/{kind}s lists them'}")


class Conflict(ServiceProblem):
    """The request contradicts what is stored."""

    code = "conflict"


class Unauthorised(ServiceProblem):
    code = "unauthorized"


class Forbidden(ServiceProblem):
    code = "forbidden"


class Overloaded(ServiceProblem):
    """Too much is going on; the same request may succeed later."""

    code = "overloaded"


_STATUS: dict[type[ServiceProblem], int] = {
    Invalid: 422,
    NotFound: 404,
    Conflict: 409,
    Unauthorised: 401,
    Forbidden: 403,
    Overloaded: 503,
}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "2"}}


def problem_response(
    status: int,
    detail: str,
    code: str,
    errors: Sequence[FieldError] = (),
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        errors=list(errors),
        request_id=request_id.get(),
    )
    return JSONResponse(
        {**(extra or {}), **problem.model_dump()},
        status,
        headers={**_HEADERS.get(status, {}), **(headers or {})},
        media_type="application/problem+json",
    )


async def _service_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceProblem)
    return problem_response(_STATUS[type(error)], error.detail, error.code, error.errors, error.extra)


async def _validation_problem(request: Request, error: Exception) -> JSONResponse:
    """FastAPI's own handler echoes the input, which fails on NaN and shows secrets; this one does not."""
    assert isinstance(error, RequestValidationError)
    errors = [FieldError(field=_field(e["loc"]), message=_message(e)) for e in error.errors()[:100]]
    first = errors[0]
    return problem_response(422, f"{first.field}: {first.message}", "invalid", errors)


def _field(location: Sequence[int | str]) -> str:
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] in ("body", "query", "path", "header"):
        parts = parts[1:]
    return ".".join(parts)


def _message(error: Mapping[str, Any]) -> str:
    message = " ".join(str(error["msg"]).removeprefix("Value error, ").split())
    if error["type"] == "json_invalid":
        return f"not valid JSON ({(error.get('ctx') or {}).get('error', message)})"
    if error["type"] == "extra_forbidden":
        return "unknown field; remove it or check its spelling"
    return message


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = error.status_code
    code = HTTPStatus(status).phrase.lower().replace(" ", "_")
    detail = _DETAIL.get(status, str(error.detail))
    return problem_response(status, detail, code, headers=error.headers)


_DETAIL = {
    400: "the body cannot be read as JSON in UTF-8; check its encoding and nesting",
    404: "no such address; GET /api/v1/openapi.json lists them",
    413: "the request is larger than 1 MB; send it in parts",
}


async def _data_problem(request: Request, error: Exception) -> JSONResponse:
    """A value passed our checks and the database cannot hold it: the caller's error, not ours."""
    log.warning("value refused by the database", exc_info=error)
    return problem_response(422, "a value is out of the range that can be stored", "invalid")


async def _database_problem(request: Request, error: Exception) -> JSONResponse:
    """The database is away or busy. Whether the last commit took place is unknown: sending again is safe."""
    log.error("database not available: %s", type(error).__name__, exc_info=error)
    return problem_response(
        503, "the database does not answer; send the request again", "database_unavailable"
    )


def too_large() -> JSONResponse:
    return problem_response(413, _DETAIL[413], "content_too_large")


def unexpected(error: Exception) -> JSONResponse:
    """The answer to an error of ours; what it was is for the log only."""
    log.error("unexpected error", exc_info=error)
    return problem_response(500, "an unexpected error; its request_id is in the service's log", "internal")


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceProblem, _service_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(sql.DataError, _data_problem)
    app.add_exception_handler(sql.OperationalError, _database_problem)
    app.add_exception_handler(sql.InterfaceError, _database_problem)
    app.add_exception_handler(sql.TimeoutError, _database_problem)
