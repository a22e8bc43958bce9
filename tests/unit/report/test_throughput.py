"""Streams have a throughput and no latency; neither is ever shown as the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.statistics import Summary, throughput
from orchestrator.analysis.stopping_rule import decide
from orchestrator.figures.brief import brief_of
from orchestrator.metrics.result_families import ResultLabels, result_families
from orchestrator.model.device import Api
from orchestrator.model.experiment import Sampling
from orchestrator.model.job import Cell
from orchestrator.model.record import Record
from orchestrator.report import html
from orchestrator.report.sections import sections

from .records import built, cell, experiment, figures, record, summarised


def stream_cell(**options: int | str | bool) -> Cell:
    return cell().model_copy(update={"options": options})


def stream(of: Cell, timed_ms: Sequence[float], inferences: int, **more: Any) -> Record:
    """A block whose samples are streams."""
    made = record(of, timed_ms, **more)
    samples = tuple(sample.model_copy(update={"inferences": inferences}) for sample in made.samples)
    return made.model_copy(update={"samples": samples})


def summary_of(of: Cell, records: Sequence[Record]) -> Summary:
    (found,) = summarised(records, {of.cell_id: of})
    return found


def test_frames_per_second_of_a_stream(seed: int) -> None:
    """All frames of a block over all its time, as a rate is defined; of blocks the median."""
    of, chance = stream_cell(frames=100, batch=4), np.random.default_rng(seed)
    blocks = [np.round(chance.uniform(480, 520, count)).tolist() for count in chance.integers(1, 6, 3)]
    records = [stream(of, times, 25, block=i) for i, times in enumerate(blocks)]
    found = summary_of(of, records)
    assert found.latency is None and found.throughput is not None
    rates = [100 * len(times) / (sum(times) / 1000) for times in blocks]
    assert found.throughput.frames_per_s == pytest.approx(median(rates))
    assert found.throughput.slowest_per_s == pytest.approx(1e5 / max(map(max, blocks)))
    (values,) = {brief_of(block).values["throughput"] for block in figures(records[:1], {of.cell_id: of})}
    assert values == pytest.approx(rates[0]), "a comparison has the same"
    assert (found.throughput.frames, found.throughput.batch, found.throughput.blocks) == (100, 4, 3)
    assert found.throughput.ms_per_frame == pytest.approx(1000 / found.throughput.frames_per_s)
    interval = found.throughput.interval_per_s
    assert interval is not None and interval.low <= found.throughput.frames_per_s <= interval.high


def test_a_batch_has_a_latency_and_a_throughput() -> None:
    of = stream_cell(batch=16)
    found = summary_of(of, [record(of, [20.0, 20.0])])
    assert found.latency is not None and found.latency.median_ms == pytest.approx(20.0)
    assert found.throughput is not None and found.throughput.frames_per_s == pytest.approx(800.0)


def test_one_frame_after_the_other_has_a_latency_alone() -> None:
    of = cell()
    assert throughput(figures([record(of, [20.0])], {of.cell_id: of}), of) is None
    assert summary_of(of, [record(of, [20.0])]).throughput is None


def test_reports_show_frames_per_second_and_no_latency() -> None:
    of, plain = stream_cell(frames=50), cell()
    records = [stream(of, [100.0, 110.0], 50), record(plain, [7.0, 7.0])]
    content = built(
        "e-1", experiment(), cells={each.cell_id: each for each in (of, plain)}, records=records,
        outcomes={"ok": 2}, now=2000.0,
    )  # fmt: skip
    (section,) = [each for each in sections(content) if each.name == "throughput"]
    assert len(section.rows) == 1 and section.rows[0][2] == "476"
    page = html.render(content)
    assert "476 frames/s" in page and "a stream: see Throughput" in page
    assert not re.search(r">\s*10[45]", page)  # neither the time of a sample nor anything made of it


def test_blocks_are_added_for_the_throughput() -> None:
    asked = Sampling(frames=50, target_interval=0.05)
    of = stream_cell(frames=50)
    blocks = [stream(of, [ms], 50, block=i) for i, ms in enumerate((100.0, 101.0, 99.0, 100.0))]
    found = decide(asked, figures(blocks, {of.cell_id: of}), 4)
    assert "(throughput)" in found.text and "latency" not in found.text


def test_exported_series_keep_the_two_apart() -> None:
    def exported(of: Cell, records: list[Record]) -> dict[str, float]:
        (summary,) = summarised(records, {of.cell_id: of})
        families = result_families({ResultLabels("A", "n", "b", "p", "", "virtual", "e"): (summary, 1.0)})
        return {sample.name: sample.value for family in families for sample in family.samples if sample.value}

    of = stream_cell(frames=50, batch=2)
    streams = exported(of, [stream(of, [100.0], 25, block=i) for i in range(3)])
    assert "farm_results_latency_seconds" not in streams
    assert streams["farm_results_throughput_frames_per_second"] == pytest.approx(500.0)
    single = exported(cell(), [record(cell(), [3.0])])
    assert "farm_results_throughput_frames_per_second" not in single
    assert single["farm_results_latency_seconds"] == pytest.approx(0.003)


def test_a_stream_tells_its_gain_over_one_thread() -> None:
    def on_cpu(**options: int | str | bool) -> Cell:
        return cell(Api.CPU).model_copy(update={"options": {"frames": 10, **options}})

    one = on_cpu(algorithm="im2col", threads=1, pin_threads=False, pipeline="none")
    times = {
        one.cell_id: (one, 100.0, 1.0),
        **{
            each.cell_id: (each, ms, gain)
            for each, ms, gain in (
                (on_cpu(algorithm="im2col", threads=2, pipeline="balanced"), 50.0, 2.0),
                (on_cpu(algorithm="sequential", threads=1), 400.0, 0.25),
                (stream_cell(algorithm="im2col", frames=10), 80.0, 1.25),
                (on_cpu(algorithm="im2col", threads=2, fuse="none"), 50.0, None),
            )
        },
    }
    records = [stream(of, [ms], 10) for of, ms, _ in times.values()]
    found = summarised(records, {key: of for key, (of, _, _) in times.items()})
    gains = {s.cell_id: s.throughput and s.throughput.over_one_thread for s in found}
    assert gains == {key: gain and pytest.approx(gain) for key, (_, _, gain) in times.items()}


def test_the_gain_is_that_of_the_rounds() -> None:
    """The quotient of the medians that stand beside it, and within the interval of the paired rounds."""
    one, two = (
        cell(Api.CPU).model_copy(update={"options": {"frames": 10, "algorithm": "im2col", "threads": threads}})
        for threads in (1, 2)
    )
    times = ((one, (100.0, 104.0, 96.0)), (two, (50.0, 51.0, 49.0)))
    records = [stream(of, [ms], 10, block=number) for of, own in times for number, ms in enumerate(own)]
    found = {s.cell_id: s.throughput for s in summarised(records, {of.cell_id: of for of, _ in times})}
    gained, base = found[two.cell_id], found[one.cell_id]
    assert gained and base and gained.frames_per_s and base.frames_per_s and gained.over_one_thread_interval
    assert gained.over_one_thread == gained.frames_per_s / base.frames_per_s == pytest.approx(2.0)
    assert gained.over_one_thread_interval.low <= 2.0 <= gained.over_one_thread_interval.high
