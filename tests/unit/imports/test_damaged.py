"""Whatever a table of samples holds, it is gathered whole or refused with its name."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.exchange.delimited_table import Table
from orchestrator.exchange.samples.rows import gather
from orchestrator.model.errors import TableError

pytestmark = pytest.mark.unit

TITLES = ("device", "network", "layer", "backend", "precision", "sample_ms", "block", "phase", "index", "start_ns", "g")
CELLS = ("", "d", "1", "0.5", "-1", "x y", '"', "1e99", "9" * 30, "²", "\x07", "timed", "a" * 300, "true")


@settings(max_examples=100, deadline=None)
@given(
    st.permutations(TITLES),
    st.integers(5, len(TITLES)),
    st.lists(st.lists(st.sampled_from(CELLS), max_size=len(TITLES) + 1), max_size=5),
)
def test_any_table(titles: list[str], count: int, rows: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("\n".join(",".join(row) for row in [titles[:count], *rows]))
        try:
            content = gather(Table(path))
        except TableError as e:
            assert str(path) in str(e)
            return
        found = [attempt for block in content.blocks.values() for attempt in block.values()]
        assert sum(len(attempt.samples) + len(attempt.layers) for attempt in found) == content.rows > 0


@settings(max_examples=100, deadline=None)
@given(st.permutations(TITLES), st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.booleans())
def test_the_order_of_columns_and_quotes_change_nothing(titles: list[str], times_ms: list[float], quoted: bool) -> None:
    values = {"device": "d", "network": "n", "backend": "b", "precision": "p", "g": "4"}
    mark = '"' if quoted else ""

    def digest(order: list[str], quote: str) -> tuple[str, list[int]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.csv"
            rows = [[{**values, "sample_ms": repr(time)}.get(title, "") for title in order] for time in times_ms]
            path.write_text("\n".join(",".join(f"{quote}{cell}{quote}" for cell in row) for row in [order, *rows]))
            content = gather(Table(path))
        ((attempt,),) = (block.values() for block in content.blocks.values())
        return content.digest, [sample.duration_ns for sample in attempt.samples]

    found = digest(titles, mark)
    assert found == digest(list(TITLES), "")
    assert found[1] == [round(time * 1e6) for time in times_ms]
