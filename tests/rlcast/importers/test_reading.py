"""What holds for every format: growing logs, detection, attempts, broken input."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlcast.errors import InputError
from rlcast.importers import LogReader, Options, read_logs


def verl(step: int, score: float | None = None) -> str:
    scored = f"val/test_score/m:{score} - " if score is not None else ""
    return f"step:{step} - {scored}timing_s/step:3600\n"


TEXT = "".join(verl(step, step / 100 if step % 5 == 0 else None) for step in range(1, 21))


def test_a_growing_log_gives_each_point_once_when_its_step_is_complete():
    reader = LogReader("verl", Options(devices=1))
    assert reader.feed([verl(4), verl(5, 0.05)]) == []  # step 5 may still get another line
    [point] = reader.feed([verl(6)])
    assert (point.step, point.pass_rate, point.compute["gpu_hours"]) == (5, 0.05, 2.0)
    assert reader.feed([verl(7), verl(10, 0.1)]) == []
    assert [p.step for p in reader.finish()] == [10]
    assert reader.finish() == []


@given(cuts=st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_pieces_cut_anywhere_give_what_the_whole_file_gives(cuts):
    reader, points = LogReader("verl", Options(devices=1)), []
    edges = [0, *sorted(cuts), len(TEXT)]
    for start, end in itertools.pairwise(edges):
        points += reader.feed_bytes(TEXT[start:end].encode())
    points += reader.finish()
    assert [(p.step, p.pass_rate, p.compute["gpu_hours"]) for p in points] == [
        (step, step / 100, float(step)) for step in (5, 10, 15, 20)
    ]


def test_a_restart_is_followed_live():
    reader = LogReader("verl", Options(devices=1))
    first = reader.feed([verl(1), verl(2, 0.2), verl(3)])
    second = [*reader.feed([verl(2, 0.4), verl(3)]), *reader.finish()]
    assert [(p.step, p.pass_rate, p.attempt) for p in first + second] == [(2, 0.2, 1), (2, 0.4, 2)]


def test_packed_logs_also_cut_ones(log, read_one):
    packed = gzip.compress(TEXT.encode())
    assert read_one(log(packed, "a.log.gz"), devices=1).rows.steps == [5, 10, 15, 20]
    assert read_one(log(packed[:-9], "b.log.gz"), devices=1).rows.steps[:1] == [5]


def test_files_in_order_are_attempts_of_one_named_run(log, read_one):
    a, b = log(verl(1) + verl(2, 0.2) + verl(3, 0.9), "a.log"), log(verl(3, 0.3) + verl(4, 0.4), "b.log")
    rows = read_one(a, b, name="both", devices=1).rows
    assert (rows.run, rows.steps, rows.pass_rate) == ("both", [2, 3, 4], [0.2, 0.3, 0.4])


def test_files_of_one_name_keep_apart(log):
    paths = [
        log(TEXT, "one/train.log"),
        log(TEXT, "two/train.log"),
        log(TEXT, "x/r.log"),
        log(TEXT, "y/r.log"),
    ]
    assert [one.rows.run for one in read_logs(paths)] == ["one", "two", "r", "y-r"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x00\x01\x02", "binary file of no known kind"),
        (b"once upon a time\nthere was a log\n", "cannot tell what it is; pass --format with one of csv"),
        (b'{"a": [1,\n 2]}', "cannot tell what it is"),
        (b'{"step": 1, "loss": 0.5}\n', r"no held-out score found; name its key with --y \(keys: .*loss"),
        (b"step:1 - actor/loss:0.5\n", "no held-out score"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(log, data, words):
    with pytest.raises(InputError, match=words) as caught:
        read_logs([log(data, "some.log")])
    assert "\n" not in str(caught.value)


def test_other_refusals(log, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_logs([tmp_path / "absent.log"])
    with pytest.raises(InputError, match="no log that is known in this folder"):
        read_logs([tmp_path])
    with pytest.raises(InputError, match="--format 'verll' is not known; use auto or one of"):
        read_logs([log(TEXT)], "verll")
    with pytest.raises(InputError, match="holds no row of a slime console"):
        read_logs([log(TEXT)], "slime")
    with pytest.raises(InputError, match="does not grow by lines"):
        LogReader("parquet")
    with pytest.raises(InputError, match=r"has no 'acc' \(--y\); keys: "):
        read_logs([log(TEXT)], options=Options(y="acc"))
    with pytest.raises(InputError, match=r"has no 'hours' \(--x\); keys: "):
        read_logs([log(TEXT)], options=Options(x="hours"))
    with pytest.raises(InputError, match=r"'val/acc' \(--y\) is never a finite number"):
        read_logs([log("step:1 - val/acc:nan - lr:0.1\n")], options=Options(y="val/acc"))


def test_a_clock_leaves_pauses_out(log, read_one):
    times = [0, 100, 200, 300, 400, 500, 600, 90_600, 90_700]
    text = "".join(
        json.dumps({"step": i, "timestamp": 1e9 + t, "accuracy": 0.1}) + "\n" for i, t in enumerate(times)
    )
    found = read_one(log(text, "clock.jsonl"), devices=36)
    assert found.rows.compute[6:] == pytest.approx([6.0, 7.0, 8.0])
    assert "1 pause left out" in dict(found.report.facts)["compute"]


def test_memory_does_not_grow_with_the_file(log, read_one):
    noise = "INFO something happened that is of no interest to anybody at all\n" * 50
    path = log("".join(noise + verl(i, 0.5 if i % 100 == 0 else None) for i in range(1, 1001)))
    assert path.stat().st_size > 3_000_000
    tracemalloc.start()
    read_one(path, devices=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_step_that_is_scored_again_is_a_later_attempt_of_that_step(log, read_one):
    found = read_one(log(verl(1, 0.1) + verl(2, 0.2) + verl(2, 0.3) + verl(3, 0.4)), devices=1)
    assert (found.rows.pass_rate, found.rows.attempts) == ([0.1, 0.3, 0.4], [1, 2, 1])
    assert found.report.notes == ["1 step with two scores: the later one was taken"]
