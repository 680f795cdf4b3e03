from __future__ import annotations

from pathlib import Path
from typing import Any

from api.openapi import text

CHECKED_IN = Path(__file__).parents[2] / "docs" / "api" / "openapi.json"


def test_the_checked_in_document_is_the_generated_one(service: Any) -> None:
    assert CHECKED_IN.read_text() == text(service.app), (
        "routes have changed: run `python -m api.openapi > docs/api/openapi.json`"
    )


def test_every_error_is_a_problem_document(service: Any) -> None:
    for path, item in service.api("GET", "/openapi.json")["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status.startswith(("4", "5")) and path.startswith("/api"):
                    assert list(response["content"]) == ["application/problem+json"], (path, status)
