"""Outputs of phones and meters, each with its right value: `../shared/cases/farm-inputs`, F01 to F16."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from orchestrator.energy import battery_draw_a, block_energy, find_invalid
from orchestrator.energy.gauge_readings import gauge_readings
from orchestrator.exchange.power_traces import TraceDoubtCode, read_trace
from orchestrator.model.device import Health
from orchestrator.model.errors import TableError, Unsupported
from orchestrator.model.event import Power
from orchestrator.model.experiment import Conditions
from orchestrator.model.power import ASSUMED
from orchestrator.model.record import DoubtCode, InvalidCode
from tests.unit.energy.blocks import EXACT, S, record
from tests.unit.workers.test_adb import request, server
from tests.waiting import eventually
from workers.connection.adb import AdbConnection, AdbServer, parse_devices
from workers.connection.addresses import over_network
from workers.devices.dumpsys import CPU, GPU, SKIN, parse_thermal
from workers.devices.lookup import unusable
from workers.devices.momentary import parse_nodes
from workers.power import ReadingLost
from workers.power.csv_file import csv_file
from workers.session.conditions.airplane_mode import AirplaneMode

FOLDER = Path(__file__).parents[4] / "shared" / "cases" / "farm-inputs"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is absent: the cases lie beside the checkout")


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def power_of(name: str, count: int = 400, **more: int | None) -> tuple[Power, ...]:
    """The nodes of a case as an agent reads them, one line of currents after the other."""
    lines = text(name).splitlines()
    told = dict(line.split("=") for line in lines if "=" in line)
    currents = [int(line) for line in lines if line.lstrip("-").isdigit()] or [int(told["current_now"])]
    volts = int(told["voltage_now"]) if "voltage_now" in told else None
    fields = {"voltage_uv": volts, "status": "Discharging"} | more
    return tuple(
        Power(seq=i, t_ns=i * S // 4, current_ua=currents[i % len(currents)] - i % 3, **fields) for i in range(count)
    )


def test_f01_a_row_of_nan_costs_itself_alone() -> None:
    thermal = parse_thermal(text("F01_nan_row_thermalservice.txt"))
    assert (thermal.warmest_c(SKIN), thermal.warmest_c(CPU), thermal.warmest_c(GPU)) == (48.2, 71.5, None)


def test_f05_a_sentinel_is_no_current() -> None:
    powers = power_of("F05_gauge_nodes_one_sentinel.txt", voltage_uv=3_960_000)
    rare = tuple(p for p in powers if (p.current_ua or 0) > -(10**9) or p.seq % 20 == 2)
    found = gauge_readings(rare, ASSUMED)
    assert found.left_out.count and "-2147483648" in found.left_out.what
    assert found.raw.min() >= -131_100
    many = [reason.code for reason in find_invalid(record(powers, gauge=None), Conditions())]
    assert InvalidCode.IMPOSSIBLE_READINGS in many, "one in five"


def test_f06_without_a_voltage_energy_has_a_doubt() -> None:
    powers = power_of("F06_no_voltage_nodes.txt", count=800)
    gauge = EXACT.model_copy(update={"ampere_per_unit": 1e-3})
    found = block_energy(record(powers, gauge=gauge))
    assert found is not None and found.load_power_w.value == pytest.approx(0.131 * 3.8, rel=0.02)
    assert DoubtCode.VOLTAGE_ASSUMED in {doubt.code for doubt in found.doubts}


def test_f07_a_voltage_in_mv() -> None:
    assert gauge_readings(power_of("F07_voltage_in_mV_nodes.txt"), ASSUMED).volts.mean() == pytest.approx(3.994)
    nodes = "".join(
        f"/sys/class/power_supply/battery/{line.replace('=', ':')}\n"
        for line in text("F07_voltage_in_mV_nodes.txt").splitlines()
    )
    assert parse_nodes(nodes, 0.0).voltage_v == pytest.approx(3.994)


def test_f08_the_charge_counter_tells_the_unit_of_the_current() -> None:
    (found,) = read_trace(FOLDER / "F08_perfetto_mA_with_charge.pftrace")
    assert found.facts.plain_w == pytest.approx(2.71, rel=0.01)
    assert TraceDoubtCode.UNIT_FOUND in {doubt.code for doubt in found.doubts}


def test_f09_two_gpus_are_refused() -> None:
    with pytest.raises(TableError, match="2 levels in turn, as those of 2 GPUs") as caught:
        read_trace(FOLDER / "F09_two_gpus_evenly.csv")
    assert "nvidia-smi -i 0" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("name", "mean_w", "line"),
    [("F14_cut_last_line.csv", 1.21, "line 5"), ("F14_na_in_nvidia_log.csv", 640 / 3, "line 4, '[N/A]'")],
)
def test_f14_a_row_without_a_reading_is_left_out_and_named(name: str, mean_w: float, line: str) -> None:
    (found,) = read_trace(FOLDER / name)
    assert found.facts.plain_w == pytest.approx(mean_w)
    (doubt,) = [doubt for doubt in found.doubts if doubt.code is TraceDoubtCode.READINGS_LEFT_OUT]
    assert line in doubt.detail


@pytest.mark.parametrize(
    ("name", "mean_w"), [("F15_usb_meter_spaces.txt", 5.02325 * 0.05776), ("F16_units_in_words.csv", 1.156)]
)
def test_f15_f16_common_files_are_read(name: str, mean_w: float) -> None:
    (found,) = read_trace(FOLDER / name)
    assert found.facts.plain_w == pytest.approx(mean_w, rel=1e-3)


def test_f11_a_meters_nan_is_told_by_its_line(tmp_path: Path) -> None:
    head, *lines = text("F11_meter_nan.csv").splitlines(keepends=True)
    path = tmp_path / "meter.csv"
    path.write_text(head)
    meter = csv_file({"path": str(path), "time": "t", "power": "p"})
    meter.start()
    path.write_text(head + "".join(lines))
    eventually(lambda: not meter.is_reading)
    with pytest.raises(ReadingLost, match=r"meter\.csv, line 4: the meter says 'nan'"):
        meter.stop()


def test_f12_no_amperes_before_the_unit_is_known() -> None:
    nodes = "".join(
        f"/sys/class/power_supply/battery/{line.replace('=', ':')}\n"
        for line in text("F12_mA_gauge_before_calibration.txt").splitlines()
    )
    assert battery_draw_a(parse_nodes(nodes, 0.0), None) is None
    milli = EXACT.model_copy(update={"ampere_per_unit": 1e-3})
    assert battery_draw_a(parse_nodes(nodes, 0.0), milli) == pytest.approx(0.412)


def test_f02_a_name_with_a_space() -> None:
    (row,) = parse_devices(text("F02_mdns_name_devices_l.txt"))
    assert row.address == "adb-0123456789ABCDEF-xYz012 (2)._adb-tls-connect._tcp"
    assert row.state == "device"


def test_f03_airplane_mode_by_address() -> None:
    for line in text("F03_addresses_airplane.txt").splitlines()[1:]:
        address, network, _ = line.rsplit(maxsplit=2)
        assert over_network(address) is (network == "yes")
        with pytest.raises(Exception) as caught:  # nothing answers: only a phone over a network is refused before that
            AirplaneMode().check(AdbConnection(address, AdbServer(1)))
        assert ("would cut the network" in str(caught.value)) is (network == "yes")
        assert isinstance(caught.value, Unsupported) is (network == "yes")


def test_f10_no_shell_v2_is_told_by_its_android() -> None:
    def old(client: socket.socket) -> None:
        if request(client).endswith(":features"):
            client.sendall(b"OKAY0003cmd")
            return
        client.sendall(b"OKAY")
        request(client)
        client.sendall(b"FAIL0006closed")

    assert "closes the stream" in text("F10_android6_adbd.txt")
    with server(old) as port, pytest.raises(Unsupported, match="no shell v2") as caught:
        AdbConnection("A", AdbServer(port)).shell(["getprop", "ro.serialno"])
    assert "Android 7" in str(caught.value.remedy)


def test_f13_states_have_advice_of_their_own() -> None:
    rows = parse_devices(text("F13_states_devices_l.txt"))
    assert [row.state for row in rows] == ["authorizing", "connecting", "detached"]
    found = [unusable(row, AdbServer(5037)) for row in rows]
    assert [health for health, _ in found] == [Health.UNAUTHORIZED, Health.OFFLINE, Health.OFFLINE]
    for (_, advice), word in zip(found, ("accept", "wait", "attach"), strict=True):
        assert word in advice
        assert "start Android" not in advice
