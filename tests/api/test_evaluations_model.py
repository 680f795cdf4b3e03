"""Random histories of batches against a model of a few lines."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Stored = dict[int, tuple[float, int]]

_numbers = itertools.count()

batches = st.lists(
    st.tuples(
        st.integers(1, 3),  # attempt
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.1, 0.2])), min_size=1, max_size=5),
    ),
    max_size=8,
)


def model(stored: Stored, attempt: int, items: list[tuple[int, float]]) -> tuple[Stored, list[str]]:
    """What a batch must do: the new contents (the old ones when any item is refused) and the statuses."""
    new = dict(stored)
    statuses = []
    for step, rate in items:
        if step not in new:
            statuses.append("created")
        elif attempt > new[step][1]:
            statuses.append("superseded")
        elif (rate, attempt) == new[step]:
            statuses.append("duplicate")
            continue
        else:
            statuses.append("rejected")
            continue
        new[step] = (rate, attempt)
    return (stored if "rejected" in statuses else new), statuses


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=batches)
def test_any_history_ends_as_the_model_says(service: Any, history: list[Any]) -> None:
    name = f"run-{next(_numbers)}"
    fields = {"recipe": "r", "benchmark": "b", "compute_unit": "steps"}
    service.api("POST", "/runs", json={"name": name, **fields})
    stored: Stored = {}
    for attempt, items in history:
        stored, expected = model(stored, attempt, items)
        body = {
            "attempt": attempt,
            "evaluations": [{"step": s, "compute": {"steps": s}, "pass_rate": r} for s, r in items],
        }
        answer = service.request("POST", f"/runs/{name}/evaluations", json=body)
        assert answer.status_code == (409 if "rejected" in expected else 200)
        assert [result["status"] for result in answer.json()["results"]] == expected
    page = service.api("GET", f"/runs/{name}/evaluations")
    assert {e["step"]: (e["pass_rate"], e["attempt"]) for e in page["items"]} == stored
    assert service.api("GET", f"/runs/{name}")["n_evaluations"] == len(stored)
