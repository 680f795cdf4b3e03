"""The event file between trainer and service: nothing skipped, whatever the moment of a crash."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rlcast.spool import Spool


def line(sequence: int, kind: str = "evaluation") -> bytes:
    return json.dumps({"sequence": sequence, "kind": kind, "data": {"step": sequence}}).encode() + b"\n"


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path):
    events = tmp_path / "events.jsonl"
    events.write_bytes(line(1) + line(2)[:-5])
    spool = Spool(events)
    assert [e.sequence for e in spool.pending()] == [1]
    events.write_bytes(line(1) + line(2))
    assert [e.sequence for e in spool.pending()] == [1, 2]


def test_a_new_reader_goes_on_behind_what_was_delivered(tmp_path: Path):
    events, delivered = tmp_path / "events.jsonl", tmp_path / "delivered.json"
    events.write_bytes(line(1) + line(2) + line(3))
    spool = Spool(events, delivered)
    spool.mark_delivered(spool.pending()[1])
    assert [e.sequence for e in Spool(events, delivered).pending()] == [3]


def test_a_damaged_note_of_delivery_means_sending_again(tmp_path: Path):
    events, delivered = tmp_path / "events.jsonl", tmp_path / "delivered.json"
    events.write_bytes(line(1))
    delivered.write_text('{"offset": ')
    assert [e.sequence for e in Spool(events, delivered).pending()] == [1]


def test_an_unreadable_line_is_reported_and_does_not_hide_the_next(tmp_path: Path):
    events = tmp_path / "events.jsonl"
    events.write_bytes(line(1) + b"\x00\xffgarbage\n" + line(2))
    assert [(e.sequence, e.kind) for e in Spool(events).pending()] == [
        (1, "evaluation"),
        (0, "unreadable"),
        (2, "evaluation"),
    ]


@settings(deadline=None, max_examples=60)
@given(
    cuts=st.lists(st.integers(0, 600), max_size=6),
    batch=st.integers(1, 4),
    crashes=st.sets(st.integers(0, 12)),
)
def test_every_event_arrives_in_order_for_any_writing_and_any_crash(tmp_path_factory, cuts, batch, crashes):
    """A writer that appends in arbitrary pieces, a reader that may crash before it notes a delivery."""
    folder = tmp_path_factory.mktemp("spool")
    events, delivered = folder / "events.jsonl", folder / "delivered.json"
    whole = b"".join(line(n) for n in range(1, 9))
    seen: list[int] = []
    turn = 0
    for end in [*sorted(cuts), len(whole)]:
        events.write_bytes(whole[:end])
        spool = Spool(events, delivered)
        while found := spool.pending(batch):
            seen += [e.sequence for e in found]
            turn += 1
            if turn in crashes:
                spool = Spool(events, delivered)  # crashed: the delivery was not noted
            else:
                spool.mark_delivered(found[-1])
    first_seen = list(dict.fromkeys(seen))
    assert first_seen == list(range(1, 9))
