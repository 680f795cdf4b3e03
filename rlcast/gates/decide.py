"""Comes to the decision: from files here, or by asking the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.gates.policy import Policy, baseline_number

_ENDINGS = (".csv", ".tsv")


def decide(policy: Policy) -> dict[str, Any]:
    """The decision with `candidate_forecast` and `baseline_forecast` (None for a number).

    Raises `InputError`, `ServiceError` or `ServiceUnreachable`.
    """
    if is_file(policy.candidate):
        return _decide_here(policy)
    if isinstance(policy.baseline, str) and is_file(policy.baseline):
        raise policy.error(
            "baseline", "is a file and the candidate is not; import the file first, or give two files"
        )
    return _ask_service(policy)


def is_file(text: str) -> bool:
    """Whether the text names a file (also one that is not there, so that a typo is not sought as a run)."""
    path, _ = split_run(text)
    return Path(path).is_file() or Path(path).suffix.lower() in _ENDINGS


def split_run(text: str) -> tuple[str, str | None]:
    """`FILE.csv:RUN` into file and run; the run is None when it is not named."""
    for ending in _ENDINGS:
        if f"{ending}:" in text:
            path, run = text.split(f"{ending}:", 1)
            return path + ending, run
    return text, None


def _decide_here(policy: Policy) -> dict[str, Any]:
    from fitting import FitError, gate_decision

    number = baseline_number(policy.baseline)
    if number is None and not is_file(str(policy.baseline)):
        raise policy.error("baseline", "must be a file or a number when the candidate is a file")
    options = policy.forecast_options()
    try:
        held = number if number is not None else forecast_of(str(policy.baseline), options)
        candidate = forecast_of(policy.candidate, options)
        decision = gate_decision(candidate, held, margin=policy.margin, confidence=policy.confidence)
    except FitError as error:
        raise InputError(str(error), error.field) from error
    forecasts = {
        "candidate_forecast": candidate.to_dict(),
        "baseline_forecast": None if isinstance(held, float) else held.to_dict(),
    }
    return {**decision.to_dict(), **forecasts}


def forecast_of(source: str, options: dict[str, Any]) -> Any:
    """The forecast of `FILE` or `FILE:RUN`."""
    from fitting import forecast
    from rlcast.curves import curve_of, options_of
    from rlcast.importers import read_logs

    path, run = split_run(source)
    runs = {one.rows.run: one.rows for one in read_logs([path])}
    if run is None and len(runs) > 1:
        raise InputError(f"{path} holds {len(runs)} runs; name one as {path}:RUN ({', '.join(runs)})", "run")
    if run is not None and run not in runs:
        raise InputError(f"{path} has no run '{run}'; it has: {', '.join(runs)}", "run")
    return forecast(curve_of(runs[run or next(iter(runs))]), options_of(options))


def _ask_service(policy: Policy) -> dict[str, Any]:
    from rlcast.client import Client

    number = baseline_number(policy.baseline)
    with Client() as client:
        return client.gate(
            candidate=policy.candidate,
            baseline=number if number is not None else policy.baseline,
            margin=policy.margin,
            confidence=policy.confidence,
            **policy.forecast_options(),
        )
