"""Intervals and tests against published values."""

from __future__ import annotations

import pytest
import scipy  # its parts are imported when they are asked for
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.agreement import exact, kappa, mcnemar, proportion, rule_of_three

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_interval_of_a_share_is_that_of_newcombe_1998(count: int, of: int, low: float, high: float) -> None:
    """Statistics in Medicine 17, table I, method 5: Clopper and Pearson."""
    interval = exact(count, of)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@pytest.mark.parametrize(("share", "of"), [(0.0005, 300), (0.0005, 1000), (0.01, 300), (0.3, 100)])
def test_interval_of_a_rare_share_covers_as_often_as_it_says(share: float, of: int) -> None:
    """Wilson's covers 0.0005 of 300 in 86 % of cases."""
    covers = [each.low <= share <= each.high for each in (exact(count, of) for count in range(of + 1))]
    assert scipy.stats.binom.pmf(range(of + 1), of, share) @ covers >= 0.95


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_is_the_mirror_of_the_rest(counts: tuple[int, int]) -> None:
    count, of = counts
    interval, rest = exact(count, of), exact(of - count, of)
    assert 0 <= interval.low <= count / of <= interval.high <= 1
    assert interval.low == pytest.approx(1 - rest.high, abs=1e-12)


@pytest.mark.parametrize(("first", "second", "p"), [(86, 150, 3.716e-05), (1, 9, 0.021484), (5, 5, 1.0), (0, 0, 1.0)])
def test_mcnemar_is_that_of_agresti_and_of_tables_of_the_sign_test(first: int, second: int, p: float) -> None:
    """86 and 150: approval of a prime minister, Agresti, "Categorical Data Analysis", table 10.1."""
    assert mcnemar(first, second) == pytest.approx(p, rel=2e-4) == mcnemar(second, first)


def test_mcnemar_bears_as_many_changes_as_a_large_set_has() -> None:
    assert mcnemar(25_000, 25_000) == 1.0 and mcnemar(0, 50_000) == 0.0
    assert mcnemar(24_700, 25_300) == pytest.approx(0.0074, abs=0.0002)


def test_kappa_of_a_known_table() -> None:
    """20 yes by both, 15 no by both, 5 and 10 apart: 0.4."""
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assert kappa(first, second) == pytest.approx(0.4) == kappa(second, first)
    assert kappa(first, first) == 1.0
    assert kappa([7, 7], [7, 7]) is None and kappa([], []) is None


def test_no_change_among_ten_thousand_bounds_the_share_that_changes() -> None:
    assert rule_of_three(10_000) == 3e-4 and rule_of_three(2) == 1.0
    bound = 1 - 0.05 ** (1 / 10_000)
    assert rule_of_three(10_000) == pytest.approx(bound, rel=0.01)


def test_of_no_examples_there_is_no_proportion() -> None:
    assert proportion(0, 0) is None
