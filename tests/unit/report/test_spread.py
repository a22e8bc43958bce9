"""Components of variance, and the level that is worth repeating, against simulated ones."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from orchestrator.analysis.statistics import MOST_RUNS, Spread, between_runs
from orchestrator.analysis.statistics.modes import block_value_ms
from orchestrator.analysis.statistics.spread import sessions_doubt, spread
from orchestrator.figures import BlockFigures, times_of
from orchestrator.figures.brief import brief_of
from orchestrator.model.device import Source
from orchestrator.model.record import DoubtCode, Outcome

from .records import cell, figures, record

pytestmark = pytest.mark.unit
DAY_S = 86400.0


def block(values_ms: list[float], at: float, boot: str = "") -> BlockFigures:
    return BlockFigures(
        experiment_id="e", job_id=f"{at}", attempt=1, token=1, cell_id="c", block=0, worker="w", serial="A",
        boot_id=boot, source=Source.PHONE, started_at=at, ended_at=at + 30, outcome=Outcome.OK,
        times=times_of(values_ms),
    )  # fmt: skip


def simulated(
    seed: int, sessions: int, blocks: int, *, session: float, between: float, within: float = 0.01, samples: int = 25
) -> Spread:
    rng = np.random.default_rng(seed)
    rows = []
    for day in range(sessions):
        level = 10 * np.exp(session * rng.normal())
        for number in range(blocks):
            middle = level * np.exp(between * rng.normal())
            times = middle * np.exp(within * rng.normal(size=samples))
            rows.append(block(times.tolist(), day * DAY_S + 60 * number))
    found = spread(rows, lambda row: block_value_ms(row, "steady"))
    assert found is not None
    return found


def test_components_are_those_that_were_drawn() -> None:
    """Means over 60 experiments, so that the estimators' own scatter does not hide a bias."""
    found = [simulated(seed, 6, 5, session=0.02, between=0.01, within=0.03) for seed in range(60)]
    assert np.mean([each.sample**2 for each in found if each.sample]) == pytest.approx(0.03**2, rel=0.1)
    assert np.mean([(each.block or 0) ** 2 for each in found]) == pytest.approx(0.01**2, rel=0.15)
    assert np.mean([(each.session or 0) ** 2 for each in found]) == pytest.approx(0.02**2, rel=0.25)
    assert {each.sessions for each in found} == {6} and {each.blocks for each in found} == {30}


def test_sessions_that_differ_are_told_and_others_are_not() -> None:
    found = [simulated(seed, 4, 7, session=0.03, between=0.005) for seed in range(40)]
    doubts = [doubt for each in found if (doubt := sessions_doubt(each))]
    assert len(doubts) >= 36 and all(doubt.code is DoubtCode.SESSIONS_DIFFER for doubt in doubts)
    assert "more sessions, not more blocks" in doubts[0].detail
    assert sum(each.repeat == "sessions" for each in found) >= 38
    alike = [simulated(seed, 4, 7, session=0.0, between=0.005) for seed in range(100)]
    assert sum(bool(each.differ) for each in alike) <= 4


def over_boots(
    seed: int, sessions: tuple[int, ...], *, boot: float, session: float, block_: float, blocks: int = 4
) -> Spread:
    """`sessions`: of each boot."""
    rng = np.random.default_rng(seed)
    rows, at = [], 0.0
    for number, count in enumerate(sessions):
        of_boot = boot * rng.normal()
        for _ in range(count):
            of_session = of_boot + session * rng.normal()
            values = 10 * np.exp(of_session + block_ * rng.normal(size=blocks))
            rows += [block([value], at + 60 * place, f"boot-{number}") for place, value in enumerate(values)]
            at += DAY_S
    found = spread(rows, lambda row: block_value_ms(row, "steady"))
    assert found is not None
    return found


def test_boots_are_a_level_of_their_own() -> None:
    """Unequal numbers of sessions: components are right on average, and what differs is told apart."""
    found = [over_boots(seed, (3, 2, 4, 1, 3), boot=0.03, session=0.01, block_=0.005) for seed in range(300)]
    assert np.mean([(each.boot or 0) ** 2 for each in found]) == pytest.approx(0.03**2, rel=0.15)
    assert np.mean([(each.session or 0) ** 2 for each in found]) == pytest.approx(0.01**2, rel=0.15)
    assert np.mean([(each.block or 0) ** 2 for each in found]) == pytest.approx(0.005**2, rel=0.1)
    assert {(each.boots, each.sessions) for each in found} == {(5, 13)}
    assert sum(each.repeat == "boots" for each in found) >= 280
    told = [doubt.detail for each in found if each.differ == "boots" and (doubt := sessions_doubt(each))]
    assert len(told) >= 200 and "more boots, not more sessions" in told[0]


def test_sessions_that_differ_are_not_taken_for_boots() -> None:
    found = [over_boots(seed, (3, 3, 3, 3), boot=0.0, session=0.02, block_=0.005) for seed in range(200)]
    assert sum(each.differ == "boots" for each in found) <= 7
    assert sum(each.differ == "sessions" for each in found) >= 190
    assert sum(each.repeat == "sessions" for each in found) >= 150


def test_boots_of_one_session_each_are_not_told_from_sessions() -> None:
    found = over_boots(1, (1, 1, 1), boot=0.03, session=0.0, block_=0.002)
    assert (found.boot, found.boots, found.differ, found.repeat) == (None, 3, "sessions", "sessions")
    assert found.session == pytest.approx(0.03, rel=0.9)


def test_the_level_that_adds_most_is_worth_repeating() -> None:
    found = [simulated(seed, 1, 10, session=0.0, between=0.02, within=0.005) for seed in range(20)]
    assert all((each.repeat, each.session) == ("blocks", None) for each in found)
    found = [simulated(seed, 1, 20, session=0.0, between=0.0, within=0.1, samples=5) for seed in range(20)]
    assert sum(each.repeat == "samples" for each in found) >= 16


def test_a_session_ends_with_a_reboot_or_an_hours_rest() -> None:
    rows = [block([1.0, 1.1], 0), block([1.0, 1.1], 60), block([1.0, 1.1], 4000), block([1.0, 1.1], 4060, boot="2")]
    found = spread(rows, lambda row: block_value_ms(row, "steady"))
    assert found is not None and found.sessions == 3
    assert spread(rows[:1], lambda row: block_value_ms(row, "steady")) is None


def test_how_runs_differ_is_known_from_three_of_them(seed: int) -> None:
    """Days differ by 5 %, and their blocks little."""
    random = Random(seed)
    runs = []
    for _ in range(MOST_RUNS):
        day = random.gauss(0, 0.05)
        times = [math.exp(day + random.gauss(0, 0.001)) for _ in range(3)]
        made = [record(cell(), [ms], block=i, token=i + 1) for i, ms in enumerate(times)]
        runs.append([brief_of(each) for each in figures(made, {cell().cell_id: cell()})])
    found = between_runs(runs)
    assert found is not None and 0.008 < found < 0.14
    assert between_runs(runs[:2]) is None and between_runs([]) is None
