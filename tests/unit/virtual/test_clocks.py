"""Limits of the clocks: what lowers them, and that the least one holds."""

from __future__ import annotations

import pytest

from virtual_phones.hardware.clocks import Clocks
from virtual_phones.profile import load_profile

S7 = load_profile("galaxy_s7")


def test_a_new_phone_has_its_whole_range() -> None:
    clocks = Clocks(S7)
    assert clocks.share() == 1.0
    assert (clocks.cpu(2).low, clocks.cpu(2).high, clocks.cpu(2).busy) == (307_200, 2_150_400, 2_150_400)
    assert (clocks.gpu().low, clocks.gpu().high) == (133_000_000, 624_000_000)


def test_the_lowest_of_heat_and_faults_holds() -> None:
    clocks = Clocks(S7)
    clocks.caps["clock_cap"] = 0.6
    assert clocks.share() == pytest.approx(0.6, abs=1e-3)
    assert clocks.cpu(2, heat=0.8).high == round(0.6 * 2_150_400)
    assert clocks.cpu(2, heat=0.5).high == 2_150_400 // 2
    assert clocks.gpu(heat=0.8).high == 315_000_000, "the highest one that it has below 0.6"


def test_a_hidden_throttle_shows_in_the_clock_alone() -> None:
    clocks = Clocks(S7)
    clocks.hidden["throttle"] = 0.5
    assert clocks.share() == 0.5
    assert clocks.cpu(2).high == 2_150_400
    assert clocks.cpu(2).busy == 2_150_400 // 2
    assert clocks.gpu().busy < clocks.gpu().high


def test_fixed_performance_holds_both_ends() -> None:
    clocks = Clocks(S7)
    clocks.fixed = 0.7
    assert clocks.cpu(0).low == clocks.cpu(0).high == round(0.7 * 1_593_600)
    assert clocks.gpu().low == clocks.gpu().high == 401_800_000
    assert clocks.cpu(0, heat=0.5).high < round(0.7 * 1_593_600), "heat is stronger"
    clocks.reset()
    assert clocks.share() == 1.0


def test_root_s_limits_are_clamped_and_the_lower_gives_way() -> None:
    clocks = Clocks(S7)
    clocks.limit_cpu(2, high=1)
    assert (clocks.cpu(2).low, clocks.cpu(2).high) == (307_200, 307_200)
    clocks.limit_cpu(2, high=10**9)
    clocks.limit_cpu(2, low=2_000_000)
    assert (clocks.cpu(2).low, clocks.cpu(2).high) == (2_000_000, 2_150_400)
    clocks.limit_cpu(2, high=1_000_000)
    assert (clocks.cpu(2).low, clocks.cpu(2).high) == (1_000_000, 1_000_000)
    assert clocks.share() == pytest.approx(1_000_000 / 2_150_400)
    clocks.limit_gpu(high=214_000_000)
    assert clocks.share() == pytest.approx(214 / 624)


def test_governors() -> None:
    clocks = Clocks(S7)
    clocks.govern(0, "performance")
    assert clocks.cpu(0).low == clocks.cpu(0).high == 1_593_600
    clocks.govern(0, "powersave")
    assert clocks.cpu(0).high == 307_200
    with pytest.raises(OSError, match="Invalid argument"):
        clocks.govern(0, "fast")
