"""From which size on the GPU pays."""

from __future__ import annotations

from math import inf, sqrt

import pytest

from benchmarks.engine.crossover import Crossover, Point, crossover


def points(*times: tuple[int, float, float]) -> list[Point]:
    return [Point(*each) for each in times]


def test_none_in_range() -> None:
    found = crossover(points((1, 2, 1), (10, 2, 1)))
    assert found.size == inf and found.words == "none in range"


def test_the_largest_size_decides() -> None:
    assert crossover(points((1, 1, 2), (10, 2, 1))).words == "none in range"
    assert crossover(points((1, 1, 1))).words == "none in range", "as fast is not faster"


def test_everywhere() -> None:
    assert crossover(points((8, 1, 2), (16, 1, 4))) == Crossover(8.0, is_bound=True)
    assert crossover(points((8, 1, 2))).words == "8 or less"


def test_between_two_sizes_by_logarithms() -> None:
    found = crossover(points((100, 4, 1), (10000, 1, 4)))
    assert found.size == pytest.approx(1000) and not found.is_bound and found.words == "1000"
    assert crossover(points((16, 2, 1), (64, 1, 8))).size == pytest.approx(16 * sqrt(2))


def test_an_early_lead_that_is_lost_does_not_count() -> None:
    assert crossover(points((1, 1, 2), (10, 2, 1), (1000, 1, 2))).size == pytest.approx(100)


def test_a_draw_is_the_crossover() -> None:
    assert crossover(points((16, 1, 1), (32, 1, 2))).size == pytest.approx(16)


def test_order_does_not_matter() -> None:
    several = points((1, 3, 1), (4, 2, 1), (16, 1, 3))
    assert crossover(several[::-1]) == crossover(several)


def test_nothing_measured() -> None:
    with pytest.raises(ValueError, match="no size"):
        crossover([])
