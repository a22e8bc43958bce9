"""Statistics derive from raw records, whatever their order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics import Latency, latency, median_of
from orchestrator.analysis.statistics.summary import _natural
from orchestrator.figures import times_of
from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Setup
from orchestrator.model.record import DoubtCode, Outcome, Record

from .records import cell, record, summarised

TIMES = st.floats(min_value=0.001, max_value=1e5, allow_nan=False)
BLOCKS = st.lists(st.lists(TIMES, min_size=1, max_size=6), min_size=1, max_size=6)


def latency_of(blocks: list[list[float]]) -> Latency | None:
    return latency([times for block in blocks if (times := times_of(block)) is not None])


@settings(deadline=None)
@given(BLOCKS)
def test_latency_is_ordered_and_within_the_samples(blocks: list[list[float]]) -> None:
    found = latency_of(blocks)
    assert found is not None
    samples = [sample for block in blocks for sample in block]
    assert found.min_ms == min(samples)
    assert found.samples == len(samples)
    if found.median_ms is None or found.p90_ms is None or found.p99_ms is None:
        assert found.unresolved and (found.p90_ms, found.p99_ms, found.interval_ms) == (None, None, None)
        return
    assert min(samples) <= found.median_ms <= max(samples)
    assert found.p90_ms <= found.p99_ms <= max(samples)
    assert found.median_ms == median(median(block) for block in blocks)
    assert (found.interval_ms is None) == (len(blocks) < 3)
    if found.interval_ms:
        assert found.interval_ms.low <= found.median_ms <= found.interval_ms.high


@settings(deadline=None, max_examples=40)
@given(BLOCKS, st.floats(min_value=0.01, max_value=100))
def test_latency_scales_with_the_clock(blocks: list[list[float]], factor: float) -> None:
    once, scaled = latency_of(blocks), latency_of([[sample * factor for sample in block] for block in blocks])
    assert once is not None
    assert scaled is not None
    if once.unresolved is None and scaled.unresolved is None:  # at the edge rounding may decide
        assert once.median_ms and scaled.median_ms == pytest.approx(once.median_ms * factor, rel=1e-6, abs=1e-6)
    for name in ("min_ms", "mad_ms"):
        assert getattr(scaled, name) == pytest.approx(getattr(once, name) * factor, rel=1e-6, abs=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(12)))
def test_order_of_records_does_not_matter(order: list[int]) -> None:
    cells = [cell(), cell(Api.VULKAN, Precision.FP16)]
    records = [
        record(c, [1.0 + block + i, 2.0], block=block, serial=serial, token=10 * block + i + 1)
        for i, c in enumerate(cells)
        for block in range(3)
        for serial in ("a", "b")
    ]
    known = {c.cell_id: c for c in cells}
    assert summarised([records[i] for i in order], known) == summarised(records, known)


def test_a_summary_counts_only_timed_samples_of_good_blocks() -> None:
    one = cell()
    records = [
        record(one, [4.0, 5.0, 6.0], block=0),
        record(one, [1000.0], block=1, outcome=Outcome.INVALID, reasons=("too hot",)),
        record(one, [], block=2, outcome=Outcome.FAILED),
    ]
    (summary,) = summarised(records, {one.cell_id: one})
    assert summary.latency is not None
    assert (summary.latency.median_ms, summary.latency.samples, summary.latency.blocks) == (5.0, 3, 1)
    assert summary.outcomes == {Outcome.OK: 1, Outcome.INVALID: 1, Outcome.FAILED: 1}
    assert summary.blocks == 3
    assert summary.reasons == ("too hot",)
    assert [use.total_ms for use in summary.setup] == [42.0]
    assert summary.layers[0].median_ms == 3.0
    assert summary.memory is not None
    assert summary.memory.device_peak_bytes == 2**20


def test_the_newest_attempt_of_a_job_counts() -> None:
    one = cell()
    lost = record(one, [9.0], token=1, outcome=Outcome.LOST)
    good = record(one, [5.0], token=2)
    for records in ([lost, good], [good, lost]):
        (summary,) = summarised(records, {one.cell_id: one})
        assert summary.outcomes == {Outcome.OK: 1}
        assert summary.latency is not None
        assert summary.latency.median_ms == 5.0


def test_a_cell_without_a_good_block_has_no_latency() -> None:
    one = cell()
    (summary,) = summarised([record(one, [1.0], outcome=Outcome.KILLED)], {one.cell_id: one})
    assert summary.latency is None
    assert summary.setup == ()


@pytest.mark.parametrize("doubt", [lambda i: "", lambda i: f"block {i}"])
def test_doubts_are_united(doubt: Callable[[int], str]) -> None:
    one = cell()
    (summary,) = summarised([record(one, [1.0], block=i, detail=doubt(i)) for i in range(3)], {one.cell_id: one})
    told = [d.detail for d in summary.doubts if d.code is DoubtCode.VIRTUAL_DEVICE]
    assert told == list(dict.fromkeys(doubt(i) for i in range(3)))


def test_values_of_an_axis_are_in_their_own_order() -> None:
    labels = ["a granularity=12", "a granularity=4", "b granularity=100", "b granularity=20", "a"]
    assert sorted(labels, key=_natural) == [
        "a", "a granularity=4", "a granularity=12", "b granularity=20", "b granularity=100",
    ]  # fmt: skip


def _setup(of: Record, steps: dict[str, float], *, cached: bool = False) -> Record:
    events = tuple(
        Setup(seq=i, t_ns=0, step=step, start_ns=0, duration_ns=int(ms * 1e6), cached=cached and step == "build")  # type: ignore[arg-type]
        for i, (step, ms) in enumerate(steps.items())
    )
    return of.model_copy(update={"setup": events})


def test_set_up_is_told_by_the_steps_of_the_study_for_each_kind_of_start() -> None:
    one = cell()
    steps = {
        "slot": 1000.0, "library": 1.0, "discovery": 2.0, "context": 3.0, "build": 40.0, "pipeline": 5.0, "cache": 6.0,
        "allocate": 7.0, "descriptors": 8.0, "upload": 9.0, "input": 10.0, "readback": 11.0,
    }  # fmt: skip
    slow, fast = _setup(record(one, [2.0]), steps), {**steps, "build": 4.0, "cache": 0.0}
    records = [slow, *(_setup(record(one, [2.0], block=i), fast, cached=True) for i in (1, 2))]
    (summary,) = summarised(records, {one.cell_id: one})
    warm, cached = summary.setup
    assert (warm.kind, warm.blocks, cached.kind, cached.blocks) == ("warm", 1, "cached", 2)
    assert warm.steps_ms == {
        "discovery": 3.0, "context": 3.0, "program build": 46.0, "pipelines": 5.0, "buffers": 7.0, "descriptors": 8.0,
        "transfers": 19.0,
    }  # fmt: skip
    assert (warm.total_ms, warm.first_ms, warm.readback_ms, warm.first_result_ms) == (91.0, 20.0, 11.0, 122.0)
    assert (cached.total_ms, cached.first_result_ms) == (49.0, 80.0)
    assert [use.kind for use in summarised([slow], {one.cell_id: one}, mode="cold")[0].setup] == ["cold"]


def test_the_first_dispatch_of_a_stream_cannot_be_told_apart() -> None:
    one = cell()
    single = _setup(record(one, [2.0]), {"build": 4.0})
    stream = single.model_copy(
        update={"samples": tuple(s.model_copy(update={"inferences": 8}) for s in single.samples)}
    )
    ((whole,), (part,)) = (summarised([each], {one.cell_id: one})[0].setup for each in (single, stream))
    assert part.first_ms is None and whole.first_ms is not None and whole.total_ms == part.total_ms
    assert whole.first_result_ms - part.first_result_ms == pytest.approx(whole.first_ms)


def test_the_axis_says_which_start_is_cold_and_a_processor_compiles_nothing() -> None:
    asked = cell().model_copy(update={"options": {"setup": "cold"}})
    (use,) = summarised([record(asked, [2.0])], {asked.cell_id: asked})[0].setup
    assert (use.kind, use.steps_ms["program build"]) == ("cold", 40.0)
    plain = cell(Api.CPU)
    assert [use.kind for use in summarised([record(plain, [2.0])], {plain.cell_id: plain})[0].setup] == ["none"]
    bare = record(plain, [2.0]).model_copy(update={"setup": ()})
    assert summarised([bare], {plain.cell_id: plain})[0].setup == ()


@pytest.mark.parametrize("blocks", range(3, 6))
def test_nothing_counted_is_told_and_now_and_then_something_is_not(blocks: int, seed: int) -> None:
    told = median_of([0.0] * blocks)
    assert (told.value, told.interval and told.interval.high, told.unresolved) == (0.0, 0.0, None)
    few = [0.0] * (blocks - 1)
    few.insert(Random(f"{seed}:{blocks}").randrange(blocks), 1.0)
    assert median_of(few).value is None, "the range of so few blocks is from nothing to something"
