"""`rlcast worker` as an operator starts it: a process of its own against the real service and broker."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlcast.errors import InputError
from runners.host import Gpu, choose_gpus, find_gpus, memory_gib


@pytest.fixture
def service_settings(broker_url: str) -> dict[str, Any]:
    return {"broker_url": broker_url, "relay_s": 0.05, "sweep_s": 0.2, "worker_beat_s": 0.3}


def test_it_registers_and_a_drain_ends_it_with_0(
    service: Any, start_worker: Callable[..., Any], until: Callable[..., Any], rlcast: Any
) -> None:
    worker = start_worker("--name", "w1", "--label", "zone=a", "--queue", "cpu", "--jobs-at-once", "2")
    idle = until("w1", "idle")
    assert (idle["labels"], idle["queues"], idle["slots"]) == ({"zone": "a"}, ["cpu"], 2)
    assert idle["memory_gib"] > 0
    assert idle["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    env = {**os.environ, "RLCAST_URL": service.url, "RLCAST_TOKEN": service.token, "COLUMNS": "200"}
    listed = rlcast("workers", env=env)
    assert "healthy" in listed.stdout
    assert "zone=a" in listed.stdout
    drained = rlcast("workers", "drain", "w1", env=env)
    assert drained.returncode == 0, drained.stderr
    assert worker.ended() == 0
    assert until("w1", "gone")["reason"] == "it ended"
    assert json.loads(rlcast("workers", "--json", env=env).stdout) == {"workers": []}


def test_sigterm_ends_it_with_0_and_a_name_is_used_once(
    start_worker: Callable[..., Any], until: Callable[..., Any]
) -> None:
    first = start_worker("--name", "w1")
    until("w1", "idle")
    second = start_worker("--name", "w1")
    assert second.ended() == 2
    assert "a worker of this name runs here" in second.log.read_text()
    first.process.send_signal(signal.SIGTERM)
    assert first.ended() == 0
    until("w1", "gone")


def test_another_version_and_a_missing_broker_are_refused_with_2(
    start_worker: Callable[..., Any],
) -> None:
    code = (
        "import rlcast, sys; rlcast.__version__ = '0.0.9'; import runners.worker as w; sys.exit(w.main([]))"
    )
    other = start_worker(argv=[sys.executable, "-c", code])
    lost = start_worker(RLCAST_BROKER_URL="")
    assert (other.ended(), lost.ended()) == (2, 2)
    assert "this worker runs rlcast 0.0.9 and the service" in other.log.read_text()
    assert "RLCAST_BROKER_URL" in lost.log.read_text()


FOUND = [Gpu("GPU-aa", "NVIDIA H200", 140.4), Gpu("GPU-bb", "NVIDIA H200", 140.4)]


def test_gpus_are_chosen_by_number_uuid_or_what_is_visible() -> None:
    def uuids(wanted: str, **environ: str) -> list[str]:
        return [gpu.uuid for gpu in choose_gpus(FOUND, wanted, environ)]

    assert uuids("all") == ["GPU-aa", "GPU-bb"]
    assert uuids("all", CUDA_VISIBLE_DEVICES="1") == ["GPU-bb"]
    assert uuids("all", CUDA_VISIBLE_DEVICES="") == []
    assert uuids("1,GPU-aa") == ["GPU-bb", "GPU-aa"]
    assert uuids("none", CUDA_VISIBLE_DEVICES="1") == []
    with pytest.raises(InputError, match=r"no GPU '2' on this host; there are: 0 \(GPU-aa\), 1 \(GPU-bb\)"):
        uuids("0,2")


def test_gpus_are_read_from_the_driver_s_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU-5f9e, NVIDIA H200, 143771'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert find_gpus() == [Gpu("GPU-5f9e", "NVIDIA H200", 140.4)]
    tool.write_text("#!/bin/sh\necho 'Driver/library version mismatch'\nexit 18\n")
    with pytest.raises(InputError, match="Driver/library version mismatch"):
        find_gpus()


def test_memory_is_the_container_s_where_that_is_less(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{2**30}\n")
    assert memory_gib(limit) == 1.0
    limit.write_text("max\n")
    assert memory_gib(limit) == memory_gib(tmp_path / "absent") > 1.0
