"""Times in any unit, decimal commas, meters' exports, perfetto; long traces keep the means of all their readings."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from orchestrator.exchange.delimited_table import Table
from orchestrator.exchange.power_traces import Recording, Told, TraceDoubtCode, columns, points, read_trace
from orchestrator.exchange.power_traces.blocks import NotPlain
from orchestrator.exchange.power_traces.means import plain_mean, time_mean
from orchestrator.exchange.power_traces.points import Points, facts_of
from orchestrator.model.errors import TableError

from .write import table

pytestmark = pytest.mark.unit


def one(path: Path, **told: Any) -> Recording:
    (recording,) = read_trace(path, told=Told(**told))
    return recording


def codes(recording: Recording) -> set[TraceDoubtCode]:
    return {doubt.code for doubt in recording.doubts}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("title", "step", "start", "unit"),
    [
        ("time [ms]", 100, 0, "ms"),
        ("time_us", 100_000, 0, "us"),
        ("time", 0.0002, 0, "s"),  # 5 kHz; as milliseconds it would be 5 MHz
        ("timestamp", 1_000_000, 0, "us"),  # as ms once in 1000 s, as ns too short
        ("timestamp", 0.1, 1_700_000_000, "s"),
        ("timestamp", 100, 1_700_000_000_000, "ms"),
        ("timestamp", 100_000, 1_700_000_000_000_000, "us"),
    ],
)
def test_the_unit_of_times_is_read_or_found_and_told(
    tmp_path: Path, title: str, step: float, start: int, unit: str
) -> None:
    count = 20_000 if step == 0.0002 else 400
    path = written(tmp_path / "a.csv", f"{title},power [mW]\n")
    with path.open("a") as file:
        file.writelines(f"{start + i * step!r},1500\n" for i in range(count))
    found = one(path)
    factor = {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]
    assert found.format == "csv" and found.times == f"{title}, in {unit}"
    assert found.duration_s == pytest.approx((count - 1) * step * factor, rel=1e-5)
    assert (TraceDoubtCode.TIME_UNIT_FOUND in codes(found)) == (title in ("time", "timestamp"))


def test_times_that_may_be_of_two_units_are_an_error_until_the_unit_is_said(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "time,power [W]", [(i * 10_000, 1) for i in range(400)])
    with pytest.raises(TableError, match="ms or us") as caught:
        one(path)
    assert "--time-unit ms" in str(caught.value.remedy)
    assert one(path, time_unit="ms").duration_s == pytest.approx(3990)
    assert one(path, time_unit="us").duration_s == pytest.approx(3.99)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_decimal_commas(tmp_path: Path, mark: str) -> None:
    lines = [f"time [s]{mark}current [mA]{mark}voltage [V]"]
    lines += [f"{i / 10:.1f}{mark}{500 + i / 8:.3f}{mark}4,0".replace(".", ",") for i in range(400)]
    found = one(written(tmp_path / "a.csv", "\n".join(lines)))
    np.testing.assert_allclose(found.power_w, (500 + np.arange(400) / 8) * 4e-3, rtol=1e-12)
    assert found.duration_s == pytest.approx(39.9)
    lines[7] = f"0,6{mark}1.500,5{mark}4,0"
    with pytest.raises(TableError, match=r"line 8, column 'current \[mA\]': found '1.500,5'.*0,5"):
        one(written(tmp_path / "b.csv", "\n".join(lines)))


def test_whole_numbers_at_the_top_do_not_hide_decimal_commas_below(tmp_path: Path) -> None:
    text = "time [s];power [W]\n" + "".join(f"{i};2\n" for i in range(100)) + "100,5;2,5\n"
    assert one(written(tmp_path / "a.csv", text)).power_w[-1] == 2.5


@pytest.mark.parametrize("seed", range(4))
def test_blocks_and_rows_give_the_same_figures(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    times, power = np.cumsum(generator.integers(0, 3, 5000)), generator.normal(2, 1, 5000)
    lines = ["x,time [ms],power [W]", *(f"n{i},{times[i]},{watts!r}" for i, watts in enumerate(power.tolist()))]
    lines[2000] = "# a logger's own words"
    table_ = Table(written(tmp_path / "a.csv", "\n".join([*lines, "", "# end"])))
    layout = columns.Layout(
        1, columns.Column(1, "time [ms]", 1e-3), (columns.Column(2, "power [W]", 1.0),)
    )  # fmt: skip
    blocks, rows = (read(table_, layout).finish() for read in (columns._by_blocks, columns._by_rows))
    np.testing.assert_array_equal(blocks[0], rows[0])
    np.testing.assert_array_equal(blocks[1], rows[1])
    assert blocks[2] == rows[2] and blocks[2].readings == 4999 and blocks[2].tied > 500


def test_a_bad_row_of_a_long_table_is_named(tmp_path: Path) -> None:
    rows: list[Sequence[object]] = [(i, 1) for i in range(5000)]
    rows[4321] = ("4321", "1.5 W")
    with pytest.raises(TableError, match=r"line 4323, column 'power \[W\]': found '1.5 W'"):
        one(table(tmp_path / "a.csv", "time [s],power [W]", rows))
    with pytest.raises(NotPlain):
        list(columns.blocks(Table(tmp_path / "a.csv"), 1, [0, 1]))


def test_readings_that_are_put_together_keep_the_means_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst, ties at the ends of blocks, and pauses; by the definition of both means, over all readings."""
    generator = np.random.default_rng(7)
    steps = generator.choice([0.0, 0.001, 0.002], 9973)
    steps[5000] = 3.0
    times = 100 + np.cumsum(steps)
    power = 2 + np.sin(times) + generator.normal(0, 0.3, len(times))
    monkeypatch.setattr(points, "MOST", 512)
    together = Points()
    for part in np.array_split(np.arange(len(times)), 37):
        together.extend(times[part], power[part])
    t_s, power_w, facts = together.finish()
    unique = np.unique(times)
    means = np.array([power[times == time].mean() for time in unique])
    assert len(t_s) == len(power_w) <= 512 < facts.readings == len(times)
    each = len(times) // len(t_s)
    np.testing.assert_allclose(power_w, power[: each * len(t_s)].reshape(-1, each).mean(axis=1))
    assert facts.plain_w == pytest.approx(power.mean(), rel=1e-12)
    assert facts.time_w == pytest.approx(np.trapezoid(means, unique) / (unique[-1] - unique[0]), rel=1e-12)
    assert (facts.tied, facts.pauses) == (len(times) - len(unique), 1)
    assert facts.longest_s == pytest.approx(3.0) and facts.longest_at_s == pytest.approx(times[4999] - times[0])
    whole = Recording(Path("a"), "csv", "power", times, power)
    few = Recording(Path("a"), "csv", "power", t_s, power_w, facts=facts)
    for mean in (plain_mean, time_mean):
        assert mean(few).value == pytest.approx(mean(whole).value, rel=1e-12)
        assert mean(few).std == pytest.approx(mean(whole).std, rel=0.5)
    assert facts_of(times, power).time_w == pytest.approx(facts.time_w, rel=1e-12)


