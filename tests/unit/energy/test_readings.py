"""Readings that cannot be: a figure is right all the same, or a doubt names them, or the block does not count."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from orchestrator.energy import BlockEnergy, battery_draw_a, block_energy, charge_check, find_invalid
from orchestrator.model import telemetry
from orchestrator.model.device import Reading
from orchestrator.model.event import Power
from orchestrator.model.record import DoubtCode, InvalidCode, Record

from .blocks import EXACT, S, load_between, readings, record, series
from .scenarios import DISCHARGING

NOT_READINGS = (-(2**31), 2**31 - 1, 2**32 - 1, 65535000, -(2**63), 2**63 - 1, -32768000, 10**9, -2147483)
NO_VOLTAGES = (0, -22, -1, 65535, 2**31 - 1, -(2**31), 380, 1_900_000, 12_000_000)
DRAWN = load_between(0.5, 2.5)
Powers = tuple[Power, ...]
Change = Callable[[Powers, random.Random], Powers]


def measured(draw: random.Random) -> Powers:
    """A gauge with noise, of which each phase is even."""
    found = readings(DRAWN)
    return tuple(p.model_copy(update={"current_ua": (p.current_ua or 0) + draw.randrange(-900, 900)}) for p in found)


def _some(powers: Powers, draw: random.Random, share: float, **changes: Callable[[], int | None]) -> Powers:
    return tuple(
        p.model_copy(update={name: value() for name, value in changes.items()}) if draw.random() < share else p
        for p in powers
    )


def _millivolts(powers: Powers, _: random.Random) -> Powers:
    return tuple(p.model_copy(update={"voltage_uv": (p.voltage_uv or 0) // 1000}) for p in powers)


def _no_voltage(powers: Powers, draw: random.Random) -> Powers:
    value = draw.choice((None, *NO_VOLTAGES))
    return tuple(p.model_copy(update={"voltage_uv": value}) for p in powers)


def _hidden(powers: Powers, draw: random.Random) -> Powers:
    """A supply gives up to some 100 mA, and the status says Discharging."""
    most = draw.randrange(200_000, 500_000)
    return tuple(p.model_copy(update={"current_ua": min(0, (p.current_ua or 0) + most)}) for p in powers)


def _foreign(powers: Powers, draw: random.Random) -> Powers:
    """Something else draws a watt or so for a part of the load."""
    start_s, length_s = draw.uniform(85, 100), draw.uniform(5, 15)
    more = -draw.randrange(150_000, 400_000)
    return tuple(
        p.model_copy(update={"current_ua": (p.current_ua or 0) + more})
        if start_s <= p.t_ns / S < start_s + length_s
        else p
        for p in powers
    )


def _one_value(powers: Powers, draw: random.Random) -> Powers:
    value = draw.choice(NOT_READINGS)
    return _some(powers, draw, draw.uniform(0.001, 0.3), current_ua=lambda: value)


CHANGES: dict[str, Change] = {
    "single currents": lambda p, d: _some(p, d, d.uniform(0.001, 0.05), current_ua=lambda: d.choice(NOT_READINGS)),
    "one value": _one_value,
    "errors": lambda p, d: _some(p, d, d.uniform(0.001, 0.05), current_ua=lambda: d.choice(sorted(telemetry.ERRORS))),
    "single voltages": lambda p, d: _some(p, d, d.uniform(0.001, 0.05), voltage_uv=lambda: d.choice(NO_VOLTAGES)),
    "voltages missing": lambda p, d: _some(p, d, d.uniform(0.1, 0.9), voltage_uv=lambda: None),
    "millivolts": _millivolts,
    "no voltage": _no_voltage,
    "hidden supply": _hidden,
    "foreign load": _foreign,
}
FIGURE_MOVED_WITH = {DoubtCode.READINGS_LEFT_OUT, DoubtCode.VOLTAGE_ASSUMED, DoubtCode.POWER_STEP}


def energy_of(of: Record) -> BlockEnergy:
    found = block_energy(of)
    assert found is not None and found.per_inference_j is not None
    return found


def verdict(name: str, draw: random.Random) -> str:
    """Return what became of a block that was changed; `silent` where its figure moved and nothing says so."""
    whole = measured(draw)
    changed = CHANGES[name](whole, draw)
    if changed == whole:
        return "right"
    if find_invalid(record(changed), DISCHARGING):
        return "invalid"
    energy, expected = energy_of(record(changed)), energy_of(record(whole))
    assert energy.per_inference_j and expected.per_inference_j
    codes = {doubt.code for doubt in energy.doubts}
    off = abs(energy.per_inference_j.value - expected.per_inference_j.value)
    if DoubtCode.READINGS_LEFT_OUT in codes:
        return "told" if off <= 0.01 * expected.per_inference_j.value else "silent"
    if codes & FIGURE_MOVED_WITH:
        return "told"
    return "right" if off <= 0.005 * expected.per_inference_j.value else "silent"


@pytest.mark.parametrize("name", CHANGES)
def test_no_figure_moves_silently(name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")
    found = [verdict(name, draw) for _ in range(2)]
    assert "silent" not in found, found
    if name in ("millivolts", "voltages missing"):
        assert set(found) == {"right"}, found


def test_what_was_left_out_is_named() -> None:
    powers = list(measured(random.Random(1)))
    for at in (100, 900, 1000):
        powers[at] = powers[at].model_copy(update={"current_ua": -(2**31)})
    (doubt,) = [d for d in energy_of(record(tuple(powers))).doubts if d.code is DoubtCode.READINGS_LEFT_OUT]
    assert "3 of 1,900" in doubt.detail and "-2147483648 (3 x)" in doubt.detail


def test_a_gauge_that_never_says_anything_makes_the_block_invalid() -> None:
    powers = tuple(p.model_copy(update={"current_ua": -(2**31)}) for p in measured(random.Random(1)))
    assert block_energy(record(powers)) is None
    assert InvalidCode.IMPOSSIBLE_READINGS in [reason.code for reason in find_invalid(record(powers), DISCHARGING)]


def test_a_supply_that_hides_the_rest_makes_the_block_invalid() -> None:
    powers = _hidden(measured(random.Random(1)), random.Random(2))
    assert [reason.code for reason in find_invalid(record(powers), DISCHARGING)] == [InvalidCode.SUPPLIED_AT_REST]


def test_a_meter_with_a_value_that_no_phone_draws(seed: int) -> None:
    draw, good = random.Random(seed), series(DRAWN)
    for odd in (65535.0, -65535.0, 2147.48, 1e12):
        power_w = list(good.power_w)
        for _ in range(20):
            power_w[draw.randrange(len(power_w))] = odd
        energy = energy_of(record(series=(good.model_copy(update={"power_w": tuple(power_w)}),)))
        assert energy.per_inference_j and energy.per_inference_j.value == pytest.approx(0.2, rel=0.005)
        assert DoubtCode.READINGS_LEFT_OUT in {doubt.code for doubt in energy.doubts}
    many = good.model_copy(update={"power_w": tuple(65535.0 if i % 5 == 0 else w for i, w in enumerate(good.power_w))})
    codes = [reason.code for reason in find_invalid(record(series=(many,)), DISCHARGING)]
    assert InvalidCode.IMPOSSIBLE_READINGS in codes


@pytest.mark.parametrize("scale", [1, 1000])
def test_the_charge_counter_is_read_in_its_own_unit(scale: int) -> None:
    """uAh, or mAh; single ends of integers are none."""
    drained_uah = 0.0
    powers = []
    for p in readings(load_between(10.0, 18.0), period_s=1.0, refresh_s=1.0, end_s=190.0):
        drained_uah += -(p.current_ua or 0) / 3600
        charge = round((3_000_000 - drained_uah) / scale)
        powers.append(p.model_copy(update={"charge_uah": 2**31 - 1 if p.seq % 50 == 7 else charge}))
    check = charge_check(record(tuple(powers)))
    assert check is not None and check.agrees and abs(check.difference) < 0.02


@pytest.mark.parametrize(
    ("raw", "calibrated", "expected_a"),
    [
        (-412, False, None),
        (-8, False, None),
        (-412_000, False, 0.412),
        (-412_000, True, 0.412),
        (-412, True, 0.000412),
        (-(2**31), True, None),
        (2**31 - 1, False, None),
        (65535, False, None),
        (-9_000_000, True, None),
    ],
)
def test_a_current_is_told_in_amperes_where_its_unit_is_known_and_it_can_be(
    raw: int, calibrated: bool, expected_a: float | None
) -> None:
    reading = Reading(at=0.0, current_raw=raw, voltage_v=3.994, status="Discharging")
    found = battery_draw_a(reading, EXACT if calibrated else None)
    assert found == (None if expected_a is None else pytest.approx(expected_a))


def test_bounds_of_single_readings() -> None:
    assert [telemetry.cell_v(raw) for raw in (3_994_000, 3994, 8_400_000, -22, 0, 65535, 399, None)] == [
        *(pytest.approx(3.994), pytest.approx(3.994), pytest.approx(8.4)),
        *(None, None, None, None, None),
    ]
    assert [telemetry.celsius(c) for c in (31.5, -4.5, 0.0, -40.0, 125.0, 2800.0)] == [31.5, -4.5, *[None] * 4]
    assert [telemetry.percent(level) for level in (0.0, 83.0, -1.0, 255.0)] == [0.0, 83.0, None, None]
