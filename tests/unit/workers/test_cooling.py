"""The time until a phone is cool: Newton's law where enough was seen, else the usual rate; and the slope itself."""

from __future__ import annotations

import math

import pytest

from workers.devices.temperature_history import TemperatureHistory
from workers.session.conditions.cooling import LONGEST_S, SHORTEST_S, settle_s, wait_s

REST_C, PER_MIN = 24.0, 0.12
"""Temperature at rest and rate of Newton's law, per minute."""


def newton_c(start_c: float, minutes: float) -> float:
    return REST_C + (start_c - REST_C) * math.exp(-PER_MIN * minutes)


def slope(temp_c: float) -> float:
    return -PER_MIN * (temp_c - REST_C)


@pytest.mark.parametrize(("start_c", "target_c"), [(38.0, 32.0), (30.0, 25.0), (18.0, 22.0)])
def test_newtons_law_is_met(start_c: float, target_c: float) -> None:
    wait = wait_s(start_c, target_c, slope(start_c), REST_C)
    assert newton_c(start_c, wait / 60) == pytest.approx(target_c, abs=0.01)


def test_without_a_temperature_at_rest_the_slope_goes_on() -> None:
    assert wait_s(40.0, 38.0, -0.5, None) == pytest.approx(240.0)
    assert wait_s(40.0, 38.0, -0.5, 38.0) == pytest.approx(240.0), "it never gets to its rest: no logarithm of it"


@pytest.mark.parametrize("unknown", [None, 0.01, 0.8])
def test_a_phone_that_does_not_cool_gets_the_usual_rate(unknown: float | None) -> None:
    assert wait_s(42.0, 40.0, unknown, REST_C) == 120.0


def test_waits_are_bounded() -> None:
    assert wait_s(90.0, 20.0, None, None) == LONGEST_S
    assert wait_s(40.1, 40.0, -5.0, None) == SHORTEST_S


def test_settling_by_newtons_law() -> None:
    wait = settle_s(24.9, -0.6, 0.2, REST_C)
    assert abs(-0.6 * math.exp(-(0.6 / 0.9) * wait / 60)) == pytest.approx(0.2, abs=1e-6)
    assert settle_s(REST_C, -0.6, 0.2, REST_C) == 60.0


def history(seconds: float, *, per_min: float = -0.3, gap_at: float = -1000.0) -> TemperatureHistory:
    made, at = TemperatureHistory(), 0.0
    while at <= seconds:
        if not gap_at <= at < gap_at + 90:
            made.note(1000.0 + at, 30.0 + per_min * at / 60)
        at += 10.0
    return made


@pytest.mark.parametrize("seconds", [100.0, 150.0, 1000.0])
def test_the_slope_of_the_last_two_minutes(seconds: float) -> None:
    assert history(seconds).slope_c_per_min() == pytest.approx(-0.3)


def test_a_phone_that_was_watched_too_short_has_no_slope() -> None:
    assert history(90.0).slope_c_per_min() is None
    assert history(200.0, gap_at=50.0).slope_c_per_min() is None, "nobody knows what was in the gap"


def test_only_the_last_two_minutes_count() -> None:
    made = history(300.0, per_min=-2.0)
    for i in range(1, 14):
        made.note(1300.0 + 10 * i, 20.0)
    assert made.slope_c_per_min() == pytest.approx(0.0, abs=1e-9)
