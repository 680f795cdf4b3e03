"""rlcast: forecasts for reinforcement-learning post-training, with honest uncertainty.

In a notebook: `from rlcast import forecast; f = forecast(df); f.figure(); f.summary()`.
In a training loop: `run = rlcast.start_run(recipe=…, benchmark=…)`, then `run.log(step=…, …)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlcast.client import Client
    from rlcast.notebook import Forecasts, forecast
    from rlcast.tracking.run import Run
    from rlcast.tracking.start import start_run

__version__ = "0.1.0"
__all__ = ["Client", "Forecasts", "Run", "__version__", "forecast", "start_run"]

# Imported at first use: `import rlcast` in a training loop must not load plotting or fitting.
_HOMES = {
    "Client": "rlcast.client",
    "Forecasts": "rlcast.notebook",
    "Run": "rlcast.tracking.run",
    "forecast": "rlcast.notebook",
    "start_run": "rlcast.tracking.start",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rlcast' has no attribute {name!r}")
