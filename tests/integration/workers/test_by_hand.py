"""A phone by hand: who may look at its screen and use its shell, and when. Its host does it, with no more rights in
Redis than hosts have; a virtual phone answers as Android does."""

from __future__ import annotations

import base64
import io
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image
from redis import Redis
from starlette.testclient import TestClient

from dashboards import web
from dashboards.web.access import Access
from farm.cli import main
from farm.join import new_secret
from orchestrator import acts
from orchestrator.acts import Actor, Door, Site
from orchestrator.acts.by_hand import MOST_OUTPUT, Ran, Screenshot
from orchestrator.coordination import access, functions, keys
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.tasks import by_hand
from orchestrator.coordination.tasks.queue import make_app
from orchestrator.ledger import Ledger
from orchestrator.model.errors import DeviceBusy, FarmError, NotAllowed, ServiceDown, Unsupported
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.since import OLDEST_PROTOCOL
from orchestrator.model.people import COMMON, Role
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Grants
from orchestrator.system.config import Settings
from tests.celery_worker import worker_of
from tests.fuzz.mutations import mutate
from tests.servers import private_redis
from tests.unit.orchestrator import make
from tests.waiting import eventually
from workers.devices.device_lock import device_lock
from workers.discovery.by_hand import answer_by_hand
from workers.tasks import register

from .conftest import Wiring

PEOPLE = {
    "operator": Grants(Role.OPERATE),
    "anna": Grants(None, {COMMON: Role.SUBMIT}),
    "bob": Grants(None, {COMMON: Role.OPERATE}),
    "viewer": Grants(Role.VIEW),
}
BOSS = Actor("operator", Door.API, PEOPLE["operator"])


class Far:
    """A farm, and its host `lab2`, which has the phone, a state folder and a user of Redis of its own."""

    def __init__(self, settings: Settings, redis: Redis, ledger: Ledger) -> None:
        secret, sha256 = new_secret()
        functions.load(redis)
        access.admit(redis, "lab2", sha256)
        own = {
            "host": "lab2",
            "redis_user": access.user_of("lab2"),
            "redis_password": secret,
        }
        self.host = settings.model_copy(update={**own, "state": settings.state / "lab2"})
        self.redis, self.ledger = redis, ledger
        self.site = Site(settings, ledger, lambda: redis)
        self.does: Callable[[Redis, str], object] = lambda mine, name: answer_by_hand(self.host, mine, name)
        """The host does this when it is asked."""

    def announce(self, serial: str, protocol: int = PROTOCOL) -> None:
        inventory = Inventory(self.redis)
        inventory.announce_host(HostAnnouncement(host="lab2", worker="w", pid=1, protocol=protocol))
        inventory.announce_device(make.device(serial, host="lab2"))
        cpu = make.device("cpu", host="lab2")
        inventory.announce_device(
            cpu.model_copy(update={"facts": cpu.facts.model_copy(update={"kind": "workstation"})})
        )


