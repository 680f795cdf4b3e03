"""The laws, by name. Adding one is a file beside this and a line here."""

from __future__ import annotations

from fitting.laws.base import Law
from fitting.laws.sigmoid import Sigmoid

LAWS: dict[str, Law] = {law.name: law for law in (Sigmoid(),)}

__all__ = ["LAWS", "Law"]
