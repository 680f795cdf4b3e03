"""The OpenAPI document: `python -m api.openapi > docs/api/openapi.json` writes it anew."""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import FastAPI

from api.app import create_app
from api.settings import Settings


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an application's routes under `/api/v1` and its probes."""
    return app.openapi()


def text(app: FastAPI) -> str:
    """The document as it is kept in the repository."""
    return json.dumps(document(app), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Builds the application without starting it: no database is asked."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database_url="postgresql+psycopg://", data_dir=Path(folder))  # type: ignore[arg-type]
        sys.stdout.write(text(create_app(settings)))


if __name__ == "__main__":
    main()
