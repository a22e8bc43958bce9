"""The sampler's cost from pairs of medians and from what the sampler itself says."""

from __future__ import annotations

import random

import pytest

from orchestrator.model.event import Sampler
from workers.enrolment.sampler_cost import PAIRS, change_of, cpu_share


@pytest.fixture
def seed() -> int:
    """The same in every run: these checks are statistical."""
    return 20261121


def test_a_change_is_found_with_its_interval() -> None:
    found = change_of([(10.0, 10.2), (10.1, 10.3), (9.9, 10.1), (10.0, 10.2)])
    assert found.value == pytest.approx(0.02, abs=0.001)
    assert found.low < found.value < found.high and found.low > 0.015


def test_the_interval_covers_the_truth(seed: int) -> None:
    random_ = random.Random(seed)
    covered = 0
    for case in range(400):
        pairs_ = PAIRS[case % 2]
        pairs = [(random_.gauss(10, 0.1), random_.gauss(10.3, 0.1)) for _ in range(pairs_)]
        found = change_of(pairs)
        covered += found.low <= 0.03 <= found.high
    assert 0.90 <= covered / 400 <= 0.99


def test_processor_time_over_the_time_of_sampling() -> None:
    one = Sampler(seq=0, t_ns=0, period_ns=100_000_000, readings=9, missed=1, cpu_ns=2_000_000)
    assert cpu_share([one, one]) == pytest.approx(0.002)
    assert cpu_share([]) == 0.0