JOULESCOPE = """#time,current,voltage,power,charge,energy
0.0,0.399422,4.74572,1.89553,0,0
0.5,0.400691,4.74479,1.90114,0.200345,0.950568
1.0,0.399392,4.74555,1.89532,0.400042,1.89823
1.5,0.399461,4.74573,1.89572,0.599772,2.84609
2.0,0.399297,4.74579,1.89497,0.799421,3.79357
"""
"""Rows that a Joulescope wrote; `energy` is the meter's own integral of each window of 0.5 s after the first."""


def test_joulescopes_statistics_agree_with_its_own_energy(tmp_path: Path) -> None:
    found = one(written(tmp_path / "a.csv", JOULESCOPE))
    assert (found.format, found.column, found.duration_s) == ("joulescope", "power", 2.0)
    assert float(found.power_w[1:].mean()) * 2.0 == pytest.approx(3.79357, rel=1e-5)


def test_otiis_channels_lie_in_files_beside_each_other(tmp_path: Path) -> None:
    times = np.arange(4000) / 100
    current = table(tmp_path / "Main current - Arc.csv", "Timestamp,Value", [(t, 0.5 + t / 100) for t in times])
    with pytest.raises(TableError, match="no file of the main voltage") as caught:
        one(current)
    assert "--volts" in str(caught.value.remedy)
    assert one(current, volts=4.0).power_w[-1] == pytest.approx((0.5 + times[-1] / 100) * 4)
    voltage = table(tmp_path / "Main voltage - Arc.csv", "Timestamp,Value", [(t, 4 - t / 100) for t in times[::10]])
    found = one(current)
    expected = (0.5 + times / 100) * (4 - np.minimum(times, times[::10][-1]) / 100)
    np.testing.assert_allclose(found.power_w, expected, rtol=1e-9)
    assert found.format == "otii" and found.column == "Main current - Arc x Main voltage - Arc.csv"
    with pytest.raises(TableError, match="voltage alone"):
        one(voltage)
    with pytest.raises(TableError, match="none of Otii's channels"):
        one(table(tmp_path / "mine.csv", "Timestamp,Value", [(0, 1), (1, 1)]))


