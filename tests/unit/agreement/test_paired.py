"""Intervals and tests against published values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.agreement import kappa, mcnemar, proportion, rule_of_three, wilson

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_that_of_newcombe_1998(count: int, of: int, low: float, high: float) -> None:
    """Statistics in Medicine 17, table I, method 3."""
    interval = wilson(count, of)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_is_the_mirror_of_the_rest(counts: tuple[int, int]) -> None:
    count, of = counts
    interval, rest = wilson(count, of), wilson(of - count, of)
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
    exact = 1 - 0.05 ** (1 / 10_000)
    assert rule_of_three(10_000) == pytest.approx(exact, rel=0.01)


def test_of_no_examples_there_is_no_proportion() -> None:
    assert proportion(0, 0) is None
