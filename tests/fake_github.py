"""As much of GitHub's REST API as comments on a pull request need, on loopback."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

TOKEN = "ghs_test"
BOT = "github-actions[bot]"


class FakeGitHub:
    """Comments of pull request 7 of `org/repo`. `broken` holds statuses that the next answers have."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.broken: list[int] = []
        self.requests: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.answer(self)

            do_POST = do_PATCH = do_GET

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, login: str, body: str) -> dict[str, Any]:
        number = len(self.comments) + 1
        address = f"https://github.com/org/repo/pull/7#issuecomment-{number}"
        comment = {"id": number, "user": {"login": login}, "body": body, "html_url": address}
        self.comments.append(comment)
        return comment

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.command)
        status, document = self._handle(handler)
        content = json.dumps(document).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _handle(self, handler: BaseHTTPRequestHandler) -> tuple[int, Any]:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self.broken:
            return self.broken.pop(0), {"message": "as the test wants"}
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        address = urlsplit(handler.path)
        if address.path == "/repos/org/repo/issues/7/comments":
            if handler.command == "POST":
                return 201, self.add(BOT, json.loads(body)["body"])
            query = parse_qs(address.query)
            size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
            return 200, self.comments[size * (page - 1) : size * page]
        found = re.fullmatch(r"/repos/org/repo/issues/comments/(\d+)", address.path)
        if found and handler.command == "PATCH":
            comment = self.comments[int(found[1]) - 1]
            comment["body"] = json.loads(body)["body"]
            return 200, comment
        return 404, {"message": "Not Found"}


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()
