"""A supply is cut by the wiring file, else by what the phone offers, and restored from its journal."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.errors import Unsupported
from orchestrator.model.wiring import HubPort, SupplyCommand, WiredDevice, WiredSupply
from workers.devices.fleet import Member
from workers.session.supply import PlannedCut, SupplyJournal, SupplyStuck, find_switch
from workers.session.supply.program import of_wiring
from workers.session.supply.root_node import RootNode

from .scripted import ScriptedPhone

SUSPEND, ENABLED = (f"/sys/class/power_supply/battery/{name}" for name in ("input_suspend", "charging_enabled"))
ROOT = {"su -c id -u": "0\n"}


def member(phone: ScriptedPhone) -> Member:
    facts = DeviceFacts(serial=phone.serial, host="h", kind="phone", source=Source.PHONE, address=phone.address)
    return Member(phone, facts, "/agent")


def asks_for(path: str) -> str:
    return f"su -c cat {path} 2>/dev/null || true"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `uhubctl` that writes down how it was called."""
    program, said = tmp_path / "bin" / "uhubctl", tmp_path / "said"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return said


def test_uhubctl_switches_the_port(hub: Path, tmp_path: Path) -> None:
    wired = WiredDevice(supply=WiredSupply(uhubctl=HubPort(location="1-1.4", port=3)))
    switch = find_switch(member(ScriptedPhone({})), wired, tmp_path)
    journal = SupplyJournal(tmp_path, "R58M")
    journal.cut(switch)
    assert switch.way == "uhubctl" and json.loads((tmp_path / "supply" / "R58M.json").read_text())["way"] == "uhubctl"
    assert SupplyJournal(tmp_path, "R58M").restore(None), "another process, without the phone"
    assert hub.read_text() == "-l 1-1.4 -p 3 -a off\n-l 1-1.4 -p 3 -a on\n"
    assert not journal.is_cut and not journal.restore(None)


def test_a_program_that_is_not_installed_is_told_before_anything_is_run(tmp_path: Path) -> None:
    command = SupplyCommand(cut=("no-such-relay", "off"), restore=("no-such-relay", "on"))
    with pytest.raises(Unsupported, match="`no-such-relay`, which this host does not have"):
        find_switch(member(ScriptedPhone({})), WiredDevice(supply=WiredSupply(command=command)), tmp_path)


def test_what_may_be_cut_stays_in_the_journal(tmp_path: Path) -> None:
    """A program that fails may have cut all the same."""
    journal = SupplyJournal(tmp_path, "p")
    command = SupplyCommand(cut=("sh", "-c", "echo stuck >&2; exit 1"), restore=("true",))
    with pytest.raises(SupplyStuck, match="exit status 1: stuck"):
        journal.cut(of_wiring("p", WiredSupply(command=command)))
    assert journal.is_cut and journal.restore(None)


@pytest.mark.parametrize(("path", "cut", "restore"), [(SUSPEND, "1", "0"), (ENABLED, "0", "1")])
def test_the_battery_driver_s_own_switch_with_root(tmp_path: Path, path: str, cut: str, restore: str) -> None:
    nodes = {asks_for(each): ("0\n" if each == path else "") for each in (SUSPEND, ENABLED)}
    writes = {f"su -c echo {value} > {path}": "" for value in (cut, restore)}
    phone = ScriptedPhone(ROOT | nodes | writes)
    switch = find_switch(member(phone), WiredDevice(), tmp_path)
    assert switch.way == "root" and switch.needs_device
    journal = SupplyJournal(tmp_path, phone.serial)
    journal.cut(switch)
    assert phone.asked[-1] == f"su -c echo {cut} > {path}" and journal.needs_device
    with pytest.raises(SupplyStuck, match="not connected"):
        journal.restore(None)
    assert journal.restore(phone) and phone.asked[-1] == f"su -c echo {restore} > {path}"


@pytest.mark.parametrize(
    ("address", "way"), [("192.168.1.7:5555", "wireless"), ("R58M", ""), ("usb:2-1", ""), ("127.0.0.1:5555", "")]
)
def test_only_a_phone_on_the_network_hangs_on_no_cable(tmp_path: Path, address: str, way: str) -> None:
    phone = member(ScriptedPhone({}, address=address))
    if way:
        assert find_switch(phone, WiredDevice(), tmp_path).way == way
    else:
        with pytest.raises(Unsupported, match="no way to cut its supply"):
            find_switch(phone, WiredDevice(), tmp_path)


def test_a_planned_cut_ends_once(tmp_path: Path, hub: Path) -> None:
    phone = ScriptedPhone({})
    switch = of_wiring("p", WiredSupply(uhubctl=HubPort(location="1", port=1)))
    cut = PlannedCut(switch, SupplyJournal(tmp_path, "p"), phone, expected_s=100.0)
    assert not cut.holds and cut.left_s == 0.0
    began_s = time.monotonic()
    cut.begin()
    left_s = cut.left_s
    assert cut.holds and 100.0 - (time.monotonic() - began_s) <= left_s <= 100.0
    cut.end()
    cut.end()
    assert not cut.holds and hub.read_text().count("-a on") == 1


def test_a_root_node_without_its_phone_says_so() -> None:
    with pytest.raises(SupplyStuck, match="cut in the phone itself"):
        RootNode("p", None, SUSPEND).cut()
