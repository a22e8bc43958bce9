"""Changes to a profile while a phone is watched, without a phone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.model.device import DeviceFacts, DeviceState, Health, Source
from orchestrator.model.enrolment import Enrolment, NodeFact
from orchestrator.system.config import Settings
from workers.connection.base import ShellResult
from workers.devices.fleet import Member
from workers.enrolment import at_rest, ensure_calibrated, store
from workers.enrolment.nodes import batteries
from workers.enrolment.profile import NOT_YET, RETRY_S, probe_permissions
from workers.session.conditions.root import WAYS

BATTERY = b"  AC powered: false\n  USB powered: false\n  level: 70\n  temperature: 243\n"


class Phone:
    """Knows `dumpsys battery` and its gauge, and counts what else it is asked."""

    serial, address, folder = "A", "usb:1-1", "/data/local/tmp/pocketfarm"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def shell(self, argv: list[str], *, deadline_s: float = 10.0) -> ShellResult:
        if argv[:2] == ["dumpsys", "battery"]:
            return ShellResult(0, BATTERY, b"")
        if "current_now" in " ".join(argv):
            return ShellResult(0, b"-173000\n", b"")
        self.asked.append(" ".join(argv))
        return ShellResult(1, b"", b"")

    def shells(self, commands: list[list[str]], *, deadline_s: float = 10.0) -> list[ShellResult]:
        return [self.shell(command, deadline_s=deadline_s) for command in commands]


def settings(folder: Path) -> Settings:
    return Settings(state=folder, host="h")


def profile(**more: object) -> Enrolment:
    return Enrolment.model_validate(
        {"serial": "A", "fingerprint": "x", "enrolled_at": time.time(), "gauge_reason": NOT_YET, **more}
    )


def state(temp_c: float | None, slope: float | None) -> DeviceState:
    return DeviceState(health=Health.READY, battery_temp_c=temp_c, battery_slope_c_per_min=slope)


@pytest.mark.parametrize(
    ("temp_c", "slope", "found"),
    [
        (24.5, 0.05, 24.5),
        (24.5, -0.1, 24.5),
        (31.0, 0.4, None),
        (31.0, -0.4, None),
        (24.5, None, None),
        (None, 0.0, None),
    ],
)
def test_the_reference_temperature_is_that_at_rest(
    tmp_path: Path, temp_c: float | None, slope: float | None, found: float | None
) -> None:
    kept = at_rest(settings(tmp_path), profile(), state(temp_c, slope))
    assert kept.reference_temp_c == found
    stored = store.load(tmp_path, "A", "x")
    assert (stored.reference_temp_c if stored else None) == found


def test_a_reference_temperature_stays(tmp_path: Path) -> None:
    known = profile(reference_temp_c=22.0)
    assert at_rest(settings(tmp_path), known, state(30.0, 0.0)) is known


@pytest.mark.parametrize(
    ("more", "is_tried"),
    [
        ({"version": 3}, True),
        ({"gauge_reason": "it is frozen"}, False),
        ({"gauge_reason": "it is frozen", "enrolled_at": time.time() - RETRY_S - 1}, True),
    ],
)
def test_what_failed_is_not_tried_before_every_job(tmp_path: Path, more: dict[str, object], is_tried: bool) -> None:
    """The commands to the phone show whether it is tried: its agent would be started."""
    store.save(tmp_path, profile(**more))
    phone = Phone()
    facts = DeviceFacts(serial="A", host="h", kind="phone", source=Source.PHONE, fingerprint="x")
    member = Member(phone, facts, "agent")  # type: ignore[arg-type]
    try:
        ensure_calibrated(member, settings(tmp_path), lambda: None)
    except Exception:
        assert is_tried, "this phone can run nothing"
    assert any("runs/enrol" in words for words in phone.asked) == is_tried


def node(folder: str, **values: str) -> list[NodeFact]:
    return [NodeFact(path=f"/sys/class/power_supply/{folder}/{name}", value=value) for name, value in values.items()]


def test_batteries_of_a_phone_are_told_apart_from_drivers_and_styluses() -> None:
    cell = {"type": "Battery", "current_now": "-1", "charge_full_design": "2200000"}
    first, other = node("battery", **cell), node("battery2", **cell | {"charge_full_design": "2150000"})
    same, stylus = node("maxfg", **cell), node("pen", **cell | {"charge_full_design": "9000", "scope": "Device"})
    usb = node("usb", type="USB", current_now="5")
    assert batteries([*first, *same, *stylus, *usb]) == ("battery",)
    assert batteries([*first, *other, *stylus]) == ("battery", "battery2")
    assert batteries([]) == ()


@pytest.mark.parametrize("way", [*WAYS, None])
def test_root_is_found_in_whatever_way_the_phone_gives_it(way: tuple[str, ...] | None) -> None:
    class Rooted(Phone):
        def shell(self, argv: list[str], *, deadline_s: float = 10.0) -> ShellResult:
            given = argv[-1] == "id -u" and tuple(argv[:-1]) == way
            return ShellResult(0, b"0\n", b"") if given else ShellResult(1, b"", b"")

    assert probe_permissions(Rooted())["root"] is (way is not None)  # type: ignore[arg-type]
