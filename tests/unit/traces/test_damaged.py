"""Whatever a file holds, it is read or refused with its name; nothing else comes out."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.exchange.power_traces import FORMATS, Recording, read_trace
from orchestrator.exchange.power_traces.comparison import compare
from orchestrator.exchange.power_traces.recording import TraceDoubtCode
from orchestrator.model.errors import TableError

from .write import respread, trepn

pytestmark = pytest.mark.unit

PIECES = (
    "", ",", ",,,", "\n", "\r\n", '"', "x", "1e999", "-5", "NaN", "1_0", "½", "\0", ";", "\t", "time [s]", "Time  [ms]",
    "Battery Power* [uW]", "System Statistics:", "Main(mA)", "power [mW]", "1,2\n3,4\n",
    "timestamp, power.draw [W]\n", "2026/11/25 23:59:59.9, 6.1 W\n", "10:00:00,1\n",
)  # fmt: skip


def sound(recordings: list[Recording]) -> bool:
    return all(
        len(one.t_s) == len(one.power_w) >= 2 and np.isfinite(one.power_w).all() and (np.diff(one.t_s) >= 0).all()
        for one in recordings
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from((None, *FORMATS)))
@example(["time [s]", ",", "power [mW]", "\n", "1,2\n3,4\n"], None)
@example(["timestamp, power.draw [W]\n", "2026/11/25 23:59:59.9, 6.1 W\n", "2026/11/25 23:59:59.9, 6.1 W\n"], None)
@example(["time [s]", ",", "power [mW]", "\n", "10:00:00,1\n", "10:00:00,1\n"], None)
def test_any_text(pieces: list[str], form: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("".join(pieces))
        try:
            found = read_trace(path, form)  # type: ignore[arg-type]
        except TableError as e:
            assert str(path) in str(e)
            return
        assert found and sound(found)
        compare(found, found, 0.5)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2000), st.integers(0, 40), st.sampled_from(PIECES), st.booleans())
def test_a_damaged_trepn_file(place: int, cut: int, piece: str, spread: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = trepn(Path(folder) / "a.csv", lambda t_s: 1 + math.sin(t_s) / 2, seconds=5)
        if spread:
            path = respread(path, Path(folder) / "b.csv", ["1", "2"])
        text = path.read_text()
        path.write_text(text[:place] + piece + text[place + cut :])
        try:
            assert sound(read_trace(path))
        except TableError as e:
            assert str(path) in str(e)


@pytest.mark.parametrize("mark, wrong", [(" ", "{t}  0.24 28"), (" ", "{t} x 5 0.24 28"), (",", "{t},5,0,24,28")])
def test_a_row_whose_cells_moved_is_refused(tmp_path: Path, seed: int, mark: str, wrong: str) -> None:
    """An empty cell between spaces, a word too many, a decimal comma."""
    rows = [mark.join((f"{t / 10}", "5", f"0.2{t % 10}", "28")) for t in range(100)]
    place = seed % 99  # the last row may be cut
    rows[place] = wrong.format(t=place / 10)
    path = tmp_path / "a.csv"
    path.write_text("\n".join([mark.join(("time_s", "voltage_V", "current_A", "temp_C")), *rows]))
    with pytest.raises(TableError, match=rf"line {place + 2}: found \d cells, allowed: 4"):
        read_trace(path)


def _level(chosen: random.Random, count: int, unit: str) -> list[str]:
    scale = {"W": 1.0, "mW": 1e3, "uW": 1e6}[unit]
    return [f"{chosen.uniform(0.09, 0.11) * scale:.7g}" for _ in range(count)]


@pytest.mark.parametrize("kind", ["silent", "titles", "units", "comment", "behind", "none"])
def test_a_unit_that_changes_half_way_is_told(kind: str, seed: int, tmp_path: Path) -> None:
    """A doubt tells it where the figures alone show it; else a refusal, which has nobody remove the line."""
    chosen = random.Random(f"{seed} {kind}")
    one, other = chosen.sample(["W", "mW", "uW"], 2)
    counts, behind = [chosen.randrange(20, 200) for _ in "ab"], kind == "behind"
    halves = [
        _level(chosen, count, unit) for count, unit in zip(counts, (one, one if kind == "none" else other), strict=True)
    ]
    if kind == "none":  # a load that comes is no other unit
        load = chosen.uniform(3, 30)
        halves[1] = [f"{float(each) * load:.7g}" for each in halves[1]]
    times = iter(range(1000))
    first, second = (
        [f"{next(times) / 10},{each}{f' {unit}' * behind}" for each in half]
        for half, unit in zip(halves, (one, other), strict=True)
    )
    between = {"titles": f"time [s],power [{other}]", "units": f"s,{other}", "comment": f"# time [s],power [{other}]"}
    path = tmp_path / "a.csv"
    rows = [f"time [s],power{'' if behind else f' [{one}]'}", *first, *([between[kind]] if kind in between else [])]
    path.write_text("\n".join([*rows, *second, ""]))
    if kind not in ("silent", "none"):
        with pytest.raises(TableError, match=f"a.csv, line {len(rows) + (kind == 'behind')}") as refused:
            read_trace(path)
        assert "remove" not in str(refused.value.remedy)
        return
    try:
        codes = {doubt.code for doubt in read_trace(path)[0].doubts}
    except TableError as e:
        assert kind == "silent" and "left out" in str(e), "more than a phone draws"
        return
    told = TraceDoubtCode.UNIT_CHANGES in codes
    assert not told if kind == "none" else told or TraceDoubtCode.READINGS_LEFT_OUT in codes


@pytest.mark.parametrize("odd", [False, True])
def test_a_mark_of_thousands_is_no_fraction(odd: bool, seed: int, tmp_path: Path) -> None:
    """Figures below and above a thousand, with marks and without; an odd line has the file read by rows."""
    chosen = random.Random(seed)
    mw = [chosen.randrange(400, 990) if chosen.random() < 0.5 else chosen.randrange(1001, 3000) for _ in range(200)]
    mark, path = chosen.choice(".,"), tmp_path / "a.csv"

    def write(texts: list[str]) -> Path:
        rows = [f"{number};{text}" for number, text in enumerate(texts)]
        rows[100:100] = ["100;N/A"] * odd
        path.write_text("\n".join(["time [s];power [mW]", *rows, ""]))
        return path

    with pytest.raises(
        TableError, match=r"column 'power \[mW\]': figures from 1000 on seem to have a mark of thousands"
    ):
        read_trace(write([f"{each:,}".replace(",", mark) for each in mw]))
    for texts in ([f"{each}" for each in mw], [f"{each / 1000:g}" for each in mw], [f"{each / 7:.4g}" for each in mw]):
        assert read_trace(write(texts))[0].facts.plain_w == pytest.approx(
            np.mean([float(each) for each in texts]) / 1e3
        )
