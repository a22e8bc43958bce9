"""A short run under every kind of fault; longer ones by hand: `make chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .campaign import Campaign, run
from .checker import violations
from .nemesis import FIRST


@pytest.mark.slow
@pytest.mark.long
def test_every_promise_is_kept(tmp_path: Path, seed: int) -> None:
    history = run(Campaign(seed, phones=3, jobs=54, faults=8, limit_s=300.0, people=3), tmp_path)
    assert len(history.jobs) >= 60
    assert {hit.fault for hit in history.hits} >= {*FIRST}
    assert history.answers["POST acts/submit 200"] >= 6
    assert len(history.runs) >= len(history.jobs), "the phones wrote down what ran on them"
    assert violations(history) == [], f"replay it: python -m tests.chaos --seed {seed} --phones 3 --jobs 54 --people 3"
