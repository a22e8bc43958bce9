"""Components of variance, and the level that is worth repeating, against simulated ones."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.figures import BlockFigures, times_of
from orchestrator.analysis.statistics import Spread
from orchestrator.analysis.statistics.modes import block_value_ms
from orchestrator.analysis.statistics.spread import sessions_doubt, spread
from orchestrator.model.device import Source
from orchestrator.model.record import DoubtCode, Outcome

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
    assert sum(each.differ for each in alike) <= 4


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
