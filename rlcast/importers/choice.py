"""Which of the scores in a log is the curve. What is not clear is refused, with what there is to choose."""

from __future__ import annotations

from collections.abc import Iterable

from rlcast.errors import InputError
from rlcast.importers.rows import Options
from rlcast.importers.series import Series


def choose(
    series: dict[str, Series], options: Options, numbers: Iterable[str], training: Iterable[str]
) -> Series:
    """The series that is the curve: the one named, or the best in the order of preference.

    `numbers` are all keys of the log and `training` those of the training batch, for the message.
    Raises `InputError`.
    """
    if options.y:
        return _named(series, options.y, numbers)
    found = [one for one in series.values() if one.scores]
    if not found:
        hint = f"; {', '.join(sorted(training)[:4])} is of the training batch" if training else ""
        raise InputError(f"no held-out score found; name its key with --y{hint} ({listed(numbers)})", "--y")
    best = min(found, key=lambda one: (one.match.rank, -len(one.scores)))
    same = [one.match.key for one in found if one.match.rank == best.match.rank]
    if best.match.one_of_many and len(same) > 1:
        raise InputError(
            f"several reward functions could be the score; choose one with --y: {', '.join(same)}", "--y"
        )
    if best.match.kind == "reward" and not options.scaled:
        raise InputError(
            f"{best.match.key} is {best.match.what}, not a pass rate; choose another key with --y, or "
            "say what it means with --range LOW:HIGH",
            "--range",
        )
    return best


def _named(series: dict[str, Series], key: str, numbers: Iterable[str]) -> Series:
    if key not in series:
        raise InputError(f"the log has no '{key}' (--y); {listed(numbers)}", "--y")
    if not series[key].scores:
        raise InputError(f"'{key}' (--y) is never a finite number in this log", "--y")
    return series[key]


def listed(numbers: Iterable[str]) -> str:
    """The keys of a log for a message: the first of them when there are many."""
    names = sorted(numbers)
    if not names:
        return "no numbers in it"
    return f"keys: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}"
