"""A worker that is killed in the middle of a block leaves changes behind, which are put back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farm.cli.app import main as farm
from orchestrator.model.experiment import Conditions
from orchestrator.system.config import Settings
from tests.waiting import eventually
from virtual_phones.faults import Charging, Unplug
from workers.devices.device_lock import device_lock
from workers.discovery.crash_recovery import left_behind, restore_devices, restore_supplies
from workers.session.saved_settings import SavedSettings
from workers.session.supply import SupplyJournal, cut_supplies
from workers.session.supply.program import Program

from .conftest import Wiring
from .jobs import assignment_of, know_phones

WORKER = """
import sys
from pathlib import Path
from orchestrator.system.config import Settings
from orchestrator.model.live.lease import Assignment
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host
from workers.execution.run_job import Workbench, run_job

settings = Settings.model_validate_json(sys.argv[1])
assignment = Assignment.model_validate_json(sys.argv[2])
server = AdbServer(settings.adb_port, settings.adb_path)
bench = Workbench(settings, Fleet(), Engines(Host.alone(settings.state)), "doomed")
bench.fleet.enrol(*enrol_phone(AdbConnection(sys.argv[3], server, serial=assignment.serial), settings))
run_job(assignment, bench, lambda: None, lambda phase, *_: print(phase, flush=True))
"""
LONG = {"idle": "1 s", "load": "60 s", "deadline": "2 min"}


def brightness(lab: Wiring) -> str:
    return lab.connection.shell(["settings", "get", "system", "screen_brightness"]).stdout.decode().strip()


@pytest.fixture
def charged(lab: Wiring, lab_settings: Settings) -> Any:
    know_phones(lab_settings, lab)
    lab.phones.control.fault(lab.serial, Charging(on=True))
    lab.connection.shell(["settings", "put", "system", "screen_brightness", "77"])
    yield
    lab.phones.control.fault(lab.serial, Charging(on=False))
    lab.mend()
    lab.connection.shell(["pkill", "-f", "pocketfarm-agent"])


def kill_in_mid_block(lab: Wiring, settings: Settings) -> None:
    """Run a worker of its own, and end it by SIGKILL while the supply is cut."""
    conditions = {"supply": "cut", "screen_dimmed": True, "battery_percent": {}}
    job = assignment_of(lab.serial, LONG, conditions)
    argv = [sys.executable, "-c", WORKER, settings.model_dump_json(), job.model_dump_json(), lab.address]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as worker:

        def is_cut() -> bool:
            assert worker.poll() is None, "it has ended"
            return not lab.phones.control.phones(lab.serial)[0].charging

        try:
            eventually(is_cut, what="the supply was not cut")
        finally:
            worker.kill()
    assert brightness(lab) == "1"


def restored(capsys: pytest.CaptureFixture[str], settings: Settings, *arguments: str) -> tuple[int, list[Any]]:
    capsys.readouterr()
    code = farm(["restore", *arguments, "--json", "--state", str(settings.state)])
    return code, json.loads(capsys.readouterr().out)["restored"]


@pytest.fixture
def of_this_farm(lab_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_ADB_PORT", str(lab_settings.adb_port))
    monkeypatch.setenv("FARM_ADB_PATH", lab_settings.adb_path)


@pytest.mark.usefixtures("charged", "of_this_farm")
def test_farm_restore_puts_back_what_a_killed_worker_left(
    lab: Wiring, lab_settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_in_mid_block(lab, lab_settings)
    assert left_behind(lab_settings.state) == (lab.serial,)
    code, (done,) = restored(capsys, lab_settings, "--all")
    assert (code, done) == (0, {"serial": lab.serial, "supply": True, "settings": ["screen", "awake"], "left": ""})
    assert brightness(lab) == "77" and lab.phones.control.phones(lab.serial)[0].charging
    assert left_behind(lab_settings.state) == ()
    assert restored(capsys, lab_settings) == (0, [])


@pytest.mark.usefixtures("charged")
def test_the_next_worker_switches_the_supply_on_without_the_phone(lab: Wiring, lab_settings: Settings) -> None:
    control = [sys.executable, "-m", "virtual_phones.control", str(lab.phones.control.path), lab.serial, "fault"]
    cut, restore = ([*control, "supply", "--on", on, "--with-data", "on"] for on in ("off", "on"))
    SupplyJournal(lab_settings.state, lab.serial).cut(Program(lab.serial, "command", cut, restore))
    assert not lab.phones.control.phones(lab.serial)[0].charging
    restore_supplies(lab_settings)
    assert lab.phones.control.phones(lab.serial)[0].charging and cut_supplies(lab_settings.state) == ()


@pytest.mark.usefixtures("of_this_farm")
def test_what_cannot_be_put_back_is_told_and_stays(
    lab: Wiring, lab_settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    SavedSettings(lab_settings.state, lab.connection).prepare(Conditions(screen_dimmed=True))
    lab.phones.control.fault(lab.serial, Unplug())
    lab.disconnect()
    code, (away,) = restored(capsys, lab_settings, lab.serial)
    assert code == 1 and "not found" in away["left"] and left_behind(lab_settings.state) == (lab.serial,)
    lab.mend()
    with device_lock(lab_settings.state, lab.serial):
        (busy,) = restore_devices(lab_settings, [lab.serial])
    assert "a session works on the device" in busy.left
    code, (done,) = restored(capsys, lab_settings)
    assert code == 0 and done["settings"] == ["screen", "awake"]


def test_an_unreadable_journal_is_told_not_skipped(lab_settings: Settings, lab: Wiring) -> None:
    for folder in ("supply", "restore"):
        (lab_settings.state / folder).mkdir(parents=True)
        (lab_settings.state / folder / f"{lab.serial}.json").write_text("{")
    assert left_behind(lab_settings.state) == (lab.serial,)
    (done,) = restore_devices(lab_settings, [lab.serial])
    assert "is unreadable" in done.left and "by hand, then delete the file" in done.left


@pytest.mark.parametrize("folder", ["supply", "restore"])
@pytest.mark.usefixtures("of_this_farm")
def test_an_unreadable_journal_ends_a_session_with_its_own_cause(
    lab_settings: Settings, lab: Wiring, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab_settings.state / folder).mkdir(parents=True)
    (lab_settings.state / folder / f"{lab.serial}.json").write_text("{")
    words = ["infer", "--network", "lenet", "--backend", "cpu", "--device", lab.serial]
    assert farm([*words, "--json", "--state", str(lab_settings.state)]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["cause"] == "journal_unreadable" and "by hand, then delete the file" in error["remedy"]


def test_a_supply_that_sticks_stays_in_the_journal(tmp_path: Path) -> None:
    journal = SupplyJournal(tmp_path, "p")
    journal.cut(Program("p", "command", ["true"], ["sh", "-c", "echo no relay >&2; exit 3"]))
    (done,) = restore_devices(Settings(state=tmp_path), ["p"])
    assert "exit status 3: no relay" in done.left and "try this command by hand" in done.left
    assert journal.is_cut and not done.supply
