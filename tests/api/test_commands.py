"""Jobs that are commands are for services that allow them; what they may name stays in their folder."""

from __future__ import annotations

from typing import Any

import pytest

COMMAND = {"argv": ["python", "train.py"], "files": {"train.py": "print(1)"}}


@pytest.fixture
def service_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    allowed = "refused" not in request.node.name
    return {"broker_url": "redis://127.0.0.1:1/0", "allow_commands": allowed}


def test_commands_are_refused_unless_the_service_allows_them(service: Any) -> None:
    problem = service.api("POST", "/jobs", expect=403, json={"command": COMMAND})
    assert problem["code"] == "commands_not_allowed"
    assert "RLCAST_ALLOW_COMMANDS" in problem["detail"]
    assert service.api("GET", "/jobs")["items"] == []


def test_a_command_is_noted_with_its_arguments(service: Any) -> None:
    job = service.api("POST", "/jobs", expect=201, json={"command": COMMAND})
    assert (job["kind"], job["run_name"]) == ("command", "python-1")
    [entry] = service.api("GET", "/audit", params={"action": "command.submitted"})["items"]
    assert (entry["actor"], entry["details"]["argv"]) == ("owner", ["python", "train.py"])
    assert "print(1)" not in str(entry)
    lease = service.api("POST", f"/jobs/{job['id']}/claim", json={"attempt": 1, "runner": "r"})
    assert (lease["command"]["argv"], lease["recipe"]) == (["python", "train.py"], None)


WRONG = [
    ({"argv": []}, "command.argv"),
    ({"argv": [" "]}, "command.argv"),
    ({"argv": "python train.py"}, "command.argv"),
    ({"argv": ["a\0b"]}, "command.argv.0"),
    ({**COMMAND, "files": {"../evil": ""}}, "command.files.../evil.[key]"),
    ({**COMMAND, "files": {"a/b": ""}}, "command.files.a/b.[key]"),
    ({**COMMAND, "results_file": "/etc/passwd"}, "command.results_file"),
    ({**COMMAND, "results_file": "a/../../b"}, "command.results_file"),
    ({**COMMAND, "env": {"LD_PRELOAD": "x"}}, "command.env"),
    ({**COMMAND, "compute_unit": "parsecs"}, "command.compute_unit"),
]


def test_what_a_command_may_not_name(service: Any, subtests: pytest.Subtests) -> None:
    for command, field in WRONG:
        with subtests.test(command=command):
            problem = service.api("POST", "/jobs", expect=422, json={"command": command})
            assert problem["errors"][0]["field"] == field
    for body in ({}, {"command": COMMAND, "recipe": {"name": "tiny"}}):
        service.api("POST", "/jobs", expect=422, json=body)
    body = {"command": COMMAND, "max_gpu_hours": 3}
    assert service.api("POST", "/jobs", expect=422, json=body)["errors"][0]["field"] == "max_gpu_hours"
