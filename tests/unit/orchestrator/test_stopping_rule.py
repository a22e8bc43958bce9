"""The choice whether a cell gets more blocks: by the width of its interval, up to a cap, never for nothing."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.statistics import median_interval, relative_half_width
from orchestrator.analysis.stopping_rule import Need, decide, energy_values
from orchestrator.figures import BlockFigures, Energy, Value, times_of
from orchestrator.model.device import Source
from orchestrator.model.experiment import LEAST_BLOCKS, Sampling
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.record import Outcome

SAMPLING = Sampling(blocks=3, target_interval=0.05, max_blocks=14)
GAUGE, METER = PowerSource.GAUGE, PowerSource.METER


def block(outcome: Outcome = Outcome.OK, **more: Any) -> BlockFigures:
    made = {"experiment_id": "e", "job_id": "j", "attempt": 1, "token": 1, "cell_id": "c", "block": 0, "worker": "w"}
    return BlockFigures(**made, serial="A", source=Source.PHONE, started_at=0, ended_at=1, outcome=outcome, **more)


def blocks(*values: float, energy: dict[PowerSource, list[float]] | None = None) -> list[BlockFigures]:
    """Return blocks, each with the next energy that is left, one kind after another."""
    joules = [(source, value) for source, found in (energy or {}).items() for value in found]
    found = [_energy(*joules[i]) if i < len(joules) else None for i in range(len(values))]
    return [block(times=times_of([value]), energy=used) for value, used in zip(values, found, strict=True)]


def _energy(source: PowerSource, joules: float) -> Energy:
    value = Value(value=joules, std=0.0)
    return Energy(
        source=source, scope=Scope.DEVICE, name="x", absolute=True, gain_uncertainty=0.0, load_s=1.0, inferences=1,
        per_inference_j=value, load_power_w=value,
    )  # fmt: skip


BAD = block(Outcome.FAILED)


@given(st.lists(st.floats(10, 11) | st.floats(1, 100), max_size=12), st.integers(0, 4))
def test_more_exactly_while_the_interval_is_wide_and_the_cap_not_reached(values: list[float], bad: int) -> None:
    made = len(values) + bad
    found = decide(SAMPLING, [*blocks(*values), *[BAD] * bad], made)
    share = relative_half_width(values, watched=True)
    if len(values) >= LEAST_BLOCKS and share is not None and share <= 0.05:
        assert found.need is Need.TARGET_MET
    elif not values and made >= 3:
        assert found.need is Need.NO_GOOD_BLOCK
    else:
        assert found.need is (Need.MAX_BLOCKS if made >= 14 else Need.MORE)
    assert (found.blocks, found.good, found.latency) == (made, len(values), share)


def test_blocks_without_a_record_count_towards_the_cap() -> None:
    assert decide(SAMPLING, blocks(1.0, 2.0), made=13).need is Need.MORE
    assert decide(SAMPLING, blocks(1.0, 2.0), made=14).need is Need.MAX_BLOCKS


def test_energy_must_be_as_precise_where_it_is_measured() -> None:
    calm, wild, times = [2.0, 2.02] * 6, [1.0, 3.0] * 6, [10] * 12
    assert decide(SAMPLING, blocks(*times, energy={GAUGE: calm}), 12).need is Need.TARGET_MET
    found = decide(SAMPLING, blocks(*times, energy={GAUGE: wild}), 12)
    assert found.need is Need.MORE and found.energy == pytest.approx(0.5)
    assert decide(SAMPLING, blocks(*times, energy={GAUGE: calm[:11]}), 12).need is Need.MORE


def test_kinds_of_energy_are_never_mixed() -> None:
    found = blocks(*[10] * 14, energy={METER: [2.0] * 12, GAUGE: [9.0, 5.0]})
    assert energy_values(found) == [2.0] * 12
    assert decide(SAMPLING, found, 14).need is Need.TARGET_MET


def test_energy_of_a_phone_is_not_mixed_with_that_of_a_virtual_one() -> None:
    real = blocks(10, 10, 10, energy={GAUGE: [2.0, 2.0, 2.0]})
    made_up = [
        each.model_copy(update={"source": Source.VIRTUAL}) for each in blocks(10, 10, energy={GAUGE: [9.0, 5.0]})
    ]
    assert energy_values([*made_up, *real]) == [2.0] * 3


@pytest.mark.parametrize(
    ("values", "made", "text"),
    [
        ((10, 10.2) * 6, 12, "target met after 12 blocks: ±1.0% (latency), wanted ±5.0%"),
        ((1, 2, 3), 14, "stopped at the cap of 14 blocks: ±138.2% (latency), wanted ±5.0%"),
        ((), 3, "stopped: none of 3 blocks went well: no interval, wanted ±5.0%"),
        ((1,), 3, "goes on: no interval, wanted ±5.0%"),
    ],
)
def test_a_decision_tells_why(values: tuple[float, ...], made: int, text: str) -> None:
    assert decide(SAMPLING, blocks(*values), made).text == text


LOW, HIGH = [10 + i / 1000 for i in range(30)], [11.5 + i / 1000 for i in range(30)]
EVEN = Sampling(blocks=3, target_interval=0.02, max_blocks=40)


@pytest.mark.parametrize(
    ("low", "high", "met"), [(12, 0, True), (12, 2, False), (22, 8, False), (18, 1, True), (28, 2, True)]
)
def test_blocks_on_two_levels_meet_no_target_unless_nearly_all_lie_on_one(low: int, high: int, met: bool) -> None:
    """The median of all may lie between the levels, where no block is."""
    for found in ([*LOW[:low], *HIGH[:high]], [*HIGH[:low], *LOW[:high]]):
        assert (decide(EVEN, blocks(*found[::2], *found[1::2]), low + high).need is Need.TARGET_MET) == met


def test_a_cell_is_measured_until_it_is_precise(seed: int) -> None:
    """Noise of 3 %: more than ten blocks, fewer than the cap; the interval holds the truth as often as it says."""
    import numpy as np

    sampling = Sampling(blocks=3, target_interval=0.03, max_blocks=100)
    generator = np.random.default_rng(seed)
    needed, covered = [], []
    for _ in range(100):
        values = list(generator.normal(10, 0.3, 3))
        while decide(sampling, blocks(*values), len(values)).need is Need.MORE:
            values.append(float(generator.normal(10, 0.3)))
        assert decide(sampling, blocks(*values), len(values)).need is Need.TARGET_MET
        needed.append(len(values))
        interval = median_interval(values, watched=True)
        covered.append(interval is not None and interval.low <= 10 <= interval.high)
    assert 11 <= median(needed) <= 25 and sum(covered) >= 92, "99.5 % are held"