@pytest.fixture(scope="module")
def far(running_lab: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder = tmp_path_factory.mktemp("far")
    with private_redis(folder) as url:
        settings = Settings(state=folder / "state", host="testhost", adb_port=running_lab.server.port, redis_url=url)
        with Ledger(settings.ledger) as ledger, client_of(settings) as redis:
            made = Far(settings, redis, ledger)
            with client_of(made.host) as mine, make_app(made.host) as app:
                register(app, lambda _: None, lambda name: made.does(mine, name))
                with worker_of(app, keys.queue("lab2"), keys.worker("lab2")):
                    yield made


@pytest.fixture
def stage(far: Far, lab: Wiring) -> Far:
    far.announce(lab.serial)
    far.ledger.standing.end_hold(lab.serial)
    return far


def test_scrcpy_gets_the_phone_of_who_holds_it_by_the_host_s_adb(
    stage: Far, lab: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program of this name stands for it: it asks adb for the phone, as scrcpy does, and tells what it got."""
    where = {"STATE": stage.site.settings.state, "REDIS_URL": stage.site.settings.redis_url, "HOST": "lab2"}
    for name, value in {**where, "ADB_PORT": lab.server.port, "ADB_PATH": shutil.which(lab.server.path)}.items():
        monkeypatch.setenv(f"FARM_{name}", str(value))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["devices", "mirror", lab.serial]) != 0 and "apt install scrcpy" in capsys.readouterr().err
    program = tmp_path / "scrcpy"
    program.write_text(f'#!/bin/sh\n"$ADB" -s "$2" shell getprop ro.serialno > {tmp_path}/told\nexit 3\n')
    program.chmod(0o755)
    assert main(["devices", "mirror", lab.serial]) != 0 and "nobody holds" in capsys.readouterr().err
    stage.ledger.standing.hold([lab.serial], "anna")
    assert main(["devices", "mirror", lab.serial]) == 3 and (tmp_path / "told").read_text() == f"{lab.serial}\n"
    assert [row.act for row in stage.ledger.audit.newest(1)] == ["mirror"]


def test_a_phone_by_hand_is_its_holder_s_and_the_operators_while_nothing_runs_there(
    stage: Far, lab: Wiring, seed: int
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
            with device_lock(stage.host.state, lab.serial) if in_session else nullcontext():
                try:
                    shot = acts.by_hand.screenshot(stage.site, actor, lab.serial)
                    assert may and not in_session and isinstance(shot, Screenshot)
                    ran = acts.by_hand.shell(stage.site, actor, lab.serial, ["getprop ro.serialno;", "exit", "7"])
                    assert holder and isinstance(ran, Ran) and (ran.output, ran.code) == (f"{lab.serial}\n", 7)
                except NotAllowed:
                    assert not may
                except DeviceBusy:
                    assert may and in_session
                except Unsupported as e:
                    assert may and not holder and "nobody holds" in str(e)
            assert ledger.audit.count() == before + (0 if may and in_session else 2 if may and holder else 1)
    picture = Image.open(io.BytesIO(base64.b64decode(shot.png)))
    assert picture.size[0] < picture.size[1] and len(picture.getcolors() or ()) == 2
    assert lab.serial in picture.text["Comment"] and "virtual" in picture.text["Comment"]  # type: ignore[attr-defined]
    assert not stage.redis.keys("farm:asked:*") + stage.redis.keys("farm:answer:*")
    ledger.standing.end_hold(lab.serial)
    ledger.standing.hold([lab.serial], "anna")
    with pytest.raises(Unsupported, match="it is on host lab2, and this is testhost"):
        acts.by_hand.mirror(stage.site, Actor("anna", Door.API, PEOPLE["anna"]), lab.serial)
    with pytest.raises(NotAllowed):
        acts.by_hand.mirror(stage.site, Actor("bob", Door.API, PEOPLE["bob"]), lab.serial)
    with pytest.raises(Unsupported, match="a workstation of host lab2"):
        acts.by_hand.screenshot(stage.site, BOSS, "cpu")
    stage.announce(lab.serial, chance.randrange(OLDEST_PROTOCOL, by_hand.PROTOCOL))
    with pytest.raises(Unsupported, match="update pocketfarm there"):
        acts.by_hand.screenshot(stage.site, BOSS, lab.serial)


def test_a_page_offers_both_and_shows_what_came(stage: Far, lab: Wiring) -> None:
    access = Access("token")
    farm = web.Pages(
        lambda: stage.ledger, lambda: stage.redis, access, lambda: stage.site, stage.site.settings.state, str
    )
    cookies = {access.cookie: access.enter("token", "me") or ""}
    with TestClient(web.make_app(farm), "http://127.0.0.1", cookies=cookies) as browser:

        def page() -> str:
            return browser.get(f"/devices/{lab.serial}").text

        eventually(lambda: "/do/screenshot" in page())
        assert "/do/shell" not in page(), "nobody holds it"
        stage.ledger.standing.hold([lab.serial], "me")
        eventually(lambda: "/do/shell" in page())
        form = {"target": lab.serial, "form_token": re.findall('"form_token" value="([^"]+)"', page())[0]}
        shot = browser.post("/do/screenshot", data=form)
        (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', shot.text)
        assert lab.serial in Image.open(io.BytesIO(base64.b64decode(picture))).text["Comment"]  # type: ignore[attr-defined]
        assert "img-src 'self' data:" in shot.headers["Content-Security-Policy"]
        ran = browser.post("/do/shell", data={**form, "command": "echo '<b>'"})
        assert "<pre>&lt;b&gt;\n</pre>" in ran.text and "ended with 0" in ran.text


def test_a_job_under_way_is_not_disturbed_and_time_and_output_are_bounded(
    stage: Far, lab: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    ledger = stage.ledger
    ledger.standing.hold([lab.serial], "operator")
    for beyond in (0, random.Random(seed).randrange(1, 4 * MOST_OUTPUT)):
        (tmp_path / "long").write_bytes(b"x" * (MOST_OUTPUT + beyond))
        lab.connection.push(tmp_path / "long", "/data/local/tmp/long")
        long = acts.by_hand.shell(stage.site, BOSS, lab.serial, ["cat /data/local/tmp/long; rm /data/local/tmp/long"])
        assert isinstance(long, Ran) and len(long.output) == MOST_OUTPUT
        if beyond:
            assert f"more than {MOST_OUTPUT} bytes" in long.text
        else:
            assert (long.code, long.why) == (0, "")
    monkeypatch.setattr(by_hand, "DEADLINE_S", 0.5)
    endless = acts.by_hand.shell(stage.site, BOSS, lab.serial, ["echo begun; sleep 600"])
    assert isinstance(endless, Ran) and endless.code is None and endless.output == "begun\n"
    assert "went on for 0.5 s, which is the longest that it may" in endless.text
    assert [row.said for row in ledger.audit.newest(1)] == [endless.text]
    monkeypatch.setattr(by_hand, "DEADLINE_S", 20.0)
    stage.does = lambda mine, name: answer_by_hand(stage.host, mine, name, lambda: True)
    stopped = acts.by_hand.shell(stage.site, BOSS, lab.serial, ["sleep 600"])
    stage.does = lambda mine, name: answer_by_hand(stage.host, mine, name)
    assert isinstance(stopped, Ran) and stopped.code is None and "its host is being stopped" in stopped.text
    job = make.job(candidates=(lab.serial,))
    ledger.submit("first-1", make.many(1), [job], by="operator")
    assert (begun := ledger.begin_attempt(job.job_id, lab.serial, "lab2", 60.0))
    with pytest.raises(DeviceBusy, match="under way there since"):
        acts.by_hand.screenshot(stage.site, BOSS, lab.serial)
    assert ledger.end_attempt(job.job_id, begun.attempt, Outcome.LOST, "transport_lost")


def test_a_host_that_lies_or_is_silent_answers_wrongly_and_no_more(
    stage: Far, lab: Wiring, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever stands where the answer should: the act ends, within its time, with a row or an error of ours."""
    chance = random.Random(seed)
    stage.ledger.standing.hold([lab.serial], "operator")
    monkeypatch.setattr(by_hand, "ON_THE_WAY_S", 0.2)
    monkeypatch.setattr(by_hand, "TAKEN_S", 0.5)
    monkeypatch.setattr(by_hand, "DEADLINE_S", 0.3)
    true = by_hand.Answer(code=0, out=base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()).model_dump_json().encode()
    lies = [mutate([true], chance) for _ in range(6)] + [
        json.dumps({"out": base64.b64encode(bytes(MOST_OUTPUT + 1)).decode()}).encode(),
        json.dumps({"fault": chance.choice(["busy", "device_busy", "forged", ""]), "why": "\x1b[2J" * 9}).encode(),
    ]

    def says(lie: bytes) -> Callable[[Redis, str], object]:
        return lambda mine, name: (by_hand.take(mine, "lab2", name), mine.set(keys.answer("lab2", name), lie, ex=9))

    others = [says(each) for each in lies] + [
        lambda mine, name: (by_hand.take(mine, "lab2", name), mine.lpush(keys.answer("lab2", name), "x")),
        lambda mine, name: by_hand.take(mine, "lab2", name),
    ]
    try:
        for stage.does in chance.sample(others, len(others)):
            before = stage.ledger.audit.count()
            try:
                done = acts.by_hand.shell(stage.site, BOSS, lab.serial, ["true"])
                assert isinstance(done, Ran) and len(done.output) <= MOST_OUTPUT
                assert stage.ledger.audit.count() == before + 1
            except FarmError as e:
                assert len(str(e)) < 3000
        stage.does = lambda *_: None
        with pytest.raises(ServiceDown, match=r"did not take it within .* nothing was run"):
            acts.by_hand.screenshot(stage.site, BOSS, lab.serial)
        assert not stage.redis.keys("farm:asked:*")
    finally:
        stage.does = lambda mine, name: answer_by_hand(stage.host, mine, name)
