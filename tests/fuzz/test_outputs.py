"""Outputs of phones and meters, changed at random: no figure moves without a word."""

from __future__ import annotations

import random

import pytest

from .outputs import KINDS, SILENT

DRAWS = 100


@pytest.mark.parametrize("name", [name for name in KINDS if name != "block"])
def test_no_output_misleads_silently(name: str, seed: int) -> None:
    """Blocks are drawn beside their own tests."""
    kind, share = KINDS[name]
    cases = [f"{name} {seed} {number}" for number in range(DRAWS * share // 100)]
    assert [case for case in cases if kind(random.Random(case)) == SILENT] == []
