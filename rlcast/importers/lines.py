"""Lines of a log in constant memory, whatever wrote them: BOM, CRLF, UTF-16, gzip, a cut end, binary dirt."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rlcast.errors import InputError

#: Longer lines are cut: no row of numbers is that long, and a file without line ends must not fill memory.
MAX_LINE_CHARACTERS = 4_000_000


def head_of(path: Path, size: int = 64 * 1024) -> bytes:
    """The first bytes of a file. Raises `InputError` that says why it cannot be read."""
    try:
        with _open(path) as file:
            return _read_up_to(file, size)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", "file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a file in it", "file") from None
    except PermissionError:
        raise InputError(f"{path}: not readable (check its permissions)", "file") from None
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read ({error})", "file") from None


def _read_up_to(file: IO[bytes], size: int) -> bytes:
    """At most `size` bytes; of a cut gzip file those before the cut."""
    head = b""
    while len(head) < size:
        try:
            piece = file.read1(size - len(head))  # type: ignore[attr-defined]
        except EOFError:
            break
        if not piece:
            break
        head += piece
    return head


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    # The caller closes it.
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def text_of(head: bytes) -> str:
    """Bytes as text, with the encoding that their byte order mark tells."""
    return head.decode(_encoding(head), errors="replace").removeprefix("\ufeff")


def _encoding(head: bytes) -> str:
    return "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"


def lines_of(path: Path) -> Iterator[str]:
    """Each line, ended by a newline unless the file stops in it. A cut gzip file ends where it was cut."""
    encoding = _encoding(head_of(path, 4))
    with _open(path) as raw:
        file: Any = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline=None)
        first = True
        while True:
            try:
                line = file.readline(MAX_LINE_CHARACTERS)
            except (EOFError, OSError):
                return
            if not line:
                return
            yield line.removeprefix("\ufeff") if first else line
            first = False
