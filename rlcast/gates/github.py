"""One comment on a pull request, made the first time and updated after, through GitHub's REST API."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx2

from rlcast.errors import InputError, RlcastError

#: GitHub takes 65,536 characters.
_MAX_BODY = 65_000
_TRIES = 3
_PAGE = 100


class CommentRefused(RlcastError):
    """GitHub did not take the comment; the message says what to change."""


def marker(comment_id: str) -> str:
    """The invisible line by which the gate finds its comment again. Raises `InputError`."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", comment_id):
        raise InputError(
            f"comment-id is '{comment_id}'; use letters, digits, '.', '_' and '-', 60 at most", "comment-id"
        )
    return f"<!-- rlcast-gate:{comment_id} -->"


class PullRequest:
    """The comments of one pull request.

    author: login that the token comments as. A comment of anybody else is never edited, even if it holds
    our marker.
    """

    def __init__(
        self, api_url: str, repository: str, number: int, token: str, author: str, wait_s: float = 1.0
    ) -> None:
        self._issues = f"/repos/{repository}/issues"
        self._number = number
        self._author = author
        self._wait_s = wait_s
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "rlcast-gate",
        }
        self._http = httpx2.Client(base_url=api_url.rstrip("/"), headers=headers, timeout=20.0)

    def upsert(self, comment_id: str, body: str) -> str:
        """Updates the comment of this id, or makes it; the comment's address. Raises `CommentRefused`.

        A try that failed half-way may have made the comment, so each try looks for it again.
        """
        text = f"{marker(comment_id)}\n{body}"
        if len(text) > _MAX_BODY:
            text = f"{text[:_MAX_BODY]}\n\n(cut: the whole report is in the job's summary)"
        for attempt in range(1, _TRIES + 1):
            try:
                return self._upsert_once(marker(comment_id), text)
            except (httpx2.TransportError, _MayPass) as error:
                if attempt == _TRIES:
                    raise CommentRefused(f"GitHub did not answer properly ({error})") from error
                time.sleep(self._wait_s * attempt)
        raise AssertionError("unreachable")

    def _upsert_once(self, mark: str, text: str) -> str:
        existing = self._find(mark)
        if existing is None:
            answer = self._call("POST", f"{self._issues}/{self._number}/comments", json={"body": text})
        else:
            answer = self._call("PATCH", f"{self._issues}/comments/{existing}", json={"body": text})
        return str(answer.get("html_url", ""))

    def _find(self, mark: str) -> int | None:
        page = 1
        while True:
            query = {"per_page": _PAGE, "page": page}
            found = self._call("GET", f"{self._issues}/{self._number}/comments", params=query)
            for comment in found:
                own = (comment.get("user") or {}).get("login") == self._author
                if own and str(comment.get("body") or "").startswith(mark):
                    return int(comment["id"])
            if len(found) < _PAGE:
                return None
            page += 1

    def _call(self, method: str, path: str, **request: Any) -> Any:
        response = self._http.request(method, path, **request)
        if response.status_code >= 500 or response.status_code == 429:
            raise _MayPass(f"HTTP {response.status_code}")
        if response.status_code in (401, 403, 404):
            raise CommentRefused(
                f"GitHub answers {response.status_code} to {method} {path}; give the job "
                "`permissions: pull-requests: write` (pull requests from forks never have it)"
            )
        if not response.is_success:
            raise CommentRefused(f"GitHub answers {response.status_code} to {method} {path}")
        return response.json()

    def close(self) -> None:
        self._http.close()


class _MayPass(Exception):
    """GitHub is troubled or busy."""
