"""Every act by every door: the same words, one row in the audit; what is refused or cannot be stored leaves nothing."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request

from dashboards.web import Pages, make_app, shown
from dashboards.web.access import Access
from farm import Farm
from farm.access import OwnPhones, site_of
from farm.cli import main
from orchestrator import acts
from orchestrator.acts import ACTS, ON_PAGES, Done, Door, Site
from orchestrator.acts.access.sign_on import Claimed
from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.acts.engine_folder import read_folder
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Hold, HostState, Ledger
from orchestrator.ledger.tables import METADATA
from orchestrator.ledger.upkeep import bundles
from orchestrator.model.errors import FarmError, ServiceDown, SetupError
from orchestrator.model.people import COMMON, Kind, Role
from orchestrator.model.record import EarlierReading, Outcome, Record
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from workers.session.saved_settings import forget_changes

from . import ledgers
from .hosts import Host, answered
from .sites import ME, by

Args = tuple[tuple[Any, ...], dict[str, Any]]
CLOCK = time.time() + 3600.0
BENCH = Path("of the stage")
"""Stands for the stage's folder of an engine."""
TOKEN = Path("its token")
"""Stands for the id of the stage's token."""
LINK = Path("its link")
"""Stands for the id of the stage's public link."""
BUNDLE, TABLE = Path("its bundle"), Path("its table")
"""Stand for a bundle that another lab wrote, and a table of samples."""
HOOK = Path("its webhook")
"""Stands for the id of the stage's webhook."""


@pytest.fixture
def settings(farm: Settings, url: str) -> Settings:
    return farm.model_copy(update={"ledger_url": url})


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with Ledger(settings.ledger, rest_s=0.0, retries=1) as opened:
        yield opened


