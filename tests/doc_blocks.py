"""The code blocks of a page under docs/, for tests that run each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_PARTS = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    heading: str
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """Every fenced block of `docs/<page>`, with the heading that it stands under."""
    heading, found = "", []
    text = (DOCS / page).read_text()
    assert text.count("```") % 2 == 0
    for part in _PARTS.finditer(text):
        if part["heading"]:
            heading = part["heading"]
        else:
            found.append(Block(heading, part["language"], part["text"]))
    assert len(found) == text.count("```") // 2
    return found
