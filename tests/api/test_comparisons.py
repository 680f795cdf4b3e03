from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_a_recipe_with_a_higher_ceiling_is_a_ceiling_mover(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "old-1", n=30, recipe="old", law={"A": 0.60})
    add_run(service, "new-1", n=30, recipe="new", law={"A": 0.68})
    body = {"candidate": "new", "baseline": "old", "law": "sigmoid", "reach": 0.55}
    found = service.api("POST", "/comparisons", expect=200, json=body)
    assert found["label"]["name"] == "ceiling mover"
    assert found["difference"]["value"] == pytest.approx(0.08, abs=0.01)
    assert found["difference"]["low"] < 0.08 < found["difference"]["high"]
    assert (found["candidate"]["name"], found["baseline"]["name"]) == ("new", "old")
    assert found["reach"]["pass_rate"] == 0.55
    assert service.api("POST", "/comparisons", expect=200, json=body) == found


def test_a_comparison_names_what_cannot_be(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "a", n=20)
    same = service.api("POST", "/comparisons", expect=422, json={"candidate": "a", "baseline": "a"})
    assert "the same" in str(same["errors"])
    service.api("POST", "/comparisons", expect=404, json={"candidate": "a", "baseline": "nobody"})
    add_run(service, "b", n=20, recipe="other")
    body = {"candidate": "a", "baseline": "b", "law": "cubic"}
    refused = service.api("POST", "/comparisons", expect=422, json=body)
    assert refused["errors"][0]["field"] == "law"
    assert "saturating-power" in refused["errors"][0]["message"]


def test_forecast_options_reach_the_fit(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "a", n=30)
    body = {
        "runs": ["a"],
        "law": "sigmoid",
        "min_compute": "auto",
        "details": True,
        "price": 2.0,
        "worth": 10.0,
    }
    [found] = service.api("POST", "/forecasts", expect=200, json=body)["forecasts"]
    assert found["fit"]["profile"]["A"]["low"] is not None
    assert found["value"]["pays_until"]["compute"] is not None
    assert found["sensitivity"]
    assert found["laws"] == [{**found["laws"][0], "law": "sigmoid", "weight": 1.0}]
    refused = service.api("POST", "/forecasts", expect=422, json={"runs": ["a"], "price": 2.0})
    assert refused["errors"][0]["field"] == "worth"


def test_per_prompt_counts_sharpen_the_noise(service: Any, add_run: Callable[..., Any]) -> None:
    """Half of 8 prompts always solved, half never: sampling adds nothing, which the mean alone cannot tell."""
    add_run(service, "a", n=12)
    rows = [
        {
            "step": 100 + i,
            "compute": {"gpu_hours": 100.0 * 2**i},
            "pass_rate": 0.5,
            "n_prompts": 8,
            "n_samples": 4,
        }
        for i in range(6)
    ]
    add_run(service, "counts", n=0)
    known = [{**row, "solved": [4, 4, 4, 4, 0, 0, 0, 0]} for row in rows]
    service.api("POST", "/runs/counts/evaluations", expect=200, json={"evaluations": known})
    [found] = service.api("POST", "/forecasts", expect=200, json={"runs": ["counts"]})["forecasts"]
    assert found["noise"]["evaluation_sd"] == pytest.approx(0.0, abs=1e-12)
