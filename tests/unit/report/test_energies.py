"""Energy of a cell over its blocks: the median, its two intervals, and sources that never mix."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import pytest

from orchestrator.analysis.statistics import EnergyUse, energy_uses
from orchestrator.analysis.stopping_rule import energy_values
from orchestrator.model.power import PowerSeries, PowerSource, Scope
from orchestrator.model.record import DoubtCode, Outcome, Record

from .records import cell, figures, powered, record, summarised

LOAD_S, PER_BLOCK = 30.0, 4
CELLS = {cell().cell_id: cell()}


def uses(records: Sequence[Record]) -> tuple[EnergyUse, ...]:
    return energy_uses(figures(records, CELLS))


def block(number: int, load_w: float = 3.0, **more: object) -> Record:
    timed = [5.0] * PER_BLOCK
    return powered(record(cell(), timed, block=number, token=number + 1, **more), 1.0, load_w)  # type: ignore[arg-type]


def metered(of: Record) -> Record:
    """The same block with an external meter beside the gauge, which says 1 W more."""
    times = tuple(reading.t_ns for reading in of.power)
    watts = tuple(-(r.current_ua or 0) * 4e-6 + 1.0 for r in of.power)
    meter = PowerSeries(source=PowerSource.METER, scope=Scope.DEVICE, name="m", t_ns=times, power_w=watts)
    return of.model_copy(update={"series": (meter,)})


def test_energy_per_inference_is_net_of_the_idle_power() -> None:
    (use,) = uses([block(i) for i in range(3)])
    assert (use.source, use.scope, use.blocks, use.inferences) == (PowerSource.GAUGE, Scope.DEVICE, 3, 3 * PER_BLOCK)
    assert use.per_inference_j and use.gross_per_inference_j and use.idle_power_w
    assert use.per_inference_j.value == pytest.approx(2.0 * LOAD_S / PER_BLOCK, rel=0.02)
    assert use.gross_per_inference_j.value == pytest.approx(3.0 * LOAD_S / PER_BLOCK, rel=0.02)
    assert use.load_power_w.value == pytest.approx(3.0, rel=0.01)
    assert use.idle_power_w.value == pytest.approx(1.0, rel=0.01)
    assert len(use.net_blocks_j) == 3 and use.absolute


def test_the_total_interval_holds_the_gain_and_the_inner_one_the_blocks() -> None:
    (use,) = uses([block(i, load_w) for i, load_w in enumerate((2.8, 3.0, 3.2, 3.1, 2.9))])
    figure = use.load_power_w
    assert figure.value and figure.total and figure.within
    assert figure.total.low < figure.within.low < figure.value < figure.within.high < figure.total.high
    assert figure.within.low == pytest.approx(2.66, abs=0.05) and figure.within.high == pytest.approx(3.35, abs=0.05)
    wide, within = (log(figure.value / interval.low) for interval in (figure.total, figure.within))
    assert wide**2 == pytest.approx(within**2 + (1.96 * 0.02) ** 2)


@pytest.mark.parametrize("blocks", [1, 2])
def test_few_blocks_still_have_the_interval_of_their_own_uncertainty(blocks: int) -> None:
    (use,) = uses([block(i) for i in range(blocks)])
    figure = use.per_inference_j
    assert figure and figure.value and figure.total and figure.total.low < figure.value < figure.total.high


def test_sources_are_kept_apart_and_that_of_most_blocks_comes_first() -> None:
    meter, gauge = uses([block(0), *(metered(block(i)) for i in (1, 2, 3))])
    assert [(each.source, each.blocks) for each in (meter, gauge)] == [(PowerSource.METER, 3), (PowerSource.GAUGE, 1)]
    assert meter.load_power_w.value == pytest.approx(4.0, rel=0.01)
    assert gauge.load_power_w.value == pytest.approx(3.0, rel=0.01)
    of_most = energy_values(figures([block(0), *(metered(block(i)) for i in (1, 2, 3))], CELLS))
    assert of_most == list(meter.net_blocks_j) and len(of_most) == 3


def test_a_summary_has_the_energy_of_its_good_blocks() -> None:
    without = record(cell(), [5.0], block=3).model_copy(update={"power": ()})
    records = [block(0), block(1), block(2, 9.0, outcome=Outcome.INVALID), without]
    (summary,) = summarised(records, {cell().cell_id: cell()})
    (use,) = summary.energy
    assert use.blocks == 2 and use.load_power_w.value == pytest.approx(3.0, rel=0.01)


def test_doubts_of_the_energy_are_told() -> None:
    assumed = powered(record(cell(), [5.0] * 4), 1.0, 3.0, calibrated=False)
    (summary,) = summarised([assumed], {cell().cell_id: cell()})
    assert DoubtCode.GAUGE_ASSUMED in {doubt.code for doubt in summary.doubts}


def test_without_power_there_is_no_energy() -> None:
    without = record(cell(), [5.0]).model_copy(update={"power": ()})
    assert uses([without]) == ()
    assert energy_values(figures([without], CELLS)) == []
