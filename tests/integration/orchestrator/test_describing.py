"""The words of people on devices, by which experiments choose them, and the history of devices."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.ledger.said import history
from orchestrator.ledger.said.history import was_of
from orchestrator.model.device import Device, DeviceNote, Reading, project_of
from orchestrator.model.errors import NotAllowed, SpecError
from orchestrator.model.people import Door, Role
from orchestrator.model.rights import Actor, Grants
from orchestrator.scheduling import device_history
from orchestrator.scheduling.device_history import LOOK_S, DeviceHistory
from orchestrator.system.config import Settings
from tests.integration.orchestrator.sites import ME, site
from tests.unit.orchestrator import make


@pytest.fixture
def ledger(farm: Settings, url: str) -> Iterator[Ledger]:
    with Ledger(url) as opened:
        yield opened


def test_experiments_choose_by_what_people_say(farm: Settings, ledger: Ledger, redis: Redis, seed: int) -> None:
    """Hosts announce other words in their place, which do not count; a project's labels are for its experiments."""
    chance, there, stage = random.Random(seed), Inventory(redis), site(farm, ledger, redis)
    said: dict[str, dict[str, str]] = {serial: {} for serial in "ABCD"}
    keys = ["rack", "vision/rack", "site", "speech/site", "owner"]
    for project in ("vision", "speech"):
        ledger.people.add_project(project, "")
    for serial in said:
        lie = DeviceNote(labels=("rack=1", "rack=2"), owner="mallory")
        there.announce_device(make.device(serial).model_copy(update={"noted": lie}))
    for step in range(12):
        serials, key = chance.sample("ABCD", chance.randint(1, 3)), chance.choice(keys)
        value = chance.choice(["", "1", "2"])
        labels, owner = ((), value) if key == "owner" else ([f"{key}={value}"], None)
        acts.describing.describe(stage, ME, serials, labels, owner=owner)
        for serial in serials:
            said[serial][key] = value
        key, value = chance.choice(keys), chance.choice(["1", "2"])
        project = chance.choice(["common", "vision", "speech"])
        where = f'owner == "{value}"' if key == "owner" else f'"{key}={value}" in labels'
        may = key.rpartition("/")[0] in ("", project)
        wanted = {serial for serial, own in said.items() if may and own.get(key) == value}
        experiment = make.experiment(name=f"chosen-{step}", devices=make.DeviceChoice(where=where))
        try:
            done = acts.submit(stage, ME, experiment, Path(), project=project)
            assert {each for job in done.expansion.jobs for each in job.candidates} == wanted, (seed, said, where)
        except SpecError:
            assert not wanted, (seed, said, where)


def test_who_operates_in_a_project_gives_its_labels_alone(
    farm: Settings, ledger: Ledger, redis: Redis, seed: int
) -> None:
    chance, stage, projects = random.Random(seed), site(farm, ledger, redis), ("", "vision", "speech")
    Inventory(redis).announce_device(make.device("A"))
    for project in projects[1:]:
        ledger.people.add_project(project, "")
    for number in range(30):
        grants = Grants.of((place, chance.choice([*Role])) for place in chance.sample(projects, chance.randint(0, 3)))
        touched = chance.sample(projects, chance.randint(0, 3))
        labels = [f"{project}{'/' * bool(project)}step={number}" for project in touched]
        note, anna = chance.choice([None, f"note {number}"]), Actor("anna", Door.API, grants)
        may = all(grants.reach(Role.OPERATE, of) for of in ({*touched, *([""] * (note is not None))} or {""}))
        before = ledger.standing.noted()
        try:
            done = acts.describing.describe(stage, anna, ["A"], labels, note)
            assert may or not (touched or note), (seed, grants, labels, note)
            assert all(project_of(each) in ("", *(grants.visible or projects)) for each in done.devices["A"].labels)
            assert set(labels) <= {*ledger.standing.noted().get("A", DeviceNote()).labels}
        except NotAllowed:
            assert not may and ledger.standing.noted() == before, (seed, grants, labels, note)


def test_a_row_is_written_when_a_device_is_not_what_it_was(
    ledger: Ledger, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedulers begin anew, the battery is silent now and then, a host shows more devices than it may."""
    chance, now = random.Random(seed), [0.0]
    clocks = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr(device_history, "time", clocks)
    monkeypatch.setattr(history, "MOST_OF_A_DEVICE", 6)
    keeper, builds, cycles = DeviceHistory(ledger), {"A": 0, "B": 0}, {"A": 1, "B": 1}
    expected: dict[str, list[tuple[str, int]]] = {"A": [], "B": []}

    def device(serial: str, silent: bool) -> Device:
        made, read = make.device(serial), Reading(at=1.0, battery_cycles=None if silent else cycles[serial])
        facts = made.facts.model_copy(update={"fingerprint": f"b{builds[serial]}"})
        return made.model_copy(update={"facts": facts, "state": made.state.model_copy(update={"reading": read})})

    for number in range(40):
        serial = chance.choice("AB")
        changed = chance.choice([builds, cycles, None])
        if changed is not None:
            changed[serial] += 1
        if chance.random() < 0.2:
            keeper = DeviceHistory(ledger)
        silent = bool(number) and changed is None and chance.random() < 0.5
        keeper.look([device(each, silent and each == serial) for each in "AB"])
        for each in "AB":
            if not expected[each] or expected[each][-1] != (f"b{builds[each]}", cycles[each]):
                expected[each].append((f"b{builds[each]}", cycles[each]))
        now[0] += LOOK_S
    for serial, rows in expected.items():
        kept = [(was.build, was.battery_cycles) for was in ledger.standing.history(serial)][::-1]
        assert kept == ([rows[0], *rows[-5:]] if len(rows) > 6 else rows), (seed, serial)
    monkeypatch.setattr(history, "MOST_OF_A_HOST", 3)
    names = [replace(was_of(make.device(f"x{number}", host=host), 1.0)) for number in range(5) for host in ("lab", "b")]
    full = ledger.standing.add_history([replace(was, serial=f"{was.host}{was.serial}") for was in names])
    assert len(ledger.standing.newest()) == 2 + 1 + 3 and len(full) == 4 + 2
