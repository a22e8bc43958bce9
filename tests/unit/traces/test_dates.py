"""Dates, times of day and logs of nvidia-smi, by blocks and row by row; what has two meanings is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from orchestrator.exchange.power_traces import Recording, Told, TraceDoubtCode, columns, read_trace
from orchestrator.exchange.power_traces.blocks import NotPlain
from orchestrator.exchange.power_traces.comparison import compare
from orchestrator.model.errors import TableError

from .write import table

pytestmark = pytest.mark.unit

COUNT, STEP_S = 400, 0.1
BEGIN = datetime(2026, 11, 25, 23, 59, 50, 123000)
"""Midnight is among the readings."""
WATTS = np.round(1.5 + 0.5 * np.sin(np.arange(COUNT)), 3)


def moments() -> list[datetime]:
    return [BEGIN + timedelta(seconds=STEP_S) * place for place in range(COUNT)]


def one(path: Path, **told: str) -> Recording:
    (recording,) = read_trace(path, told=Told(**told))
    return recording


def refuse(*_: object) -> object:
    raise NotPlain


@pytest.fixture(params=[False, True], ids=["blocks", "rows"])
def by_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads with one of both, and with that alone."""
    monkeypatch.setattr(columns, "_by_blocks" if request.param else "_by_rows", refuse)


@pytest.mark.usefixtures("by_rows")
@pytest.mark.parametrize(
    ("written", "named"),
    [
        (lambda at: at.isoformat(), "dates"),
        (lambda at: f"{at:%Y/%m/%d %H:%M:%S.%f}"[:-3], "dates"),
        (lambda at: f"{at}123+05:30", "dates with their offset"),
        (lambda at: f"{at.isoformat()}Z", "dates with their offset"),
        (lambda at: f"{at}-0800", "dates with their offset"),
        (lambda at: f"{at:%H:%M:%S.%f}", "times of day"),
    ],
)
def test_dates_and_times_of_day(tmp_path: Path, written: Callable[[datetime], str], named: str) -> None:
    rows = [(written(at), watts) for at, watts in zip(moments(), WATTS, strict=True)]
    found = one(table(tmp_path / "a.csv", "time,power [W]", rows))
    np.testing.assert_allclose(found.t_s, np.arange(COUNT) * STEP_S, atol=1e-6)
    np.testing.assert_array_equal(found.power_w, WATTS)
    assert found.times == f"time, {named}" and not found.doubts


@pytest.mark.usefixtures("by_rows")
def test_a_log_of_nvidia_smi(tmp_path: Path) -> None:
    """The program writes it so, with further columns; a GPU may draw more than a phone."""
    rows = [
        (f"{at:%Y/%m/%d %H:%M:%S.%f}"[:-3], f" {100 * watts:.2f} W", " 700.00 W", " 1410 MHz")
        for at, watts in zip(moments(), WATTS, strict=True)
    ]
    head = "timestamp, power.draw [W], power.limit [W], clocks.current.sm [MHz]"
    found = one(table(tmp_path / "a.csv", head, rows))
    assert (found.format, found.column) == ("nvidia-smi", "power.draw [W]")
    np.testing.assert_allclose(found.power_w, 100 * WATTS)
    assert found.duration_s == pytest.approx((COUNT - 1) * STEP_S)
    assert TraceDoubtCode.IMPLAUSIBLE_POWER not in {doubt.code for doubt in compare([found], [found]).doubts}


@pytest.mark.parametrize(("title", "other"), [(" index,", (" 0,", " 1,")), ("", ("", ""))])
def test_rows_of_several_gpus_are_refused(tmp_path: Path, title: str, other: tuple[str, str]) -> None:
    rows = [
        (f"{at + timedelta(milliseconds=2) * gpu:%Y/%m/%d %H:%M:%S.%f}", f"{other[gpu]} {60 + 100 * gpu} W")
        for at in moments() for gpu in (0, 1)
    ]  # fmt: skip
    with pytest.raises(TableError, match="GPUs") as caught:
        one(table(tmp_path / "a.csv", f"timestamp,{title} power.draw [W]", rows))
    assert "-i 0" in str(caught.value.remedy)


@pytest.mark.usefixtures("by_rows")
def test_a_unit_may_stand_behind_each_figure(tmp_path: Path) -> None:
    text = "time;power\n" + "".join(f"{place / 10};{place % 7},5 mW\n".replace(".", ",") for place in range(COUNT))
    path = tmp_path / "a.csv"
    path.write_text(text)
    np.testing.assert_allclose(one(path).power_w, (np.arange(COUNT) % 7 + 0.5) * 1e-3)


@pytest.mark.parametrize(
    ("texts", "line", "what"),
    [
        (("2026-11-25 10:00:00 AM",), 1, "no AM or PM"),
        (("11/25/2026 10:00:00",), 1, "year first"),
        (("25.11.2026 10:00:00",), 1, "year first"),
        (("2026-11-25",), 1, "year first"),
        (("2026-11-25 10:00:00", "2026-11-25 10:00:01Z"), 3, "allowed: dates that exist, as in the first row"),
        (("2026-11-25 10:00:00+01:00", "2026-11-25 10:00:01"), 3, "dates with their offset"),
        (("2026-02-28 10:00:00", "2026-02-29 10:00:00"), 3, "that exist"),
        (("2026-10-25 02:59:59", "2026-10-25 02:00:00"), 3, "02:00:00.* after 2026-10-25 02:59:59"),
        (("10:00:00", "09:00:00"), 3, "times that do not fall"),
    ],
)
def test_what_has_two_meanings_or_none_is_refused(tmp_path: Path, texts: tuple[str, ...], line: int, what: str) -> None:
    with pytest.raises(TableError, match=f"line {line}, column 'time'.*{what}"):
        one(table(tmp_path / "a.csv", "time,power [W]", [(text, 1) for text in texts]))


def test_what_is_told_must_agree(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "time,power [mW]", [(at.isoformat(), "5 mW") for at in moments()])
    with pytest.raises(TableError, match="no unit") as caught:
        one(path, time_unit="ms")
    assert "--time-unit" in str(caught.value.remedy)
    path.write_text(path.read_text().replace("5 mW", "5 W"))
    with pytest.raises(TableError, match="'mw', its figures 'W'"):
        one(path)
