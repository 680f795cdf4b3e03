"""Offline W&B runs, TensorBoard's event files, MLflow's folder.

The messages were made with the trackers' own protocol buffers (wandb 0.31, tensorboard 2.21).
"""

from __future__ import annotations

import struct
import zlib

import pytest

from rlcast.errors import InputError
from rlcast.importers import read_logs

# A run named my-run with trainer.n_gpus_per_node 8 and nnodes 1.
WANDB_RUN = bytes.fromhex(
    "08018a01510a06616263313233223f0a2f0a07747261696e65728201237b226e5f677075735f7065725f6e6f6465223a20382c20"
    "226e6e6f646573223a20317d0a0c0a026c7282010531652d303642066d792d72756e"
)
# Step 1: timing_s/step 60, as JSON (before 0.31). The same step: accuracy 0.25, as numbers (since 0.31).
WANDB_TIME = bytes.fromhex(
    "12430a1a1214747261696e696e672f676c6f62616c5f73746570820101310a16120d74696d696e675f732f737465708201043630"
    "2e300a0b12055f73746570820101301200"
)
WANDB_SCORE = bytes.fromhex(
    "0801124f0a181214747261696e696e672f676c6f62616c5f7374657028020a24121976616c2d636f72652f67736d386b2f616363"
    "2f6d65616e403431000000000000d03f0a0912055f73746570280212020801"
)
# Step 3 at 1000 s: validation/accuracy 0.5, as simple value and as tensor.
TB_SIMPLE = bytes.fromhex(
    "090000000000408f4010032a1c0a1a0a1376616c69646174696f6e2f6163637572616379150000003f"
)
TB_TENSOR = bytes.fromhex(
    "090000000000408f4010032a210a1f0a1376616c69646174696f6e2f6163637572616379420808012a040000003f"
)


def wandb_file(*records: bytes) -> bytes:
    """Records in blocks of 32,768 bytes, as W&B (and LevelDB) lay them out."""
    out = bytearray(b":W&B\xe1\xbe\x00")
    for record in records:
        first = True
        while first or record:
            left = 32_768 - len(out) % 32_768
            if left < 7:
                out += bytes(left)
                left = 32_768
            body, record = record[: left - 7], record[left - 7 :]
            kind = bytes([(1 if first else 4) if not record else (2 if first else 3)])
            out += struct.pack("<IH", zlib.crc32(kind + body), len(body)) + kind + body
            first = False
    return bytes(out)


def wide(record: bytes, size: int) -> bytes:
    """A history record with an item of `size` characters before those of `record`."""
    item = b"\x0a" + varint(4) + b"junk" + b"\x82\x01" + varint(size + 2) + b'"' + b"x" * size + b'"'
    message = b"\x0a" + varint(len(item)) + item
    at = record.index(b"\x12") + 2
    return b"\x12" + varint(len(message) + len(record) - at) + message + record[at:]


def varint(n: int) -> bytes:
    return bytes([n & 0x7F | 0x80]) + varint(n >> 7) if n > 0x7F else bytes([n])


def test_an_offline_wandb_run_tells_name_devices_and_its_own_step(log, read_one):
    path = log(wandb_file(WANDB_RUN, WANDB_TIME, WANDB_SCORE), "wandb/offline-run-1/run-abc123.wandb")
    for where in (path, path.parents[1]):
        found = read_one(where)
        assert (found.rows.run, found.rows.benchmark, found.rows.n_samples) == ("my-run", "gsm8k", [4])
        # training/global_step is 1, while W&B's own count of log calls goes to 2.
        assert (found.rows.steps, found.rows.pass_rate) == ([2], [0.25])
        assert found.rows.compute == [pytest.approx(8 * 60 / 3600)]


def test_wandb_records_that_span_blocks_and_a_cut_end(log, read_one):
    big = wide(WANDB_TIME, 100_000)
    whole = wandb_file(WANDB_RUN, big, WANDB_SCORE, wide(WANDB_SCORE, 40_000))
    rows = read_one(log(whole, "a.wandb")).rows
    assert (rows.steps, rows.compute) == ([2], [pytest.approx(8 * 60 / 3600)])
    cut = read_one(log(whole[:-20_000], "b.wandb")).rows
    assert (cut.steps, cut.compute) == (rows.steps, rows.compute)
    damaged = bytearray(wandb_file(WANDB_RUN, WANDB_SCORE, WANDB_TIME))
    damaged[-1] ^= 1
    assert read_one(log(bytes(damaged), "c.wandb")).rows.unit == "steps"


def test_wandb_file_of_another_kind(log):
    with pytest.raises(InputError, match="is not an offline run of W&B"):
        read_logs([log(b"hello", "x.wandb")], "wandb")


def event(record: bytes, step: int | None = None, value: float | None = None) -> bytes:
    if step is not None:
        record = record.replace(b"\x10\x03", b"\x10" + bytes([step]), 1)
    if value is not None:
        record = record.replace(struct.pack("<f", 0.5), struct.pack("<f", value), 1)
    return struct.pack("<Q", len(record)) + b"\0\0\0\0" + record + b"\0\0\0\0"


@pytest.mark.parametrize("record", [TB_SIMPLE, TB_TENSOR], ids=["simple", "tensor"])
def test_tensorboard_reads_every_scalar_and_a_later_file_wins(log, read_one, record):
    log(b"".join(event(record, step, step / 32) for step in range(1, 21)), "tb/events.out.tfevents.100.host")
    last = b"".join(event(record, step, 0.75) for step in range(16, 19)) + event(record, 19)[:-9]
    folder = log(last, "tb/events.out.tfevents.200.host").parent
    found = read_one(folder)
    assert (found.rows.run, found.rows.steps) == ("tb", list(range(1, 19)))
    assert found.rows.pass_rate == pytest.approx([step / 32 for step in range(1, 16)] + [0.75] * 3)
    assert found.rows.attempts == [1] * 15 + [2] * 3


def test_tensorboard_folders_are_runs(log):
    for run, value in (("a", 0.25), ("b", 0.5)):
        folder = log(event(TB_SIMPLE, 1, value), f"logs/{run}/events.out.tfevents.1.host").parents[1]
    assert [(one.rows.run, one.rows.pass_rate) for one in read_logs([folder])] == [
        ("a", [0.25]),
        ("b", [0.5]),
    ]


def test_mlflow_folder_follows_the_time_of_the_values(log, read_one):
    run = "mlruns/1/abc"
    log("run_id: abc\n", f"{run}/meta.yaml")
    log("my-run", f"{run}/tags/mlflow.runName")
    log("4", f"{run}/params/trainer/n_gpus_per_node")
    log("2", f"{run}/params/trainer/nnodes")
    log("100000 0.25 1\n300000 0.5 2\n", f"{run}/metrics/val-core/gsm8k/acc/mean_at_1")
    path = log("100000 450.0 1\n300000 450.0 2\n500000 45", f"{run}/metrics/timing_s/step")
    rows = read_one(path.parents[5]).rows
    assert (rows.run, rows.benchmark, rows.pass_rate) == ("my-run", "gsm8k", [0.25, 0.5])
    assert rows.compute == [1.0, 2.0]
