"""Predictions from scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orchestrator.model.errors import SpecError
from orchestrator.model.record import Predictions
from workers.engines.models import predictions

SCORES = arrays(
    np.float32, st.tuples(st.integers(1, 5), st.integers(2, 9)), elements=st.floats(width=32, allow_nan=True)
)


def test_best_first_and_the_smaller_number_among_equals() -> None:
    scores = np.array([[0.1, 0.7, 0.7, 0.0, 0.2, 0.3, 0.05], [5, 4, 3, 2, 1, 0, -1]], np.float32)
    found = predictions({"prob": scores.reshape(2, 1, 7, 1, 1)}, range(10, 12))
    assert (found.first, found.top) == (10, ((1, 2, 5, 4, 0), (0, 1, 2, 3, 4)))
    assert found.margins == (0.0, 1.0)


@given(SCORES)
@example(np.array([[np.nan, -np.inf]], np.float32))
def test_any_scores(scores: np.ndarray) -> None:
    found = predictions({"y": scores}, range(3, 3 + len(scores)))
    assert Predictions.model_validate_json(found.model_dump_json()) == found
    for row, top, margin in zip(scores, found.top, found.margins, strict=True):
        known = [value for value in row if not np.isnan(value)]
        assert len(set(top)) == len(top) == min(5, len(row)) and margin >= 0
        if known:
            assert row[top[0]] == max(known)
        ranked = [row[each] for each in top if not np.isnan(row[each])]
        assert ranked == sorted(ranked, reverse=True)


def test_what_has_no_classes() -> None:
    with pytest.raises(SpecError, match=r"2 outputs \(a, b\)"):
        predictions({"a": np.zeros((1, 3)), "b": np.zeros((1, 3))}, range(1))
    with pytest.raises(SpecError, match="one score"):
        predictions({"a": np.zeros((4, 1))}, range(4))
