"""The journal: whole lines only, validated, with the garbage as evidence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.event import Hello, Result
from workers.devices.agent_journal import MAX_LINE_BYTES, Garbage, Journal


def lines(count: int) -> bytes:
    hello = {"event": "hello", "seq": 0, "t_ns": 1, "agent_version": "1", "command": "run", "pid": 7, "abi": "x86_64"}
    sample = {"event": "sample", "phase": "timed", "duration_ns": 5}
    samples = [{**sample, "seq": i, "t_ns": i, "index": i - 1, "start_ns": i} for i in range(1, count)]
    events = [{**hello, "cores": 2, "page_bytes": 4096}, *samples]
    events.append({"event": "result", "seq": count, "t_ns": 99, "samples": count - 1, "run_ns": 9})
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@given(st.lists(st.integers(1, 400), max_size=20))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    content, journal = lines(6), Journal("p")
    for size in [*cuts, len(content)]:
        journal.feed(content[journal.offset : journal.offset + size])
    assert len(journal.events) == 7
    assert isinstance(journal.events[0], Hello) and isinstance(journal.events[-1], Result)
    assert journal.offset == len(content)


def test_half_a_line_waits() -> None:
    content, journal = lines(1), Journal("p")
    assert journal.feed(content[:40]) == []
    assert [type(e) for e in journal.feed(content[40:])] == [Hello, Result]


@pytest.mark.parametrize(
    "bad",
    [
        b"\n",
        b"segmentation fault\n",
        b'{"event": "sample"}\n',
        b'{"event": "hello", "seq": 0}\n',
        b"\xff\xfe\x00\n",
        b'{"event":"result","seq":7,"t_ns":1,"samples":1,"run_ns":1}\n',  # a gap
        b"x" * (MAX_LINE_BYTES + 1),
        b"y" * (MAX_LINE_BYTES + 1) + b"\n",
    ],
)
def test_garbage_ends_it_and_is_kept(bad: bytes) -> None:
    journal = Journal("phone-1")
    journal.feed(lines(3))
    with pytest.raises(Garbage) as caught:
        journal.feed(bad + b"what followed\n")
    assert caught.value.device == "phone-1"
    assert caught.value.evidence and all(len(line) <= 500 for line in caught.value.evidence)
    assert len(journal.events) == 4


def test_evidence_is_bounded() -> None:
    with pytest.raises(Garbage) as caught:
        Journal("p").feed(b"junk\n" * 200)
    assert len(caught.value.evidence) == 50
