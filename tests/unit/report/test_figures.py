"""The figures of a block: small, and enough for what statistics say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics import latency
from orchestrator.figures import BlockFigures, figures_of, mean_of, times_of
from orchestrator.figures.times import QUANTILES
from orchestrator.report import console, wording
from orchestrator.report.charts.drawn_blocks import MAX_BLOCKS, drawn_blocks
from orchestrator.report.html import render
from tests.widths import drawn

from . import everything
from .records import built, cell, experiment, figures, powered, record

TIMES = st.lists(st.floats(0.001, 1e5), min_size=1, max_size=120)


@given(TIMES)
def test_up_to_so_many_times_are_all_kept(times_ms: list[float]) -> None:
    found = times_of(times_ms)
    assert found is not None
    ordered = sorted(times_ms)
    if len(times_ms) <= QUANTILES:
        assert list(found.quantiles_ms) == ordered
    assert len(found.quantiles_ms) == min(len(times_ms), QUANTILES)


def test_a_quantile_is_the_middle_of_its_share() -> None:
    found = times_of([float(n) for n in reversed(range(10 * QUANTILES))])
    assert found is not None and found.quantiles_ms == tuple(10.0 * i + 5 for i in range(QUANTILES))


@given(TIMES)
def test_times_agree_with_numpy(times_ms: list[float]) -> None:
    found = times_of(times_ms)
    assert found is not None
    middle = float(np.median(times_ms))
    expected = {
        "median_ms": middle,
        "p90_ms": np.percentile(times_ms, 90),
        "p99_ms": np.percentile(times_ms, 99),
        "min_ms": min(times_ms),
        "mean_ms": np.mean(times_ms),
        "mad_ms": np.median(np.abs(np.asarray(times_ms) - middle)),
    }
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if len(times_ms) > 1:
        assert found.variance == pytest.approx(np.var(times_ms, ddof=1), rel=1e-6, abs=1e-9)
    fifth = len(times_ms) // 5
    assert (found.fifths_ms is None) == (len(times_ms) < 10)
    if found.fifths_ms:
        assert found.fifths_ms == pytest.approx((np.median(times_ms[:fifth]), np.median(times_ms[-fifth:])))


def test_percentiles_of_a_cell_are_those_of_its_median_block() -> None:
    """One slow block of three has most samples, and does not make the cell slow."""
    blocks = [times_of([1.9] * 10), times_of([2.0] * 10), times_of([2.2] * 1000)]
    found = latency([block for block in blocks if block])
    assert found is not None
    assert (found.median_ms, found.p90_ms, found.p99_ms, found.min_ms, found.samples) == (2.0, 2.0, 2.0, 1.9, 1020)


def test_means_of_several_inferences_have_no_percentiles(seed: int) -> None:
    """Whatever is grouped by whom: medians are near those of single ones, inferences are counted, percentiles are not
    told, neither where only some blocks are means."""
    draw = np.random.default_rng(seed)
    count, runs = int(draw.integers(5, 50)), int(draw.integers(2, 40))
    groups = draw.normal(5, 0.01, (count, runs))
    single = record(cell(), list(groups.ravel()))
    means = record(cell(), list(groups.mean(axis=1)))
    samples = [each.model_copy(update={"mean_of": runs if each.phase == "timed" else 1}) for each in means.samples]
    made = [figures_of(each, cell()) for each in (single, means.model_copy(update={"samples": tuple(samples)}))]
    one, of = made[0].times, made[1].times
    assert one and of and one.p99_ms and (of.p90_ms, of.p99_ms) == (None, None)
    assert made[0].inferences == made[1].inferences == count * runs
    assert of.median_ms == pytest.approx(one.median_ms, abs=0.05)
    found = latency([one, of])
    assert found and found.median_ms and (found.p90_ms, found.p99_ms) == (None, None)


def test_whole_milliseconds_are_told() -> None:
    assert mean_of([5.0, 6.0]).whole and not mean_of([5.0, 6.5]).whole


def test_figures_come_back_as_they_were_and_are_small() -> None:
    times = list(np.random.default_rng(1).normal(5, 0.1, 2000))
    made = figures_of(powered(record(cell(), times), 1.0, 3.0), cell())
    text = made.model_dump_json(exclude_defaults=True)
    assert BlockFigures.model_validate_json(text) == made
    assert made.times is not None and made.times.count == 2000 and len(text) < 4000


def test_few_blocks_are_all_drawn_and_of_many_whole_rounds() -> None:
    whole = everything.content(blocks=1)
    assert sorted(drawn_blocks(whole.blocks)) == sorted(record.job_id for record in whole.records)
    cells = {one.cell_id: one for one in everything.CELLS}
    many = [record(one, [1.0], block=block) for block in range(400) for one in everything.CELLS]
    chosen = set(drawn_blocks(figures(many, cells)))
    kept = [each for each in many if each.job_id in chosen]
    rounds = {each.block for each in kept}
    assert MAX_BLOCKS - 3 <= len(kept) == 3 * len(rounds) <= MAX_BLOCKS and {0, 399} <= rounds


@given(st.lists(st.booleans(), min_size=5, max_size=9), st.integers(0, 4))
@settings(max_examples=5, deadline=None)
def test_a_clock_too_coarse_tells_no_time(coarse: list[bool], place: int) -> None:
    """Blocks some of which have a sample that took no time: they count for nothing, in no output."""
    of, times = cell(), [3.0, 3.1, 3.2, 3.3, 3.4]
    records = [
        record(of, [0.0 if bad and i == place else ms for i, ms in enumerate(times)], block=block, token=block + 1)
        for block, bad in enumerate(coarse)
    ]
    whole = built("e-1", experiment(), cells={of.cell_id: of}, records=records, outcomes={"ok": len(records)}, now=1e9)
    found, well = whole.summaries[0].latency, coarse.count(False)
    assert (found.median_ms, found.blocks) == (3.2, well) if found else not well
    assert wording.ms(3.2) in (page := render(whole) + drawn(console.render(whole), 320)) or not well
    assert "opencl" in page
