"""A phone by hand: who may look at its screen and use its shell, and when; a virtual phone answers as Android does."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image

from farm.access import OwnPhones
from orchestrator import acts
from orchestrator.acts import Actor, Door, Site
from orchestrator.acts.by_hand import MOST_OUTPUT, Ran, Screenshot
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.errors import DeviceBusy, NotAllowed, Unsupported
from orchestrator.model.people import COMMON, Role
from orchestrator.model.rights import Grants
from orchestrator.system.config import Settings
from tests.servers import private_redis
from tests.unit.orchestrator import make
from workers.devices.device_lock import device_lock

from .conftest import Wiring

PEOPLE = {
    "operator": Grants(Role.OPERATE),
    "anna": Grants(None, {COMMON: Role.SUBMIT}),
    "bob": Grants(None, {COMMON: Role.OPERATE}),
    "viewer": Grants(Role.VIEW),
}


@pytest.fixture
def stage(lab: Wiring, lab_settings: Settings, tmp_path: Path) -> Iterator[Site]:
    with private_redis(tmp_path) as url, Ledger(lab_settings.ledger) as ledger:
        settings = lab_settings.model_copy(update={"redis_url": url})
        with client_of(settings) as redis:
            Inventory(redis).announce_device(make.device(lab.serial, host=settings.host))
            Inventory(redis).announce_device(make.device("elsewhere", host="lab2"))
            yield Site(settings, ledger, lambda: redis, OwnPhones(settings))


def test_a_phone_by_hand_is_its_holder_s_and_the_operators_while_nothing_runs_there(
    stage: Site, lab: Wiring, seed: int
) -> None:
    """Each person, whoever has the phone, with a session on it and without: the table, read as a person would."""
    chance, ledger = random.Random(seed), stage.ledger
    for holder in chance.sample(["", "anna", "viewer", "bob"], 4):
        ledger.standing.end_hold(lab.serial)
        if holder:
            ledger.standing.hold([lab.serial], holder)
        for who, grants in PEOPLE.items():
            actor, in_session = Actor(who, Door.API, grants), chance.random() < 0.2
            may = who == "operator" or (who == holder and who != "viewer")
            before = ledger.audit.count()
            with device_lock(stage.settings.state, lab.serial) if in_session else nullcontext():
                try:
                    shot = acts.by_hand.screenshot(stage, actor, lab.serial)
                    assert may and not in_session and isinstance(shot, Screenshot)
                    ran = acts.by_hand.shell(stage, actor, lab.serial, ["getprop ro.serialno;", "exit", "7"])
                    assert holder and isinstance(ran, Ran) and (ran.output, ran.code) == (f"{lab.serial}\n", 7)
                except NotAllowed:
                    assert not may
                except DeviceBusy:
                    assert may and in_session
                except Unsupported as e:
                    assert may and not holder and "nobody holds" in str(e)
            assert ledger.audit.count() == before + (0 if may and in_session else 2 if may and holder else 1)
    with pytest.raises(Unsupported, match="of host lab2"):
        acts.by_hand.screenshot(stage, Actor("operator", Door.API, PEOPLE["operator"]), "elsewhere")
    picture = Image.open(io.BytesIO(base64.b64decode(shot.png)))
    assert picture.size[0] < picture.size[1] and len(picture.getcolors() or ()) == 2
    assert lab.serial in picture.text["Comment"] and "virtual" in picture.text["Comment"]  # type: ignore[attr-defined]


def test_a_job_under_way_is_not_disturbed_and_output_is_bounded(stage: Site, lab: Wiring, tmp_path: Path) -> None:
    boss, ledger = Actor("operator", Door.API, PEOPLE["operator"]), stage.ledger
    ledger.standing.hold([lab.serial], "operator")
    (tmp_path / "long").write_bytes(b"x" * (MOST_OUTPUT + 1000))
    lab.connection.push(tmp_path / "long", "/data/local/tmp/long")
    long = acts.by_hand.shell(stage, boss, lab.serial, ["cat /data/local/tmp/long; rm /data/local/tmp/long"])
    assert isinstance(long, Ran) and len(long.output) == MOST_OUTPUT
    job = make.job(candidates=(lab.serial,))
    ledger.submit("first-1", make.many(1), [job], by="operator")
    assert ledger.begin_attempt(job.job_id, lab.serial, stage.settings.host, 60.0)
    with pytest.raises(DeviceBusy, match="under way there since"):
        acts.by_hand.screenshot(stage, boss, lab.serial)
