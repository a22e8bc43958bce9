"""Every form of trace gives the power that was put in; every fault is told with file, line, column, what is allowed."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from orchestrator.exchange.power_traces import Recording, TraceDoubtCode, read_trace
from orchestrator.exchange.power_traces.trepn import parse_duration
from orchestrator.model.errors import TableError

from .write import respread, table, trepn

pytestmark = pytest.mark.unit


def wave(t_s: float) -> float:
    return 1.5 + 0.5 * math.sin(t_s)


def codes(recording: Recording) -> set[TraceDoubtCode]:
    return {doubt.code for doubt in recording.doubts}


def one(path: Path) -> Recording:
    (recording,) = read_trace(path)
    return recording


def test_both_layouts_of_trepn_give_the_same(tmp_path: Path) -> None:
    quoted = one(trepn(tmp_path / "a.csv", wave))
    spread = one(respread(tmp_path / "a.csv", tmp_path / "b.csv"))
    assert quoted.format == spread.format == "trepn"
    assert len(quoted.t_s) == 400
    np.testing.assert_allclose(quoted.power_w, [wave((5 + 100 * i) / 1000) for i in range(400)], atol=1e-6)
    np.testing.assert_allclose(quoted.t_s, np.arange(400) / 10, atol=1e-9)
    np.testing.assert_array_equal(quoted.power_w, spread.power_w)
    assert codes(quoted) == codes(spread) == set()


def test_figures_of_other_runs_in_the_footer_are_doubted(tmp_path: Path) -> None:
    source = trepn(tmp_path / "a.csv", wave)
    found = one(respread(source, tmp_path / "b.csv", ["949017.7", "885362.5"]))
    assert codes(found) == {TraceDoubtCode.FOOTER_OF_OTHER_RUNS}
    assert "949017.7" in found.doubts[0].detail


def test_a_footer_that_disagrees_is_doubted(tmp_path: Path) -> None:
    found = one(trepn(tmp_path / "a.csv", wave, footer="1600000"))
    assert codes(found) == {TraceDoubtCode.FOOTER_DISAGREES}
    assert "1600000" in found.doubts[0].detail


@pytest.mark.parametrize(("status", "doubted"), [("1", False), ("3", False), ("2", True), ("4", True), ("5", True)])
def test_a_supply_is_doubted(tmp_path: Path, status: str, doubted: bool) -> None:
    assert (TraceDoubtCode.CHARGING in codes(one(trepn(tmp_path / "a.csv", wave, status=status)))) == doubted


def test_runs_beside_each_other_are_several_recordings(tmp_path: Path) -> None:
    header = "Time  [ms],Battery Power* [uW],Time  [ms],Battery Power* [mW]"
    rows = [(t, 1_000_000, t + 1, 2000) for t in range(0, 40_000, 100)]
    first, second = read_trace(table(tmp_path / "a.csv", header, rows))
    assert first.power_w.mean() == pytest.approx(1.0)
    assert second.power_w.mean() == pytest.approx(2.0)


def test_raw_is_the_power_where_trepn_gives_a_delta_too(tmp_path: Path) -> None:
    header = "Time  [ms],Battery Status,Time  [ms],Battery Power* [uW] (Raw),Battery Power* [uW] (Delta)"
    rows = [(t, 1, t, 2_500_000, 1) for t in range(0, 40_000, 100)]
    assert one(table(tmp_path / "a.csv", header, rows)).power_w.mean() == pytest.approx(2.5)


def test_a_gap_is_doubted(tmp_path: Path) -> None:
    rows = [(t / 10, 1.0) for t in range(400) if not 100 < t < 140]
    found = one(table(tmp_path / "a.csv", "time [s],power [W]", rows))
    assert codes(found) == {TraceDoubtCode.GAP}
    assert "4 s" in found.doubts[0].detail and "10 s" in found.doubts[0].detail


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("time [s],power [W]", (1, 1)),
        ("t_ms,power_mw", (1000, 1000)),
        ("Time (min),Power (uW)", (1 / 60, 1e6)),
        ("elapsed [us],battery power [mW],temperature [C]", (1e6, 1000, 1)),
    ],
)
def test_plain_csv_by_its_units(tmp_path: Path, header: str, scale: tuple[float, ...]) -> None:
    rows = [[value * factor for value, factor in zip((t / 10, 1.25, 30), scale, strict=False)] for t in range(400)]
    found = one(table(tmp_path / "a.csv", header, rows))
    assert found.format == "csv"
    np.testing.assert_allclose(found.power_w, 1.25)
    assert found.duration_s == pytest.approx(39.9)


def test_current_times_voltage_other_delimiters_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = ["# a logger's own words", "time [s];current [mA];voltage [V]", *(f"{t};500;4" for t in range(40)), "# end"]
    path.write_text("\n".join(lines))
    np.testing.assert_allclose(one(path).power_w, 2.0)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("Time,Power\n(s),(mW)", "{t},2000"),
        ("A logger's export, 2026\n\nTimestamp,Main current,Main voltage\ns,mA,V", "{t},500,4"),
        ("Time,Main,Main Voltage\n[s],[mA],[V]", "{t},500,4"),
    ],
)
def test_units_may_stand_below_the_titles_and_words_above(tmp_path: Path, head: str, row: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join([head, *(row.format(t=t) for t in range(40))]) + "\n")
    found = one(path)
    np.testing.assert_allclose(found.power_w, 2.0)
    assert (found.duration_s, found.doubts) == (39.0, ())


@pytest.mark.parametrize(("time", "row"), [("Time", "{t},{w}"), ("Time", "{t},{w},"), ("t_ms", "np.float64({t}),{w}")])
def test_a_file_compressed_by_gzip_is_read_as_it_is_without(tmp_path: Path, time: str, row: str) -> None:
    lines = [row.format(t=1_700_000_000_000 + 100 * t, w=2 + (t % 7) / 10) for t in range(4000)]
    path = table(tmp_path / "a.csv", f"{time},power [W]", [[line] for line in lines])
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, found = one(path), one(packed)
    np.testing.assert_array_equal(found.power_w, plain.power_w)
    assert (found.facts, codes(found)) == (plain.facts, codes(plain)) and found.duration_s == pytest.approx(399.9)
    packed.write_bytes(gzip.compress(path.read_bytes())[:-2000])
    with pytest.raises(TableError, match="damaged gzip file"):
        one(packed)


def test_a_power_that_current_and_voltage_contradict_is_doubted(tmp_path: Path) -> None:
    def found(current_ma: str) -> set[TraceDoubtCode]:
        header = "time [s],power [mW],current [mA],voltage [V]"
        return codes(one(table(tmp_path / "a.csv", header, [[t, 2000, current_ma, 4] for t in range(40)])))

    assert found("5000") == found("0.5") == {TraceDoubtCode.POWER_DISAGREES}
    assert found("520") == found("-500") == found("") == set()


def test_pymonsoon_writes_seconds_under_milliseconds(tmp_path: Path) -> None:
    rows = [(f"np.float64({(i // 20) * 0.004})", "np.float64(500.0)", "np.float64(4.0)", "") for i in range(200_000)]
    found = one(table(tmp_path / "a.csv", "Time(ms),Main(mA),Main Voltage(V),", rows))
    assert found.format == "monsoon"
    np.testing.assert_allclose(found.power_w, 2.0)
    assert found.duration_s == pytest.approx(39.996)
    assert codes(found) == {TraceDoubtCode.TIME_UNIT, TraceDoubtCode.TIED_TIMES}


def test_powertool_export(tmp_path: Path) -> None:
    rows = [(i / 10, 1500) for i in range(400)]
    found = one(table(tmp_path / "a.csv", "Time (s),Main Avg Power (mW)", rows))
    assert (found.format, codes(found)) == ("monsoon", set())
    np.testing.assert_allclose(found.power_w, 1.5)


def test_a_long_file_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("time [s],power [W]\n")
        file.writelines(f"{i / 5000},1.5\n" for i in range(300_000))
    assert len(one(path).t_s) == 300_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["empty", "time [s],power [mW]"]),
        ("time [s],power [MW]\n1,2\n", ["line 1", "unit 'MW' is none of a power", "`power [mW]`"]),
        ("time [s],power\n1,2\n", ["line 1", "'power'", "no unit", "`power [mW]`"]),
        ("time,power [W]\n1,2\n", ["line 1", "'time'", "no unit", "`time [ms]`"]),
        ("time [s],power [bar]\n1,2\n", ["line 1", "'power [bar]'", "'bar'"]),
        ("time [s],current [mA]\n1,2\n", ["line 1", "voltage"]),
        ("time [s],temperature [C]\n1,2\n", ["line 1", "power"]),
        ("time [s],power [W],power [mW]\n1,2,3\n", ["line 1", "keep one"]),
        ("time [s],power [W]\n1,2\n2,x\n", ["line 3", "'power [W]'", "'x'", "a number"]),
        ("time [s],power [W]\n1,2\n2,nan\n", ["line 3", "'power [W]'", "finite"]),
        ("time [s],power [W]\n1,2\n2\n", ["line 3", "'power [W]'", "nothing"]),
        ("time [s],power [W]\n1,2\n0.5,2\n", ["line 3", "'time [s]'", "0.5 after 1"]),
        ("time [s],power [W]\n1,2\n", ["1 readings", "at least 2"]),
        ("Time(ms),Main(mA)\n1,2\n", ["line 1", "voltage", "MainVoltage"]),
        ("Time(ms),USB(mA),USB Voltage(V)\n1,2,3\n", ["line 1", "main channel"]),
        ("App,Package\n\nTime  [ms],CPU1 Load [%]\n1,2\n", ["line 3", "Battery Power", "CPU1 Load"]),
        ("Time  [ms],Battery Power* [uW]\n1,2\n2,3..4\n", ["line 3", "'Battery Power* [uW]'", "'3..4'"]),
        ("Time  [ms],Battery Power* [uW]\n5,2\n2,3\n", ["line 3", "'Time [ms]'", "2 after 5"]),
        ("Time  [ms],Battery Power* [hp]\n5,2\n2,3\n", ["line 1", "'hp'"]),
    ],
)
def test_a_bad_file_is_told_where_and_how(tmp_path: Path, text: str, told: list[str]) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(TableError) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
    assert [word for word in told if word not in str(caught.value)] == []


def test_a_file_that_is_no_text_or_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe\x00time")
    with pytest.raises(TableError, match="UTF-8"):
        read_trace(path)
    with pytest.raises(TableError, match="No such file"):
        read_trace(tmp_path / "none.csv")


def test_two_recordings_in_one_trepn_file_are_refused(tmp_path: Path) -> None:
    text = trepn(tmp_path / "a.csv", wave).read_text()
    (tmp_path / "a.csv").write_text(f"{text}\n{text}")
    with pytest.raises(TableError, match="second recording"):
        read_trace(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1 min 2 sec", 62), ("45 sec", 45), ("1 hr 3 min", 3780), ("x.db", None)]
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds
