"""Energy of a block by hand: what goes in is known, so is what must come out."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.energy import block_energy, check_comparable, integrate_j, origins, series_trace
from orchestrator.model.device import Source
from orchestrator.model.errors import StableError
from orchestrator.model.event import Power, Rails
from orchestrator.model.power import ClockMap, PowerSource, Scope
from orchestrator.model.record import DoubtCode, Record

from .blocks import EXACT, PHASES, S, load_between, phases, readings, record, samples, series
from .blocks import record as made

pytestmark = pytest.mark.unit
POWER = load_between(0.5, 2.5)


def doubts(of: Record) -> set[DoubtCode]:
    found = block_energy(of)
    assert found
    return {doubt.code for doubt in found.doubts}


def test_gross_net_and_per_inference() -> None:
    found = block_energy(record(readings(POWER)))
    assert found and found.net_j and found.per_inference_j and found.gross_per_inference_j and found.idle_power_w
    assert (found.source, found.scope, found.inferences) == (PowerSource.GAUGE, Scope.DEVICE, 400)
    assert found.load_s == pytest.approx(40)
    assert found.gross_j.value == pytest.approx(100, rel=1e-6)
    assert found.net_j.value == pytest.approx(80, rel=1e-6)
    assert found.per_inference_j.value == pytest.approx(0.2, rel=1e-6)
    assert found.gross_per_inference_j.value == pytest.approx(0.25, rel=1e-6)
    assert found.load_power_w.value == pytest.approx(2.5, rel=1e-6)
    assert found.idle_power_w.value == pytest.approx(0.5, rel=1e-6)
    assert found.idle_change_w == pytest.approx(0, abs=1e-6)


def test_idle_power_is_interpolated_in_time() -> None:
    """Idle rises in a line from 0.4 W at the first rest's centre (40 s) to 0.6 W at the second's (150 s); the load's
    centre is at 100 s."""

    def power(t_s: float) -> float:
        return 0.4 + 0.2 * (t_s - 40) / 110 + (2.0 if 70 <= t_s < 120 else 0.0)

    found = block_energy(record(readings(power)))
    assert found and found.idle_power_w and found.net_j and found.idle_change_w
    assert found.idle_power_w.value == pytest.approx(0.4 + 0.2 * 60 / 110, abs=1e-3)
    assert found.idle_change_w == pytest.approx(0.2, abs=2e-3)
    assert found.net_j.value == pytest.approx(80, rel=1e-3)
    assert found.net_j.std >= 40 * 0.19 / 12**0.5, "a drifting rest makes the net energy uncertain"


def test_slow_gauge_does_not_carry_the_rest_into_the_load() -> None:
    """The gauge shows the load up to 2 s after it began: straight integration misses a part, the phase's own readings
    do not. There is no warm-up here, which would hide it."""
    times = {**PHASES, "idle_before": (10.0, 69.0), "load": (70.0, 120.0)}
    del times["warmup"]
    slow = record(
        readings(POWER, refresh_s=2.9),
        phases=phases(times),
        gauge=EXACT.model_copy(update={"refresh_ns": 29 * S // 10}),
    )
    found, (gauge,) = block_energy(slow), origins(slow)
    assert found
    assert found.gross_j.value == pytest.approx(125, rel=1e-4)
    straight = integrate_j(gauge.trace, 70, 120)
    assert straight.value < 125 - 2
    assert straight.low < 125 < straight.high, "but it knows of its edges"


def test_gauge_in_mA_with_inverted_sign() -> None:
    gauge = EXACT.model_copy(update={"ampere_per_unit": 1e-3, "discharging_sign": 1})
    found = block_energy(record(readings(POWER, ampere_per_unit=1e-3, sign=1), gauge=gauge))
    assert found and found.net_j
    assert found.net_j.value == pytest.approx(80, rel=1e-6)


def test_without_calibration_the_sign_is_taken_from_the_status_and_doubted() -> None:
    assumed = record(readings(POWER, sign=1), gauge=None)
    found = block_energy(assumed)
    assert found and found.gross_j.value == pytest.approx(100, rel=2e-3)
    assert {DoubtCode.GAUGE_ASSUMED, DoubtCode.RELATIVE_ENERGY} <= doubts(assumed)
    assert not found.absolute and found.gain_uncertainty == 0.05


def test_gain_is_in_the_interval_and_not_in_the_one_within_the_device() -> None:
    gauge = EXACT.model_copy(update={"gain_uncertainty": 0.03, "noise_a": 0.001, "refresh_ns": 87_300_000})
    found = block_energy(record(readings(POWER, period_s=0.0873, refresh_s=0.0873), gauge=gauge))
    assert found and found.per_inference_j and found.within_per_inference_j
    assert found.per_inference_j.std == pytest.approx(0.03 * 0.2, rel=0.01)
    assert 0 < found.within_per_inference_j.std < 0.1 * found.per_inference_j.std
    assert found.within_per_inference_j.value == found.per_inference_j.value


def test_without_rests_there_is_no_net_energy() -> None:
    found = block_energy(record(readings(POWER), phases=phases({"load": PHASES["load"]})))
    assert found and found.gross_j.value == pytest.approx(100, rel=1e-6)
    assert found.net_j is found.per_inference_j is found.idle_power_w is found.idle_change_w is None


def test_without_phases_the_load_is_that_of_the_timed_samples() -> None:
    found = block_energy(record(readings(POWER), phases=()))
    assert found and found.load_s == pytest.approx(40) and found.inferences == 400


def test_only_inferences_inside_the_load_count() -> None:
    found = block_energy(record(readings(POWER), samples=samples(600)))
    assert found and found.inferences == 400


def test_a_source_that_the_record_lacks_is_none() -> None:
    measured = record(readings(POWER))
    assert block_energy(measured, PowerSource.METER) is None
    assert block_energy(record()) is None
    assert block_energy(record(readings(POWER, current_ua=None))) is None
    assert block_energy(record(readings(POWER, end_s=100.0))) is None, "the gauge was read for half of the load only"
    assert series_trace(measured, PowerSource.NVML) is None


def test_a_meter_comes_before_the_gauge_and_sources_do_not_mix() -> None:
    both = record(readings(POWER), series=(series(load_between(0.6, 2.6)),))
    by_meter, by_gauge = block_energy(both), block_energy(both, PowerSource.GAUGE)
    assert by_meter and by_gauge and by_meter.net_j and by_meter.absolute
    assert by_meter.source is PowerSource.METER and by_meter.charge is None
    assert by_meter.gross_j.value == pytest.approx(104, rel=1e-6)
    assert by_meter.net_j.value == pytest.approx(80, rel=1e-6)
    with pytest.raises(StableError, match=r"gauge \(device\) and meter \(device\)"):
        check_comparable([by_meter, by_gauge])
    assert check_comparable([by_gauge, by_gauge]) == (PowerSource.GAUGE, Scope.DEVICE)
    assert check_comparable([]) is None


def test_energy_counter_counts_its_steps() -> None:
    """Means over 0.7 s, which do not divide the phases."""
    t_s = [0.7 * index for index in range(270)]
    means = [(POWER_J(t) - POWER_J(t - 0.7)) / 0.7 for t in t_s]
    counter = series(
        POWER, source=PowerSource.RAPL, scope=Scope.PACKAGE, t_ns=tuple(round(t * S) for t in t_s),
        power_w=tuple(means), is_mean=True,
    )  # fmt: skip
    found = block_energy(record(series=(counter,)))
    assert found and found.source is PowerSource.RAPL and found.scope is Scope.PACKAGE
    assert found.gross_j.low < 100 < found.gross_j.high
    assert found.gross_j.value == pytest.approx(100, abs=0.7)


def POWER_J(t_s: float) -> float:
    """Integral of POWER."""
    return 0.5 * t_s + 2.0 * (min(max(t_s, 70.0), 120.0) - 70.0)


def test_rails_are_less_than_the_device() -> None:
    rails = tuple(
        Rails(seq=i, t_ns=i * S // 10, energy_uws={"GPU": round(POWER_J(i / 10) * 4e5), "CPU": i * 1000})
        for i in range(1900)
    )
    found = block_energy(record(readings(POWER), rails=rails), PowerSource.ODPM)
    assert found and found.net_j and found.scope is Scope.RAILS and found.name == "CPU, GPU"
    assert found.net_j.value == pytest.approx(0.4 * 80, rel=1e-3)


def test_rails_are_added_up_by_name() -> None:
    """Two rails, read at different times; a meter beside them is another source."""
    gpu, cpu = (
        series(lambda t_s, share=share: share * POWER(t_s), source=PowerSource.PERFETTO, scope=Scope.RAILS, name=name,
               t_ns=tuple(round((i + share) * S / 100) for i in range(19_000)), is_mean=True)
        for name, share in (("GPU", 0.3), ("CPU", 0.2))
    )  # fmt: skip
    found = block_energy(record(series=(gpu, cpu)))
    assert found and found.net_j and (found.scope, found.name) == (Scope.RAILS, "GPU, CPU")
    assert found.net_j.value == pytest.approx(0.5 * 80, rel=1e-3)


@pytest.mark.parametrize("late_s", [-0.3, 0.0, 0.3])
def test_a_clock_that_is_not_sure_does_not_carry_one_phase_into_the_other(late_s: float) -> None:
    clock = ClockMap(offset_ns=0, residual_ns=S // 2)
    meter = series(lambda t_s: POWER(t_s - late_s), clock=clock)
    found = block_energy(record(series=(meter,)))
    assert found and found.net_j
    assert found.net_j.value == pytest.approx(80, rel=1e-6)


@pytest.mark.parametrize(("gain", "agrees"), [(1.0, True), (1.03, True), (1.08, False), (0.001, False)])
def test_current_is_checked_against_the_charge_counter(gain: float, agrees: bool) -> None:
    """A phone at 10 W takes 0.7 mAh a second of counts of 1 mAh; the gauge's current is off by the gain."""
    gauge = readings(lambda t_s: 10.0 * gain)
    counted = tuple(
        p.model_copy(update={"charge_uah": round(3000 - 10.0 / 4 * p.t_ns / S / 3.6) * 1000}) for p in gauge
    )
    found = block_energy(record(counted))
    assert found and found.charge and found.charge.counts >= 100
    assert found.charge.difference == pytest.approx(gain - 1, abs=0.005)
    assert found.charge.agrees == agrees
    assert (DoubtCode.CHARGE_MISMATCH in {d.code for d in found.doubts}) != agrees


def test_few_counts_say_nothing() -> None:
    counted = tuple(
        p.model_copy(update={"charge_uah": round(300 - 2.5 / 4 * p.t_ns / S / 3.6 / 10) * 10_000})
        for p in readings(POWER)
    )
    found = block_energy(record(counted))
    assert found and found.charge is None


def test_doubts() -> None:
    def record(power: tuple[Power, ...], **more: Any) -> Record:
        return made(power, samples=samples(530, each_s=0.0937), **more)

    assert doubts(record(readings(POWER))) == set()
    assert doubts(record(readings(POWER), phases=phases({"load": (80, 100)}))) == {DoubtCode.SHORT_LOAD}
    assert doubts(record(readings(POWER), gauge=EXACT.model_copy(update={"refresh_ns": S}))) == {DoubtCode.SHORT_LOAD}
    assert doubts(record(readings(POWER), gauge=EXACT.model_copy(update={"absolute": False}))) == {
        DoubtCode.RELATIVE_ENERGY
    }
    assert doubts(record(readings(POWER, status="Charging"))) == {DoubtCode.CHARGING}
    assert doubts(record(readings(POWER), source=Source.VIRTUAL)) == {DoubtCode.MODELLED_POWER}
