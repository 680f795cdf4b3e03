"""verl's console: `step:10 - key:value - key:value`, behind ANSI colours and Ray's prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rlcast.importers.rows import BrokenLine, Row

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# "step:" is also the end of keys (timing_s/step:, training/global_step:): only a line's start counts.
_STEP = re.compile(r"^(?:\([^()]*pid=\d+[^()]*\)\s*)?step:(\d+)(?: - |$)")
_GPUS = re.compile(r"n_gpus_per_node['\"]?\s*[:=]\s*(\d+)")
_NODES = re.compile(r"\bnnodes['\"]?\s*[:=]\s*(\d+)")
#: Before there was a total, these were the parts of a step (`timing/testing` is evaluation).
_OLD_PARTS = ("gen", "ref", "values", "adv", "update_critic", "update_actor", "old_log_prob", "reward")


def looks_like_verl(line: str) -> bool:
    return _STEP.match(_ANSI.sub("", line)) is not None and " - " in line


class VerlConsole:
    """Rows of a verl console log. The number of devices comes from the configuration it prints."""

    def __init__(self) -> None:
        self.devices: int | None = None
        self.devices_from = "n_gpus_per_node x nnodes in the log"
        self._gpus: int | None = None
        self._nodes: int | None = None

    def rows(self, line: str) -> Iterator[Row]:
        text = _ANSI.sub("", line)
        found = _STEP.match(text)
        if found is None:
            self._look_for_devices(text)
            return
        values, broken = {}, False
        for part in filter(None, text[found.end() :].split(" - ")):
            key, _, number = part.rpartition(":")
            value = _number(number)
            if not key or value is None:
                broken = True
            else:
                values[key.strip()] = value
        with_total(values)
        yield Row(int(found[1]), values)
        if broken:  # its whole values are told nevertheless
            raise BrokenLine

    def _look_for_devices(self, text: str) -> None:
        for pattern, name in ((_GPUS, "_gpus"), (_NODES, "_nodes")):
            found = pattern.search(text)
            if found and getattr(self, name) is None:
                setattr(self, name, int(found[1]))
        if self._gpus and self._nodes:
            self.devices = self._gpus * self._nodes


def _number(text: str) -> float | None:
    text = text.strip()
    if text.startswith("np.float"):
        text = text.partition("(")[2].rstrip(")")
    try:
        return float(text)
    except ValueError:
        return None


def with_total(values: dict[str, float]) -> None:
    """Adds `timing/sum` where the log has only the parts of a step."""
    if "timing/gen" in values and "timing_s/step" not in values:
        values["timing/sum"] = sum(values.get(f"timing/{part}", 0.0) for part in _OLD_PARTS)