def _messages() -> dict[str, Any]:
    """perfetto's messages of power, with its field numbers and types, by Google's protobuf."""
    kinds = descriptor_pb2.FieldDescriptorProto
    fields = {
        "Battery": [("charge_counter_uah", 1, kinds.TYPE_INT64), ("current_ua", 3, kinds.TYPE_INT64),
                    ("voltage_uv", 7, kinds.TYPE_INT64)],
        "Descriptor": [("index", 1, kinds.TYPE_UINT32), ("rail_name", 2, kinds.TYPE_STRING)],
        "Energy": [("index", 1, kinds.TYPE_UINT32), ("timestamp_ms", 2, kinds.TYPE_UINT64),
                   ("energy", 3, kinds.TYPE_UINT64)],
        "Rails": [("rail_descriptor", 1, "*Descriptor"), ("energy_data", 2, "*Energy")],
        "Packet": [("timestamp", 8, kinds.TYPE_UINT64), ("battery", 38, "Battery"), ("power_rails", 40, "Rails"),
                   ("compressed_packets", 50, kinds.TYPE_BYTES), ("ftrace", 1, kinds.TYPE_BYTES)],
        "Trace": [("packet", 1, "*Packet")],
    }  # fmt: skip
    file = descriptor_pb2.FileDescriptorProto(name="power.proto", package="p", syntax="proto2")
    for name, members in fields.items():
        message = file.message_type.add(name=name)
        for field, number, kind in members:
            added = message.field.add(name=field, number=number, label=kinds.LABEL_OPTIONAL)
            if isinstance(kind, str):
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".p.{kind.strip('*')}"
                added.label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p.{name}")) for name in fields}


def battery_trace(sign: int, charge: bool = True, voltage: bool = True) -> Any:
    """2 W at 4 V, every 0.25 s for 40 s, between packets of something else."""
    trace = _messages()["Trace"]()
    for i in range(160):
        trace.packet.add(timestamp=i, ftrace=b"\x00" * 1000)
        battery = trace.packet.add(timestamp=10**15 + i * 250_000_000).battery
        battery.current_ua = sign * 500_000
        if charge:
            battery.charge_counter_uah = 3_000_000 - 35 * i
        if voltage:
            battery.voltage_uv = 4_000_000
    return trace


