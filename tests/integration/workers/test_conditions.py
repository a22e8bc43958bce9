"""Conditions on virtual phones: switched, read back, proven, put back; and refused where a phone cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.errors import ConditionNotMet, FarmError, Unsupported
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from orchestrator.model.wiring import WiredDevice
from tests import phones as mending
from tests.phones import start_phones
from tests.servers import private_adb_server, required
from virtual_phones.launch import VirtualPhones
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.fleet import Member
from workers.devices.probe import Probed, phone_facts, read_properties, read_state
from workers.session.conditions.clock_nodes import read_node
from workers.session.preconditions import check_gates, check_possible
from workers.session.saved_settings import SavedSettings

PROFILES = ["galaxy_s7", "pixel_7", "pixel_7_rooted", "galaxy_s24", "sd888_hdk"]
"""Android 8 without much; Android 14; the same with root; another; Android 11."""
MIN_FREQ = "/sys/devices/system/cpu/cpufreq/policy6/scaling_min_freq"
GPU_MIN = "/sys/class/misc/mali0/device/scaling_min_freq"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AdbServer, VirtualPhones]]:
    folder = tmp_path_factory.mktemp("several")
    with private_adb_server(folder) as adb, start_phones(folder / "phones", PROFILES) as phones:
        server = AdbServer(adb.port, required("adb"))
        mending.connect_only(server, phones.serials)
        yield server, phones


@pytest.fixture
def phone(several: tuple[AdbServer, VirtualPhones], request: pytest.FixtureRequest) -> AdbConnection:
    """A phone by its profile: `@pytest.mark.parametrize("phone", [...], indirect=True)`."""
    server, phones = several
    shown = phones.phones[PROFILES.index(getattr(request, "param", "pixel_7_rooted"))]
    mending.connect(server, shown.serial)
    return AdbConnection(shown.serial, server, serial=shown.name)


def member(phone: AdbConnection, **more: Any) -> Member:
    from orchestrator.model.event import Hello

    hello = Hello(seq=0, t_ns=0, agent_version="1", command="probe", pid=1, abi="x86_64", cores=8, page_bytes=4096)
    return Member(
        phone,
        phone_facts(phone, "h", read_properties(phone), Probed(hello, (), ()), ()).model_copy(update=more),
        "/agent",
    )


def possible(phone: AdbConnection, state: Path, wired: WiredDevice | None = None, **wanted: Any) -> tuple[str, Any]:
    conditions = Conditions.model_validate(wanted)
    return check_possible(member(phone), conditions, wired or WiredDevice(), state, None)


def prepared(phone: AdbConnection, state: Path, **wanted: Any) -> tuple[SavedSettings, ConditionProof]:
    saved = SavedSettings(state, phone)
    awake, proof = saved.prepare(Conditions.model_validate(wanted))
    assert awake.name == "awake" and awake.proven
    return saved, proof


def said(phone: AdbConnection, *argv: str) -> str:
    return phone.shell(argv).stdout.decode().strip()


@pytest.mark.parametrize("phone", PROFILES[1:], indirect=True)
def test_airplane_mode_is_read_back_and_put_back(phone: AdbConnection, tmp_path: Path) -> None:
    assert possible(phone, tmp_path, airplane_mode=True) == ("", None)
    saved, proof = prepared(phone, tmp_path, airplane_mode=True)
    assert said(phone, "cmd", "connectivity", "airplane-mode") == proof.held == "enabled" and proof.proven
    assert proof.before == "airplane_mode=disabled"
    assert saved.restore() == ("airplane_mode", "awake")
    assert said(phone, "cmd", "connectivity", "airplane-mode") == "disabled"


def test_battery_saver_goes_off_and_comes_back(phone: AdbConnection, tmp_path: Path) -> None:
    said(phone, "cmd", "power", "set-mode", "1")
    assert possible(phone, tmp_path, battery_saver_off=True) == ("", None)
    saved, proof = prepared(phone, tmp_path, battery_saver_off=True)
    assert (proof.before, proof.held, proof.proven) == ("low_power=1", "off", True)
    assert said(phone, "settings", "get", "global", "low_power") == "0"
    assert saved.restore() == ("battery_saver", "awake")
    assert said(phone, "settings", "get", "global", "low_power") == "1"


def test_bluetooth_goes_off_and_comes_back(phone: AdbConnection, tmp_path: Path) -> None:
    assert possible(phone, tmp_path, bluetooth_off=True) == ("", None)
    saved, proof = prepared(phone, tmp_path, bluetooth_off=True)
    assert (proof.before, proof.held, proof.proven) == ("bluetooth_on=1", "off", True)
    assert said(phone, "settings", "get", "global", "bluetooth_on") == "0"
    assert saved.restore() == ("bluetooth", "awake")
    assert said(phone, "settings", "get", "global", "bluetooth_on") == "1"


@pytest.mark.parametrize("phone", ["pixel_7"], indirect=True)
def test_an_airplane_mode_of_the_owner_stays_on(phone: AdbConnection, tmp_path: Path) -> None:
    phone.shell(["cmd", "connectivity", "airplane-mode", "enable"])
    saved, _ = prepared(phone, tmp_path, airplane_mode=True)
    saved.restore()
    assert said(phone, "cmd", "connectivity", "airplane-mode") == "enabled"
    phone.shell(["cmd", "connectivity", "airplane-mode", "disable"])


@pytest.mark.parametrize("phone", ["galaxy_s7"], indirect=True)
@pytest.mark.parametrize(
    "wanted",
    [
        {"airplane_mode": True},
        {"clocks": "fixed_performance"},
        {"clocks": "locked"},
        {"supply": "cut"},
        {"settled": True},
    ],
)
def test_what_an_old_phone_cannot_do_is_refused_before_anything_is_changed(
    phone: AdbConnection, tmp_path: Path, wanted: dict[str, Any]
) -> None:
    with pytest.raises(Unsupported) as caught:
        possible(phone, tmp_path, **wanted)
    assert caught.value.device == phone.serial and caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("phone", PROFILES[:1], indirect=True)
def test_a_phone_is_woken_kept_awake_and_put_to_sleep_again(phone: AdbConnection, tmp_path: Path) -> None:
    phone.shell(["input", "keyevent", "KEYCODE_SLEEP"])
    saved = SavedSettings(tmp_path, phone)
    (awake,) = saved.prepare(Conditions())
    assert awake.before == "wakefulness=Asleep, screen_off_timeout=30000, stay_on_while_plugged_in=0"
    assert (awake.held, awake.proven) == ("Awake, no time-out", True)
    assert saved.restore() == ("awake",)
    assert said(phone, "settings", "get", "system", "screen_off_timeout") == "30000"
    assert "mWakefulness=Asleep" in said(phone, "dumpsys", "power")
    phone.shell(["input", "keyevent", "KEYCODE_WAKEUP"])


@pytest.mark.parametrize("phone", PROFILES[:1], indirect=True)
def test_a_setting_that_the_phone_cannot_note_is_left_alone(phone: AdbConnection, tmp_path: Path) -> None:
    """The disk, which is flushed meanwhile, does not say either that it was changed."""
    in_the_way = f"{phone.folder}/restore.json.new/x"
    phone.shell(["mkdir", "-p", in_the_way])
    saved = SavedSettings(tmp_path, phone)
    with pytest.raises(FarmError):
        saved.prepare(Conditions())
    assert saved.changed == () and said(phone, "settings", "get", "system", "screen_off_timeout") == "30000"
    phone.shell(["rm", "-r", f"{phone.folder}/restore.json.new"])
    saved.prepare(Conditions())
    assert SavedSettings(tmp_path, phone).changed == ("awake",)
    saved.restore()


@pytest.mark.parametrize("phone", PROFILES, indirect=True)
def test_settings_that_every_phone_has(phone: AdbConnection, tmp_path: Path) -> None:
    saved = SavedSettings(tmp_path, phone)
    proofs = {p.name: p for p in saved.prepare(Conditions(screen_dimmed=True, sync_off=True, background_stopped=True))}
    assert proofs["screen"].proven and "screen_brightness=1" in proofs["screen"].held
    assert not proofs["sync"].proven, "this phone has no sync manager to ask"
    assert proofs["background"].wanted == "ended"
    assert said(phone, "settings", "get", "global", "auto_sync") == "0"
    assert saved.restore() == ("background", "sync", "screen", "awake"), "the last change first"
    assert said(phone, "settings", "get", "global", "auto_sync") == "1"
    assert said(phone, "settings", "get", "system", "screen_brightness") == "128"
    assert saved.restore() == ()


@pytest.mark.parametrize("phone", ["pixel_7"], indirect=True)
def test_fixed_performance_mode(phone: AdbConnection, tmp_path: Path) -> None:
    before = read_node(phone, MIN_FREQ)
    possible(phone, tmp_path, clocks="fixed_performance")
    saved, proof = prepared(phone, tmp_path, clocks="fixed_performance")
    assert proof.proven and "1995-1995 MHz" in proof.held and read_node(phone, MIN_FREQ) == "1995000"
    saved.restore()
    assert read_node(phone, MIN_FREQ) == before != "1995000"


def test_clocks_locked_with_root(phone: AdbConnection, tmp_path: Path) -> None:
    before = [read_node(phone, path) for path in (MIN_FREQ, GPU_MIN)]
    possible(phone, tmp_path, clocks="locked")
    saved, proof = prepared(phone, tmp_path, clocks="locked")
    assert [read_node(phone, path) for path in (MIN_FREQ, GPU_MIN)] == ["2850000", "848000000"]
    assert proof.proven and "policy6/scaling_min_freq=2850000" in proof.held
    saved.restore()
    assert [read_node(phone, path) for path in (MIN_FREQ, GPU_MIN)] == before


def test_clocks_that_heat_holds_down_are_not_locked(
    several: tuple[AdbServer, VirtualPhones], phone: AdbConnection, tmp_path: Path
) -> None:
    from virtual_phones.faults import ClockCap

    several[1].control.fault(phone.serial, ClockCap(share=0.5))
    try:
        with pytest.raises(ConditionNotMet, match="instead of"):
            prepared(phone, tmp_path, clocks="locked")
        assert SavedSettings(tmp_path, phone).restore() == ("locked_clocks", "awake"), (
            "it was journalled before it was tried"
        )
    finally:
        several[1].control.clear()


@pytest.mark.parametrize("phone", ["pixel_7"], indirect=True)
def test_cores_by_their_clocks(phone: AdbConnection, tmp_path: Path) -> None:
    assert possible(phone, tmp_path, affinity="big")[0] == "6,7"
    assert possible(phone, tmp_path, affinity="little")[0] == "0,1,2,3"


@pytest.mark.parametrize("phone", ["pixel_7"], indirect=True)
def test_the_state_tells_the_skin(phone: AdbConnection) -> None:
    state = read_state(phone, "phone")
    assert state.skin_temp_c is not None and 15 < state.skin_temp_c < 60
    with pytest.raises(ConditionNotMet, match="skin at"):
        check_gates("p", state, Conditions(skin_temp_max=state.skin_temp_c - 5))
