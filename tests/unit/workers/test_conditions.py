"""Gates open and close at their thresholds; what the device does not tell is no obstacle, and unproven.

Settings as real phones answer; those of virtual phones are in tests/integration/workers."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.model.device import DeviceState, Health
from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import NEEDS, Conditions
from workers.connection.adb import AdbConnection, AdbServer
from workers.session.conditions import SETTINGS
from workers.session.conditions.affinity import cores_for
from workers.session.conditions.airplane_mode import AirplaneMode
from workers.session.conditions.awake import NEVER_MS, Awake, look
from workers.session.conditions.background import BackgroundStopped
from workers.session.conditions.bluetooth import BluetoothOff
from workers.session.conditions.fixed_performance import FixedPerformance
from workers.session.conditions.locked_clocks import LockedClocks
from workers.session.conditions.screen import ScreenDimmed
from workers.session.conditions.sync import SyncOff
from workers.session.preconditions import affinity_proof, check_gates, proofs_of

from .scripted import ScriptedPhone

WANTED = Conditions.model_validate(
    {
        "battery_percent": {"min": 30, "max": 80},
        "battery_temp_max": "35 C",
        "thermal_status_max": 1,
        "free_storage": "1 GiB",
    }
)
GOOD = DeviceState(
    health=Health.READY, battery_percent=50, battery_temp_c=35.0, thermal_status=1, free_storage_bytes=1 << 30
)


def test_all_is_well_at_the_thresholds() -> None:
    check_gates("p", GOOD, WANTED)
    check_gates("p", GOOD.model_copy(update={"battery_percent": 30}), WANTED)
    check_gates("p", GOOD.model_copy(update={"battery_percent": 80}), WANTED)


def test_what_is_unknown_is_no_obstacle() -> None:
    check_gates("p", DeviceState(health=Health.READY), WANTED)


@pytest.mark.parametrize(
    ("change", "words", "retry_after_s"),
    [
        ({"battery_percent": 20.0}, "below 30 %", 600.0),
        ({"battery_percent": 90.0}, "above 80 %", 1200.0),
        ({"battery_temp_c": 40.0}, "above 35 C", 300.0),
        ({"thermal_status": 3}, "thermal status 3", 120.0),
        ({"free_storage_bytes": 5 << 20}, "5 MiB of storage", 600.0),
    ],
)
def test_each_gate(change: dict[str, float], words: str, retry_after_s: float) -> None:
    with pytest.raises(ConditionNotMet, match=words) as caught:
        check_gates("p", GOOD.model_copy(update=change), WANTED)
    assert caught.value.retry_after_s == retry_after_s
    assert caught.value.device == "p" and caught.value.remedy


def test_everything_unmet_is_told_at_once() -> None:
    bad = GOOD.model_copy(update={"battery_percent": 10.0, "battery_temp_c": 50.0})
    with pytest.raises(ConditionNotMet) as caught:
        check_gates("p", bad, WANTED)
    assert "battery at 10 %" in str(caught.value) and "battery at 50 C" in str(caught.value)
    assert caught.value.retry_after_s == 1200.0


def test_a_phone_over_wi_fi_keeps_its_radio() -> None:
    with pytest.raises(Unsupported, match="cut the network"):
        AirplaneMode().check(AdbConnection("192.168.1.20:5555", AdbServer(1)))


@pytest.mark.parametrize(
    ("wanted", "state", "words"),
    [
        ({"battery_temp_min": "20 C"}, {"battery_temp_c": 18.0}, "cold: battery at 18 C, below 20 C"),
        ({"skin_temp_max": "34 C"}, {"skin_temp_c": 36.5}, "cooling: skin at 36.5 C, above 34 C"),
        ({"supply": "discharging"}, {"charging": True}, "a supply is connected"),
        ({"settled": True}, {"battery_temp_c": 26.5}, "cooling: battery at 26.5 C, at rest it has 24 C"),
        ({"settled": True}, {"battery_temp_c": 22.0}, "warming up: battery at 22 C"),
        ({"settled": True}, {"battery_temp_c": 24.5}, "not watched for two minutes"),
        ({"settled": True}, {"battery_temp_c": 24.5, "battery_slope_c_per_min": -0.3}, "changes by -0.30 C a minute"),
    ],
)
def test_each_further_gate(wanted: dict[str, Any], state: dict[str, Any], words: str) -> None:
    conditions, known = Conditions.model_validate(wanted), DeviceState(health=Health.READY, **state)
    with pytest.raises(ConditionNotMet, match=words) as caught:
        check_gates("p", known, conditions, 24.0)
    assert 30.0 <= caught.value.retry_after_s <= 1200.0
    check_gates("p", DeviceState(health=Health.READY), conditions, 24.0)


def test_a_settled_phone_may_start() -> None:
    state = DeviceState(health=Health.READY, battery_temp_c=24.9, battery_slope_c_per_min=-0.19)
    check_gates("p", state, Conditions(settled=True), 24.0)
    with pytest.raises(Unsupported, match="temperature at rest is not known"):
        check_gates("p", state, Conditions(settled=True), None)


def test_the_wait_follows_what_was_seen_of_the_phone() -> None:
    cooling = GOOD.model_copy(update={"battery_temp_c": 39.0, "battery_slope_c_per_min": -2.0})
    with pytest.raises(ConditionNotMet) as caught:
        check_gates("p", cooling, WANTED, 24.0)
    assert 120.0 < caught.value.retry_after_s < 150.0, "four degrees at two a minute, slower towards the end"


def test_proofs_say_what_the_phone_said() -> None:
    state = DeviceState(health=Health.READY, battery_percent=50.0, thermal_status=0)
    conditions = Conditions.model_validate({"skin_temp_max": "34 C", "supply": "discharging"})
    proofs = {proof.name: proof for proof in proofs_of(state, conditions)}
    assert proofs["battery_percent"].before == "50 %" and proofs["battery_percent"].proven
    assert not proofs["skin_temp"].proven and proofs["skin_temp"].wanted == "at most 34 C"
    assert not proofs["supply"].proven and not proofs["battery_temp"].proven and "settled" not in proofs


def test_nothing_is_switched_that_is_not_wanted() -> None:
    assert [name for name, setting in SETTINGS.items() if setting.wanted(Conditions())] == ["awake"]


def power(state: str, *, stays_on: bool = False, off_after_ms: int = NEVER_MS) -> str:
    """Return the state as Android prints it, with lines in between that are much alike."""
    return (
        f"Power Manager State:\n  mDirty=0x0\n  mWakefulness={state}\n  mWakefulnessChanging=false\n"
        f"  mStayOn={str(stays_on).lower()}\n  mStayOnWhilePluggedInSetting=7\n\nSleep timeout: -1 ms\n"
        f"Screen off timeout: {off_after_ms} ms\nScreen dim duration: 7000 ms\n\nWake Locks: size=0\n"
    )


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (power("Awake"), ("Awake, no time-out", True)),
        (power("Awake", off_after_ms=10_000), ("Awake, off after 10 s", False)),
        (power("Awake", stays_on=True, off_after_ms=10_000), ("Awake, no time-out", True)),
        (power("Asleep"), ("Asleep, no time-out", False)),
        ("", ("", False)),
    ],
)
def test_a_screen_lock_takes_the_proof_of_being_awake(said: str, held: tuple[str, bool]) -> None:
    assert look(ScriptedPhone({"dumpsys power": said})) == held


def test_a_phone_that_takes_no_settings_is_measured_without_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.session.conditions.awake.WAKE_S", 0.0)
    phone = ScriptedPhone({"dumpsys power": power("Awake", off_after_ms=30_000)})
    assert Awake().prepare(phone) == ("Awake, off after 30 s", False)
    saved = Awake().save(phone)
    assert saved["screen_off_timeout"] == ""
    phone.asked.clear()
    Awake().restore(phone, saved)
    assert phone.asked == [], "what was not read is not written"


HAS_SVC = {"sh -c command -v svc": "/system/bin/svc"}
HAS_BLUETOOTH = {**HAS_SVC, "settings get global bluetooth_on": "1\n"}


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ({}, Unsupported, "the phone has no `svc`"),
        (
            {**HAS_SVC, "settings get global bluetooth_on": "null\n"},
            Unsupported,
            "'null': there is no Bluetooth service",
        ),
        ({**HAS_BLUETOOTH, "svc bluetooth disable": (1, "not allowed")}, Unsupported, "be switched: not allowed"),
        ({**HAS_BLUETOOTH, "svc bluetooth disable": (255, "")}, Unsupported, "ends with status 255"),
        ({**HAS_BLUETOOTH, "svc bluetooth disable": ""}, ConditionNotMet, "bluetooth_on reads '1'"),
    ],
)
def test_bluetooth_that_does_not_go_off(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], error: type[Exception], words: str
) -> None:
    monkeypatch.setattr("workers.session.conditions.bluetooth.SWITCH_S", 0.0)
    with pytest.raises(error, match=words) as caught:
        BluetoothOff().prepare(ScriptedPhone(answers))
    assert caught.value.device == "R58M" and "by hand" in caught.value.remedy  # type: ignore[attr-defined]


def test_a_bluetooth_that_the_owner_switched_off_stays_off() -> None:
    phone = ScriptedPhone({**HAS_SVC, "settings get global bluetooth_on": "0\n", "svc bluetooth disable": ""})
    saved = BluetoothOff().save(phone)
    assert BluetoothOff().prepare(phone) == ("off", True)
    BluetoothOff().restore(phone, saved)
    assert "svc bluetooth enable" not in phone.asked


def test_bluetooth_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.session.conditions.bluetooth.SWITCH_S", 0.0)
    phone = ScriptedPhone({"settings get global bluetooth_on": "0\n", "svc bluetooth enable": ""})
    with pytest.raises(ConditionNotMet, match="bluetooth_on reads '0'"):
        BluetoothOff().restore(phone, {"bluetooth_on": "1"})


CONTENT = "Data connected: true\nBattery saver: false\nAuto sync: u0={} \nMemory low: false\n"


def test_sync_that_is_on_cannot_be_switched_from_a_shell() -> None:
    phone = ScriptedPhone({"dumpsys content": CONTENT.format("true")})
    with pytest.raises(Unsupported, match="no shell command switches it"):
        SyncOff().check(phone)
    assert phone.asked == ["dumpsys content"], "nothing was changed"


@pytest.mark.parametrize(("content", "proven"), [(CONTENT.format("false"), True), ("", False)])
def test_sync_is_proven_by_the_sync_manager_alone(content: str, proven: bool) -> None:
    answers = {
        "dumpsys content": content,
        "settings get global auto_sync": "0\n",
        "settings put global auto_sync 0": "",
    }
    held = SyncOff().prepare(ScriptedPhone(answers))
    assert (held.proven, bool(held.value)) == (proven, True)


def test_a_mode_that_the_maker_did_not_build_in() -> None:
    said = (
        "Failed to set FIXED_PERFORMANCE mode\nThis is likely because Power HAL AIDL is not implemented on this device"
    )
    phone = ScriptedPhone({"cmd power set-fixed-performance-mode-enabled false": said})
    with pytest.raises(Unsupported, match="Failed to set FIXED_PERFORMANCE"):
        FixedPerformance().check(phone)


def test_a_phone_without_root_keeps_its_clocks() -> None:
    with pytest.raises(Unsupported, match="needs root"):
        LockedClocks().check(ScriptedPhone({"su -c id -u": (1, "Permission denied")}))


CLOCKS = "/sys/devices/system/cpu/cpufreq"


def cores(*clusters: tuple[str, int]) -> ScriptedPhone:
    answers = {f"ls {CLOCKS}": "\n".join(f"policy{index}" for index in range(len(clusters)))}
    for index, (related, khz) in enumerate(clusters):
        answers[f"cat {CLOCKS}/policy{index}/related_cpus"] = related
        answers[f"cat {CLOCKS}/policy{index}/cpuinfo_max_freq"] = str(khz)
    return ScriptedPhone(answers)


def test_big_and_little_cores_by_their_highest_clock() -> None:
    phone = cores(("4 5", 2348000), ("0 1 2 3", 1803000), ("6 7", 2850000))
    assert [cores_for(phone, which) for which in ("big", "little", "any")] == ["6,7", "0,1,2,3", ""]


@pytest.mark.parametrize("phone", [cores(("0 1 2 3", 2265600)), cores(("0 1", 1500000), ("2 3", 1500000)), cores()])
def test_cores_that_are_alike_have_no_big_ones(phone: ScriptedPhone) -> None:
    with pytest.raises(Unsupported, match="no core is big"):
        cores_for(phone, "big")


@pytest.mark.parametrize(
    ("bound", "is_virtual", "held", "proven"),
    [
        ((6, 7), False, "cores 6,7", True),
        ((0, 1, 6, 7), False, "cores 0,1,6,7", False),
        ((), False, "", False),
        ((6, 7), True, "cores 6,7 of the host", False),
    ],
)
def test_the_cores_that_the_agent_read_back_are_the_proof(
    bound: tuple[int, ...], is_virtual: bool, held: str, proven: bool
) -> None:
    (found,) = affinity_proof(Conditions(affinity="big"), "6,7", bound, is_virtual=is_virtual)
    assert (found.wanted, found.held, found.proven) == ("big: 6,7", held, proven)
    assert affinity_proof(Conditions(), "", bound, is_virtual=is_virtual) == ()


def with_nodes(phone: ScriptedPhone, present: str, online: str) -> ScriptedPhone:
    nodes = {"present": present, "online": online}
    phone.answers |= {f"cat /sys/devices/system/cpu/{name}": text for name, text in nodes.items()}
    return phone


@pytest.mark.parametrize(
    ("present", "online", "wanted", "words"),
    [
        ("0-7", "0-3", "big", "cores 6,7 are offline now; online: 0,1,2,3"),
        ("0-7", "0-3,6", "6-7", "cores 7 are offline now; online: 0,1,2,3,6"),
        ("0-9", "0-7", "big", "cores 8,9 are offline now"),
    ],
)
def test_cores_that_are_switched_off_may_come_back(present: str, online: str, wanted: str, words: str) -> None:
    phone = with_nodes(cores(("0 1 2 3", 1803000), ("4 5", 2348000), ("6 7", 2850000)), present, online)
    with pytest.raises(ConditionNotMet, match=words):
        cores_for(phone, wanted)
    assert cores_for(with_nodes(phone, "0-7", "0-7"), "6-7") == "6,7"


def test_cores_that_there_are_not_do_not_come() -> None:
    with pytest.raises(Unsupported, match="it has no cores 8,9; it has 0,1,2,3"):
        cores_for(with_nodes(cores(), "0-3", "0-3"), "0,8-9")


def test_background_processes_are_counted_where_the_phone_lists_them() -> None:
    apps = "USER\nroot\nsystem\nu0_a12\nu0_a99\nshell\n"
    held = BackgroundStopped().prepare(ScriptedPhone({"ps -A -o USER": apps, "am kill-all": ""}))
    assert held == ("2 processes of apps", True)
    old = BackgroundStopped().prepare(ScriptedPhone({"am kill-all": ""}))
    assert old == ("", False)
    with pytest.raises(Unsupported, match="cannot be ended"):
        BackgroundStopped().prepare(ScriptedPhone({"am kill-all": (1, "Security exception")}))


def test_a_phone_whose_shell_may_not_write_settings_is_refused_at_once() -> None:
    """Waiting does not help it: it is no condition that is not met now."""
    get, put = "settings get system screen_brightness", "settings put system screen_brightness 128"
    with pytest.raises(Unsupported, match="cannot write its settings"):
        ScreenDimmed().check(ScriptedPhone({get: "128\n", put: (255, "SecurityException")}))
    phone = ScriptedPhone({get: "128\n", put: ""})
    ScreenDimmed().check(phone)
    assert phone.asked == [get, put], "it stays as it is"


def test_each_need_of_a_condition_is_what_its_setting_finds_out() -> None:
    """Placement asks a profile for what enrolment writes into it, whatever conditions there will be."""
    assert {need.permission for _, need in NEEDS} >= {each.permission for each in SETTINGS.values()}
    for field, need in NEEDS:
        wanted = Conditions.model_validate({field: need.when})
        assert need in wanted.needs() and need not in Conditions().needs()
        assert need.permission in {each.permission for each in SETTINGS.values() if each.wanted(wanted)}
