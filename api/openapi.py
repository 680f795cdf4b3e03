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

    FastAPI lists errors under the media type of the answer; ours are always problem documents.
    """
    spec: dict[str, Any] = app.openapi()
    for path in spec["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status in ("401", "403", "404", "409", "413", "422", "503"):
                    problem = {"$ref": "#/components/schemas/Problem"}
                    response["content"] = {"application/problem+json": {"schema": problem}}
    return spec


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