@pytest.mark.parametrize("sign", [1, -1])
def test_a_battery_in_a_perfetto_trace(tmp_path: Path, sign: int) -> None:
    path = tmp_path / "a.perfetto-trace"
    path.write_bytes(battery_trace(sign).SerializeToString())
    found = one(path)
    np.testing.assert_allclose(found.power_w, 2.0)
    assert found.format == "perfetto battery" and found.duration_s == pytest.approx(39.75) and codes(found) == set()


def test_units_and_odd_readings_of_a_battery_in_a_perfetto_trace(tmp_path: Path, seed: int) -> None:
    """A current in mA beside a charge in uAh, a voltage in mV, the end of an integer, and all of it compressed."""
    draw = random.Random(seed)
    for milliamps, millivolts, odd, packed in product((False, True), repeat=4):
        trace = battery_trace(draw.choice((-1, 1)))
        for packet in trace.packet:
            if packet.HasField("battery"):
                packet.battery.current_ua //= 1000 if milliamps else 1
                packet.battery.voltage_uv //= 1000 if millivolts else 1
        if odd:
            told = [packet.battery for packet in trace.packet if packet.HasField("battery")]
            for each in draw.sample(told[1:-1:5], 3):  # side by side they would be a gap
                each.current_ua = draw.choice((-(2**31), 2**31 - 1, 2**32 - 1, -(2**63)))
        path, content = tmp_path / "a.pftrace", trace.SerializeToString()
        path.write_bytes(gzip.compress(content) if packed else content)
        found = one(path)
        assert found.facts.plain_w == pytest.approx(2.0, rel=0.01)
        wanted = {TraceDoubtCode.UNIT_FOUND: milliamps, TraceDoubtCode.READINGS_LEFT_OUT: odd}
        assert codes(found) == {code for code, is_told in wanted.items() if is_told}


def test_a_battery_without_charge_or_voltage(tmp_path: Path) -> None:
    path = tmp_path / "a.pftrace"
    path.write_bytes(battery_trace(-1, charge=False, voltage=False).SerializeToString())
    with pytest.raises(TableError, match="no voltage") as caught:
        one(path)
    assert "--volts" in str(caught.value.remedy)
    found = one(path, volts=3.8)
    assert found.power_w.mean() == pytest.approx(1.9) and codes(found) == {TraceDoubtCode.SIGN_FOUND}


def test_rails_in_deflated_packets_of_a_perfetto_trace(tmp_path: Path) -> None:
    made = _messages()
    inner = made["Trace"]()
    for i in range(200):
        rails = inner.packet.add(timestamp=i).power_rails
        if not i:
            for index, name in enumerate(("GPU", "CPU")):
                rails.rail_descriptor.add(index=index, rail_name=name)
        for index, watts in enumerate((1.25, 0.5)):
            rails.energy_data.add(index=index, timestamp_ms=5000 + i * 200, energy=int(9e9 + watts * 0.2e6 * i))
    outer = made["Trace"]()
    outer.packet.add(compressed_packets=zlib.compress(inner.SerializeToString()))
    path = tmp_path / "a.pftrace"
    path.write_bytes(outer.SerializeToString())
    found = one(path)
    np.testing.assert_allclose(found.power_w, 1.75, rtol=1e-5)
    assert (found.format, found.column) == ("perfetto rails", "the sum of 2 rails")
    path.write_bytes(outer.SerializeToString() + battery_trace(1).SerializeToString())
    with pytest.raises(TableError, match="whole phone") as caught:
        one(path)
    assert "--column rails" in str(caught.value.remedy)
    assert one(path, column="rails").power_w.mean() == pytest.approx(1.75)
    assert one(path, column="battery").power_w.mean() == pytest.approx(2.0)
    path.write_bytes(outer.SerializeToString()[:-20])
    with pytest.raises(TableError, match="cut off"):
        one(path)


