"""Forecasts of reinforcement-learning post-training: points in, forecast out.

Pure functions over numpy arrays: no I/O, no clock, no database, nothing of rlcast's other packages.
"""

from fitting.backtest import Backtest, backtest
from fitting.compare import Comparison, compare
from fitting.curve import Curve
from fitting.errors import FitError
from fitting.forecast import Forecast, forecast
from fitting.gate import GateDecision, gate_decision
from fitting.laws import LAWS
from fitting.options import METHODS, ForecastOptions
from fitting.recipe import forecast_recipe

__all__ = [
    "LAWS",
    "METHODS",
    "Backtest",
    "Comparison",
    "Curve",
    "FitError",
    "Forecast",
    "ForecastOptions",
    "GateDecision",
    "backtest",
    "compare",
    "forecast",
    "forecast_recipe",
    "gate_decision",
]
