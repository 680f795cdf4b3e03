"""The laws, by name. Adding one is a file beside this and a line here."""

from __future__ import annotations

from fitting.laws.base import Law
from fitting.laws.exponential import Exponential
from fitting.laws.last_value import LastValue
from fitting.laws.log_linear import LogLinear
from fitting.laws.power import Power
from fitting.laws.saturating_power import SaturatingPower
from fitting.laws.sigmoid import Sigmoid

LAWS: dict[str, Law] = {
    law.name: law for law in (Sigmoid(), SaturatingPower(), Power(), LogLinear(), Exponential(), LastValue())
}

__all__ = ["LAWS", "Law"]
