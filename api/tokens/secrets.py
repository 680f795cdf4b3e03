"""The text of tokens: `rlc_` + 43 random characters + 6 of a checksum.

The checksum lets scanners of leaked secrets, and us, tell a token from a random string without asking the
database; it protects nothing by itself.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import zlib

PREFIX = "rlc_"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def make_token() -> str:
    body = secrets.token_urlsafe(32)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_well_formed(token: str) -> bool:
    """Whether prefix, length and checksum are right."""
    body = token.removeprefix(PREFIX)
    return token.startswith(PREFIX) and len(body) == 49 and _checksum(body[:-6]) == body[-6:]


def _checksum(body: str) -> str:
    """CRC-32 in base 62, 6 digits: 62^6 is above 2^32."""
    value = zlib.crc32(body.encode())
    digits = []
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def digest(token: str, key: bytes) -> bytes:
    """HMAC-SHA256: a stolen database holds nothing to sign in with, and nothing to test guesses on."""
    return hmac.digest(key, token.encode(), hashlib.sha256)


def key_of(owner_token: str) -> bytes:
    """The HMAC's key, from the service's own token; a new token file makes all others invalid."""
    return hmac.digest(owner_token.encode(), b"rlcast tokens", hashlib.sha256)
