"""The OpenAPI document: `python -m api.openapi > docs/api/openapi.json` writes it anew."""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request

from api.auth import Requires

router = APIRouter(tags=["health"])


@router.get("/openapi.json", include_in_schema=False, dependencies=[Depends(Requires("read"))])
async def get_document(request: Request) -> dict[str, Any]:
    """This document. It needs a token, as everything under `/api/v1`."""
    return document(request.app)


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an application's routes under `/api/v1` and its probes.

    FastAPI lists errors under the media type of the answer; ours are always problem documents. Those that
    every route of a kind can give are added here, so that no route forgets them.
    """
    spec: dict[str, Any] = app.openapi()
    for path, item in spec["paths"].items():
        for method, operation in item.items():
            responses = operation["responses"]
            if "401" not in responses:
                continue  # a probe
            for status in _errors_of(method, path, "requestBody" in operation):
                responses.setdefault(status, {"description": _WORDS[status]})
            for status in responses:
                if status.startswith(("4", "5")):
                    problem = {"$ref": "#/components/schemas/Problem"}
                    responses[status]["content"] = {"application/problem+json": {"schema": problem}}
    return spec


_WORDS = {
    "400": "The body cannot be read.",
    "404": "What is named does not exist.",
    "409": "The request contradicts what is stored; `code` says how.",
    "413": "The body is larger than 1 MB.",
}


def _errors_of(method: str, path: str, has_body: bool) -> list[str]:
    statuses = ["400", "413"] if has_body else []
    if method != "get":
        statuses.append("409")
    if "{" in path or has_body or path.endswith(("/events", "/forecasts")):
        statuses.append("404")
    return statuses


def text(app: FastAPI) -> str:
    """The document as it is kept in the repository."""
    return json.dumps(document(app), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Builds the application without starting it: no database is asked."""
    import tempfile
    from pathlib import Path

    from api.app import create_app
    from api.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database_url="postgresql+psycopg://", data_dir=Path(folder))  # type: ignore[arg-type]
        sys.stdout.write(text(create_app(settings)))


if __name__ == "__main__":
    main()