def test_pymonsoons_numbers_are_read_in_blocks(tmp_path: Path) -> None:
    lines = ["Time(s),Main(mA),Main Voltage(V),"]
    lines += [f"np.float64({i / 500}),np.float64({500 + i % 7}),np.float64(4.0)," for i in range(40_000)]
    source = columns.blocks(Table(written(tmp_path / "a.csv", "\n".join(lines))), 1, [0, 1, 2])
    current = np.concatenate([block[1] for block in source])
    np.testing.assert_array_equal(current, 500 + np.arange(40_000) % 7)


@pytest.mark.parametrize(
    ("title", "value", "refused"),
    [
        ("rail", lambda i: "ab"[i % 2], True),
        ("gpu", lambda i: i % 3, True),
        ("device_id", lambda i: f"d{i % 2}", True),
        ("battery", lambda i: 87 - i // 40, False),
        ("battery temp [C]", lambda i: 30 + i % 2, False),
        ("index", lambda i: i, False),
        ("sample_in_packet", lambda i: i % 4, False),
    ],
)
def test_a_column_that_tells_devices_apart(
    tmp_path: Path, title: str, value: Callable[[int], object], refused: bool
) -> None:
    draw = random.Random(1)
    rows = [(i / 10, value(i), f"{draw.gauss(1.2, 0.1):.4f}") for i in range(400)]
    path = table(tmp_path / "a.csv", f"time [s],{title},power [W]", rows)
    if not refused:
        assert not {"several_in_one", "readings_left_out"} & {doubt.code for doubt in one(path).doubts}
        return
    with pytest.raises(TableError, match=f"column '{title}': it holds") as caught:
        one(path)
    assert "keep the rows of one" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.pt5", b"\x00\xff\xfe", "PowerTool"),
        ("a.jls", b"jlsfmt\r\n\xff\xfe", "Joulescope UI"),
        ("a.ppk2", b"PK\x03\x04\xff\xfe", "Power Profiler"),
        ("a.xlsx", b"PK\x03\x04\xff\xfe", "spreadsheet"),
        ("trace", b"PK\x03\x04\xff\xfe", "spreadsheet"),
        ("a.csv", b"time [s],power [W]\n1,\xff\n", "UTF-8"),
    ],
)
def test_a_file_of_a_program_is_to_be_exported_by_it(
    tmp_path: Path, seed: int, name: str, content: bytes, words: str
) -> None:
    """Whatever it holds behind its first bytes."""
    generator = np.random.default_rng(seed)
    (tmp_path / name).write_bytes(content + generator.bytes(int(generator.integers(3000))))
    with pytest.raises(TableError) as caught:
        one(tmp_path / name)
    assert words in str(caught.value.remedy)


def test_titles_as_programs_and_numpy_write_them(tmp_path: Path) -> None:
    """Each is of 1.2 W."""
    heads = {
        "Time (seconds),Power (Watts)": (1, 1.2),
        "Seconds,Milliwatts": (1, 1200),
        "Time Elapsed (second),Power/mW": (1, 1200),
        "# time_s,power_w": (1, 1.2),
        "Elapsed [minutes],Power [microwatts]": (1 / 60, 1.2e6),
    }
    for head, (per_s, watts) in heads.items():
        rows = [(f"{i / 10 * per_s:.9f}", watts) for i in range(400)]
        found = one(table(tmp_path / "a.csv", head, rows))
        assert (found.facts.plain_w, found.duration_s) == (pytest.approx(1.2), pytest.approx(39.9)), head
    lines = ["timestamp,vbus_uV,ibus_uA", *(f"{1774531584 + i / 10},5000000,240000" for i in range(400))]
    assert one(written(tmp_path / "b.csv", "\n".join(lines))).facts.plain_w == pytest.approx(1.2)
    spaced = ["# time_s power_w", *(f"{i / 10:.18e}  1.2" for i in range(400))]
    assert one(written(tmp_path / "c.txt", "\n".join(spaced))).facts.plain_w == pytest.approx(1.2)