class Stage:
    """A farm on which every act has something to do: jobs that failed, run and wait, a held device, a host with work, a
    suite with a schedule, a phone on which a crash left something."""

    def __init__(self, settings: Settings, ledger: Ledger, redis: Redis) -> None:
        self.settings, self.ledger, self.redis = settings, ledger, redis
        host = Host(settings, redis, [make.device("A"), make.device("B")], lambda a: answered(a, Outcome.FAILED, "x"))
        host.announce()
        scheduler = Scheduler(settings, ledger, redis)
        for experiment_id, blocks in (("failed", 1), ("running", 3)):
            jobs = [make.job(experiment_id, block=block) for block in range(blocks)]
            ledger.submit(experiment_id, make.many(blocks, name=experiment_id), jobs, by="me")
            scheduler.tick()
            host.claim()
            if experiment_id == "failed":
                host.finish()
                scheduler.tick()
        ledger.standing.reserve(["B"], Hold("", "me", 0.0, CLOCK + 9e5, "later", begins=CLOCK + 8e5))  # number 1
        ledger.standing.hold(["B"], "me", CLOCK, "before")
        ledger.standing.say_of_host("drained", HostState.DRAINING)
        ledger.nights.schedule("scheduled", "s.yaml", "0 2 * * *", b"{}")
        forget_changes(settings.state, "A")
        self.builds, self.folder = EngineBuilds(Artifacts(settings.state)), settings.state / "bench"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "llama-bench").write_text("#!/bin/sh\n")
        self.builds.keep(read_folder(self.folder, "benchncnn", "x86", ("llama-bench",), "", Artifacts(settings.state)))
        ledger.people.add("anna", Kind.PERSON)
        ledger.people.add("cameras", Kind.GROUP)
        ledger.people.add("bruno", Kind.PERSON)
        ledger.people.groups.join("cameras", ["bruno"])
        ledger.people.claim("bruno", "id 2")
        ledger.people.add_project("vision", "")
        ledger.people.grant("anna", Role.VIEW, "vision")
        self.token, self.secret = ledger.people.tokens.make("anna", Role.ADMINISTER, "", "", None)
        self.hook = ledger.people.webhooks.add("http://127.0.0.1:9/", "", "me")[0]
        self.link = ledger.people.links.make("failed", COMMON, "me", "", CLOCK)[0]
        self.site = Site(settings, ledger, lambda: redis, OwnPhones(settings))

    def kept(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of the database but counters, from which numbers may be taken, and the audit; all leases and
        builds of engines."""
        engine, names = create_engine(self.settings.ledger), METADATA.tables.keys() - {"counters", "audit"}
        with engine.connect() as connection:
            rows = {name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}")))) for name in names}
        engine.dispose()
        rest = {
            "leases": sorted(map(repr, self.redis.keys("farm:lease*"))),
            "builds": sorted(self.builds.named().items()),
        }
        return {**rows, **rest}  # type: ignore[dict-item]

    def brought(self, what: Path) -> Path:
        file = self.folder / f"{what.name}.csv"
        if what is TABLE:
            file.write_text("device,network,layer,backend,precision,block,sample_ms\nd,n,,cpu,fp32,0,1.5\n")
        elif not file.exists():
            with ledgers.database(self.settings.ledger) as database:
                bundles.write(database, file, "failed", lab="berlin", version="1", report="")
        return file

    def run(self, act: str, given: Args, actor: acts.Actor = ME) -> Done:
        stands: dict[Path, Any] = {BENCH: self.folder, TOKEN: self.token, LINK: self.link, HOOK: self.hook}
        stands |= {each: self.brought(each) for each in (BUNDLE, TABLE) if act.startswith("import")}
        args = (stands.get(each, each) if isinstance(each, Path) else each for each in given[0])
        return ACTS[act](self.site, actor, *args, **given[1])


@pytest.fixture
def stage(settings: Settings, ledger: Ledger, redis: Redis) -> Stage:
    return Stage(settings, ledger, redis)


def of(*args: Any, **options: Any) -> Args:
    return args, options


def reread_as(record: Record) -> Record:
    """The same as another parser reads it."""
    told = {name: getattr(record, name) for name in EarlierReading.model_fields.keys() & Record.model_fields.keys()}
    before = EarlierReading.model_validate({**told, "replaced_at": 1.0, "farm_version": "0"})
    return record.model_copy(update={"outcome": Outcome.OK, "cause": "", "reasons": (), "readings": (before,)})


FINE: dict[str, Args] = {
    "submit": of(make.many(2, name="new"), Path()),
    "submit jobs": of("chosen", make.many(1, name="chosen"), [make.job("chosen")]),
    "cancel": of("running"),
    "retry": of("failed"),
    "reread": of(["failed"], lambda record, _: reread_as(record)),
    "hold": of(["A"], CLOCK, "new battery", now=True),
    "release": of("B"),
    "add host": of("lab3", "ab" * 32),
    "drain host": of("lab"),
    "resume host": of("drained"),
    "remove host": of("lab", force=True),
    "add engine": of("llama.cpp", BENCH, "x86_64", ["llama-bench"], "b1"),
    "remove engine": of("benchncnn", ""),
    "begin night": of("night-1", "s", 1.0, b"{}"),
    "schedule suite": of("s", "s.yaml", "0 2 * * *", b"{}", CLOCK),
    "unschedule suite": of("scheduled"),
    "add person": of("berta"),
    "add group": of("screens"),
    "sign on": of(Claimed("anna", "id 1", frozenset({"cameras"}), frozenset(), unknown=False)),
    "join group": of("cameras", ["anna", "bruno"]),
    "leave group": of("cameras", ["bruno"]),
    "grant role": of("anna", Role.SUBMIT, "vision"),
    "revoke role": of("anna", "vision"),
    "remove person": of("anna"),
    "create token": of("anna", Role.VIEW),
    "create own token": of("anna", CLOCK, "laptop"),
    "revoke token": of(TOKEN),
    "invite person": of("anna"),
    "set password": of("anna", SecretStr("ten words or so")),
    "create link": of("failed", CLOCK, "the reviewers"),
    "revoke link": of(LINK),
    "add webhook": of("https://ci.lab/hooks", "vision"),
    "remove webhook": of(HOOK),
    "add project": of("speech"),
    "set project": of("vision", share=2.0, most_waiting=9),
    "reserve": of(["A"], CLOCK, CLOCK + 60.0, "vision", "demo"),
    "unreserve": of(1),
    "describe": of(["A"], ["rack=3"], "screen broken", "anna"),
    "import bundle": of(BUNDLE),
    "import samples": of(TABLE),
}
"""The deeds of each act on the stage. `restore`, `screenshot`, `shell` and `mirror` are of phones (test_by_hand)."""
REFUSED: dict[str, Args] = {
    "submit": of(make.experiment(name="new", devices=make.DeviceChoice(where='serial == "Z"')), Path()),
    "cancel": of("running", "nothing"),
    "retry": of("nothing"),
    "reread": of(["nothing"], lambda record, _: reread_as(record)),
    "hold": of(["A", "Z"]),
    "release": of("A"),
    "restore": of(["A"]),
    "drain host": of("nothing"),
    "resume host": of("nothing"),
    "remove host": of("lab"),
    "add engine": of("llama.cpp", BENCH, "x86_64", ["benchncnn"]),
    "remove engine": of("llama.cpp"),
    "unschedule suite": of("s"),
    "add person": of("no name"),
    "add group": of("anna"),
    "sign on": of(Claimed("bruno", "id 1", frozenset(), frozenset({"cameras"}), unknown=True)),
    "join group": of("cameras", ["anna", "cameras"]),
    "leave group": of("anna", ["anna"]),
    "grant role": of("nobody", Role.SUBMIT, "vision"),
    "revoke role": of("nobody", "vision"),
    "remove person": of("nobody"),
    "create token": of("anna", Role.VIEW, "nothing"),
    "create own token": of("cameras"),
    "revoke token": of("nothing"),
    "invite person": of("nobody"),
    "set password": of("anna", SecretStr("too short")),
    "create link": of("failed", 1.0),
    "revoke link": of("nothing"),
    "add webhook": of("ftp://ci.lab/"),
    "remove webhook": of("nothing"),
    "add project": of("vision"),
    "set project": of("vision", share=0.0),
    "reserve": of(["B"], None, CLOCK, "vision"),
    "unreserve": of(99),
    "describe": of(["A"], ["Rack 3"]),
    "import bundle": of(BENCH),
    "import samples": of(BENCH),
    "screenshot": of("A"),
    "shell": of("B", ["id"]),
    "mirror": of("A"),
}
NOTHING: dict[str, Args] = {
    "cancel": of("failed"),
    "retry": of("running"),
    "add engine": of("benchncnn", BENCH, "x86", ["llama-bench"]),
    "reread": of(["failed"], lambda *_: None),
    "restore": of(),
    "add person": of("anna"),
    "add group": of("cameras"),
    "sign on": of(Claimed("bruno", "id 2", frozenset({"cameras"}), frozenset(), unknown=False)),
    "join group": of("cameras", ["bruno"]),
    "leave group": of("cameras", ["anna"]),
    "set project": of("vision"),
    "revoke role": of("anna"),
    "describe": of(["A"], ["rack="], ""),
}
"""Acts that are no error, and change nothing."""


def test_of_submissions_at_the_same_moment_one_is_done(stage: Stage) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = [*threads.map(lambda _: stage.run("submit", FINE["submit"]), range(4))]
    assert len({each.on for each in done}) == 1
    assert sorted(each.did for each in done) == [False, False, False, True]
    assert [row.act for row in stage.ledger.audit.newest(9)] == ["submit"]


def test_what_is_no_text_is_refused_by_every_act(stage: Stage, seed: int) -> None:
    """A name may come from a terminal or a notebook with bytes that are not UTF-8, or with a null."""
    chance, before, tried = random.Random(seed), stage.kept(), 0
    for act, given in (REFUSED | FINE).items():
        args, options = given
        odd = chance.choice(("a\0b", "a\udcfcb", "\ud83d"))
        places = [n for n, each in enumerate(args) if isinstance(each, str | list)]
        if not places:
            continue
        place, tried = chance.choice(places), tried + 1
        changed = [*args[:place], odd if isinstance(args[place], str) else [*args[place], odd], *args[place + 1 :]]
        with pytest.raises(SetupError, match="is no text"):
            stage.run(act, (changed, options))  # type: ignore[arg-type]
    assert tried > 20 and stage.kept() == before and stage.ledger.audit.count() == 0


@pytest.mark.parametrize("act", sorted(ACTS))
def test_an_act_leaves_one_row_with_its_actor_and_its_words_or_nothing(act: str, stage: Stage, seed: int) -> None:
    """An act that is refused, changes nothing, or has a row that cannot be stored leaves neither effect nor row; then
    it is done."""
    chance = random.Random(f"{seed}:{act}")
    actor, before = by(f"anna {chance.random()}", chance.choice([*Door])), stage.kept()
    if ACTS[act].__module__ == acts.devices.__name__:  # they are of one's own holds
        actor = by("me", actor.door)
    if act in REFUSED:
        with pytest.raises(FarmError):
            stage.run(act, REFUSED[act], actor)
        assert stage.kept() == before and stage.ledger.audit.count() == 0
    if act in NOTHING:
        done = stage.run(act, NOTHING[act], actor)
        assert done.text.startswith("nothing") and not done.did
        assert stage.kept() == before and stage.ledger.audit.count() == 0
    if act not in FINE:
        return
    engine = create_engine(stage.settings.ledger)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE audit RENAME TO away"))
    with pytest.raises((ServiceDown, DBAPIError)):
        stage.run(act, FINE[act], actor)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO audit"))
    engine.dispose()
    assert stage.kept() == before and stage.ledger.audit.count() == 0
    done = stage.run(act, FINE[act], actor)
    (row,) = stage.ledger.audit.newest(9)
    assert (row.who, row.door, row.act, row.said) == (actor.who, actor.door, act, done.text)
    assert row.target == done.on and done.did
    assert stage.kept() != before
    submitters = {each.id: each.submitter for each in stage.ledger.experiments()}
    if act.startswith("submit"):
        assert submitters[row.target] == actor.who


def test_experiments_get_the_engines_of_their_project_else_of_the_farm(stage: Stage, seed: int) -> None:
    """Nobody gets what another project brought; what is removed in one place stays in the others."""
    chance, places, abis = random.Random(seed), ("", "vision", "speech"), ("arm64-v8a", "x86", "x86_64")
    stage.ledger.people.add_project("speech", "")
    brought: dict[tuple[str, str], str] = {}
    for number in range(20):
        place, abi = chance.choice(places), chance.choice(abis)
        if chance.random() < 0.2 and any(of == place for of, _ in brought):
            acts.engines.remove_engine(stage.site, ME, "llama.cpp", place)
            brought = {key: sha256 for key, sha256 in brought.items() if key[0] != place}
        else:
            acts.engines.add_engine(stage.site, ME, "llama.cpp", stage.folder, abi, ["llama-bench"], f"{number}", place)
            brought[place, abi] = EngineBuilds(Artifacts(stage.settings.state), place).own()["llama.cpp"][abi]
        project = chance.choice(["common", *places[1:]])
        wanted = {each: brought.get((project, each), brought.get(("", each))) for each in abis}
        asked = make.experiment(matrix={"engine": ["llama.cpp"], "backend": ["cpu"]})
        made = prepare(asked, Path(), Artifacts(stage.settings.state), project)
        got = made.engine.builds["llama.cpp"] if made.engine else {}
        assert got == {abi: sha256 for abi, sha256 in wanted.items() if sha256}, (seed, number)


def test_all_acts_are_drawn() -> None:
    assert FINE.keys() | {"restore", "screenshot", "shell", "mirror"} == ACTS.keys()
    assert FIELDS.keys() | {"restore", "screenshot", "shell"} == ON_PAGES.keys()
    assert REFUSED.keys() == ACTS.keys() - {"submit jobs", "add host", "begin night", "schedule suite"}, "these replace"


COMMANDS = {
    "cancel": ["cancel", "running"],
    "retry": ["retry", "failed"],
    "hold": ["hold", "A", "--note", "new battery"],
    "release": ["release", "B"],
    "drain host": ["host", "drain", "lab"],
    "resume host": ["host", "resume", "drained"],
    "remove host": ["host", "remove", "lab", "--force"],
    "remove engine": ["engines", "remove", "benchncnn"],
    "unschedule suite": ["nightly", "unschedule", "scheduled"],
    "revoke role": ["people", "revoke", "anna", "--project", "vision"],
    "join group": ["people", "join", "cameras", "anna"],
    "remove person": ["people", "remove", "anna"],
    "add project": ["projects", "add", "speech"],
    "set project": ["projects", "set", "vision", "--share", "2"],
    "unreserve": ["devices", "unreserve", "1"],
    "describe": ["devices", "describe", "A", "--label", "rack=3", "--owner", "anna"],
}
FIELDS = {
    "cancel": {"target": "running"},
    "retry": {"target": "failed"},
    "hold": {"target": "A", "note": "new battery"},
    "release": {"target": "B"},
    "drain host": {"target": "lab"},
    "resume host": {"target": "drained"},
    "revoke token": {"target": str(TOKEN)},
    "create own token": {"target": "anna", "until": "3 h", "note": "laptop"},
    "create link": {"target": "failed", "until": "3 h", "note": "the reviewers"},
    "revoke link": {"target": str(LINK)},
    "add person": {"target": "berta", "service": "yes"},
    "add group": {"target": "screens"},
    "join group": {"target": "cameras", "people": "anna"},
    "leave group": {"target": "cameras", "people": "bruno"},
    "grant role": {"target": "anna", "role": "submit", "project": "vision"},
    "revoke role": {"target": "anna", "project": "vision"},
    "remove person": {"target": "anna"},
    "create token": {"target": "anna", "most": "view", "until": ""},
    "invite person": {"target": "anna"},
    "add project": {"target": "speech", "share": "", "most_waiting": ""},
    "set project": {"target": "vision", "share": "2", "most_waiting": ""},
    "reserve": {"target": "A", "begins": "1 h", "until": "2 h", "name": "vision"},
    "unreserve": {"target": "1"},
    "describe": {"target": "A", "labels": "rack=3", "owner": "anna"},
}
CELLS: dict[str, Callable[[Farm], object]] = {
    "cancel": lambda farm: farm.experiment("running").cancel(),
    "retry": lambda farm: farm.experiment("failed").retry(),
}


@pytest.mark.parametrize("act", sorted(COMMANDS))
def test_doors_have_the_same_words_and_each_names_its_actor(
    act: str, farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each door on a stage of its own. A page's text goes back in a cookie. No door knows which database there is."""
    monkeypatch.setenv("LOGNAME", "me")
    said = set[str]()
    for door, does in (("command line", _by_command), ("page", _by_page), ("notebook", _by_notebook)):
        if act not in {"command line": COMMANDS, "page": FIELDS, "notebook": CELLS}[door]:
            continue
        redis.flushall()
        own = farm.model_copy(update={"state": farm.state / door.replace(" ", "-")})
        with Ledger(own.ledger, rest_s=0.0, retries=1) as ledger:
            stage = Stage(own, ledger, redis)
            monkeypatch.setenv("FARM_STATE", str(own.state))
            monkeypatch.setenv("FARM_REDIS_URL", own.redis_url)
            told = does(stage, act, capsys)
            (row,) = ledger.audit.newest(9)
        capsys.readouterr()
        assert main(["audit", "--json"]) == 0 and json.loads(capsys.readouterr().out) == [asdict(row)]
        assert main(["audit"]) == 0 and row.said in capsys.readouterr().out
        assert (row.act, row.door, row.who) == (act, door, "me")
        assert told is None or row.said in told.strip().replace("\n", "; ")
        said.add(row.said)
    assert len(said) == 1 and "" not in said


def _by_command(stage: Stage, act: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(COMMANDS[act]) == 0
    found = capsys.readouterr()
    return found.out + found.err


def _by_page(stage: Stage, act: str, _: object) -> str:
    access = Access("token")
    site = site_of(stage.settings, stage.ledger)
    app = make_app(
        Pages(lambda: stage.ledger, lambda: stage.redis, access, lambda: site, stage.settings.state, lambda: "")
    )
    headers = [(b"host", b"127.0.0.1"), (b"cookie", f"{access.cookie}={access.enter('token', 'me')}".encode())]
    session = access.session(Request({"type": "http", "headers": headers}))
    assert session is not None
    stands = {str(TOKEN): stage.token, str(LINK): stage.link}
    fields = {name: stands.get(value, value) for name, value in FIELDS[act].items()}
    body = urlencode({**fields, "form_token": session.form_token, "back": "/"}).encode()
    asked = {"type": "http", "http_version": "1.1", "method": "POST", "path": f"/do/{act}", "raw_path": b"",
             "query_string": b"", "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
             "root_path": "", "headers": [*headers, (b"content-length", str(len(body)).encode())]}  # fmt: skip
    sent = list[MutableMapping[str, Any]]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(asked, receive, send))
    cookie = next(value for name, value in sent[0]["headers"] if name == b"set-cookie").split(b";")[0]
    told = shown.said(Request({"type": "http", "headers": [(b"cookie", cookie)]}))
    assert told is not None and not told[1], told
    return told[0]


def _by_notebook(stage: Stage, act: str, _: object) -> None:
    assert CELLS[act](Farm(stage.settings.state))
