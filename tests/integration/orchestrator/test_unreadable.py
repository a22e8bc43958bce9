"""All that cannot be read is set aside one by one, with an error that names it; the scheduler's turn goes on."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from redis import Redis
from sqlalchemy import Integer, text
from sqlalchemy.exc import IntegrityError
from starlette.applications import Starlette
from typer.main import get_command

from dashboards.web.access import Access
from dashboards.web.app import Pages, make_app
from farm.cli.app import application
from orchestrator import acts
from orchestrator.answers.standing import all_in_brief, how_far
from orchestrator.answers.story import story_of
from orchestrator.coordination import keys
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.sweep import Sweep
from orchestrator.ledger import HostState, Ledger
from orchestrator.ledger.database import Database
from orchestrator.ledger.guard.column_types import Number, misfit
from orchestrator.ledger.runs.queueing import QueueRunBody
from orchestrator.ledger.tables import METADATA
from orchestrator.ledger.upkeep.check import check
from orchestrator.metrics.queue import queue_families
from orchestrator.model.errors import FarmError, Unreadable
from orchestrator.model.live.lease import Assignment
from orchestrator.model.people import Kind, Role
from orchestrator.nightly.past import readable_nights
from orchestrator.queueing.kept.run import list_runs
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .hosts import Host
from .sites import ME, site


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0) as opened:
        yield opened


@pytest.fixture
def host(farm: Settings, redis: Redis) -> Host:
    found = Host(farm, redis, [make.device("A")])
    found.announce()
    return found


def submit(ledger: Ledger, host: Host, experiment_id: str, blocks: int = 1) -> None:
    experiment = make.many(blocks, name=experiment_id)
    jobs = expand(experiment, experiment_id, host.devices).jobs
    assert ledger.submit(experiment_id, experiment, jobs)


def damage(farm: Settings, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
        connection.execute(statement, values)
        connection.commit()


def ids_of(farm: Settings, experiment_id: str) -> list[str]:
    asked = "SELECT j.id FROM jobs j JOIN experiments e ON e.sequence = experiment WHERE e.id = ? ORDER BY 1"
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
        return [str(job_id) for (job_id,) in connection.execute(asked, (experiment_id,))]


def until_over(scheduler: Scheduler, ledger: Ledger, host: Host, experiment_id: str) -> None:
    end = time.monotonic() + 30.0  # a device whose attempt has a token from nowhere works again after some seconds
    while ledger.counts(experiment_id).keys() - {"ok"}:
        assert time.monotonic() < end, f"{experiment_id}: {ledger.counts(experiment_id)}"
        host.announce()  # as hosts do: on a loaded machine a test takes longer than an announcement holds
        scheduler.tick()
        host.claim()
        host.finish()
        time.sleep(0.02)


@pytest.mark.parametrize("body", [b"no zlib", b"", b"x\x9c\xabV*I-.Q\xb2R(\xcfH,Q\xb2\x02\x00"])
def test_a_job_that_cannot_be_read_fails_alone(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    submit(ledger, host, "bad-1")
    submit(ledger, host, "good-1", blocks=3)
    (bad,) = ledger.jobs("bad-1")
    damage(farm, "UPDATE templates SET body = ? WHERE experiment = 1", body)
    until_over(Scheduler(farm, ledger, redis), ledger, host, "good-1")
    assert ledger.counts("bad-1") == {"failed": 1} and ledger.running() == []
    assert f"job {bad.job_id} in the ledger cannot be read" in caplog.text and "remedy:" in caplog.text
    assert ledger.jobs("bad-1") == [], "the others of an experiment are shown without it"


@pytest.mark.parametrize("spec", ["{half", '{"name": "bad", "no such field": 1}', "[]"])
def test_an_experiment_that_cannot_be_read_fails_alone(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, spec: str
) -> None:
    submit(ledger, host, "bad-1", blocks=2)
    submit(ledger, host, "good-1", blocks=3)
    damage(farm, "UPDATE experiments SET spec = ? WHERE id = 'bad-1'", spec)
    with Ledger(farm.ledger) as fresh:
        until_over(Scheduler(farm, fresh, redis), fresh, host, "good-1")
    assert ledger.counts("bad-1") == {"failed": 2}
    assert [row.id for row in ledger.experiments()] == ["good-1"]
    with pytest.raises(Unreadable, match="experiment bad-1"):
        ledger.experiment("bad-1")
    with closing(Database(farm.ledger)) as database, database.read() as connection:
        assert list(queue_families(connection, {}))


def test_a_record_that_cannot_be_read_is_skipped(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    submit(ledger, host, "good-1", blocks=3)
    until_over(Scheduler(farm, ledger, redis), ledger, host, "good-1")
    first, *others = ledger.records("good-1")
    damage(farm, "UPDATE records SET body = x'00' WHERE job_id = ?", first.job_id)
    assert list(ledger.records("good-1")) == others
    assert list(ledger.records_of([first.job_id])) == []
    assert f"the record of attempt 1 at job {first.job_id}" in caplog.text


@pytest.mark.parametrize("kind", ["fields", "type", "type, swept"])
def test_a_lease_that_cannot_be_read_is_as_if_redis_had_lost_it(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, kind: str
) -> None:
    submit(ledger, host, "good-1", blocks=2)
    scheduler = Scheduler(farm, ledger, redis)
    scheduler.tick()
    (running,) = host.claim()
    host.announce()
    if kind == "fields":
        redis.hset(keys.held("lab", "A"), mapping={"expires_at": "soon", "token": "none", "of a newer version": 1})
    else:
        redis.set(keys.held("lab", "A"), "no hash")
    if kind.endswith("swept"):
        Sweep(redis).look(at_once=True)
    assert scheduler.tick().restored == 1
    assert Leases(redis).all()["A"].token == running.token
    until_over(scheduler, ledger, host, "good-1")


@pytest.mark.parametrize("kind", ["fields", "type"])
def test_what_an_ended_lease_left_and_cannot_be_read_stops_no_scheduler(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, kind: str
) -> None:
    key = keys.lease("A")
    submit(ledger, host, "good-1", blocks=3)
    scheduler = Scheduler(farm, ledger, redis)
    scheduler.tick()
    host.claim()
    host.finish()
    assert not Leases(redis).everywhere()
    redis.delete(key)
    if kind == "fields":
        redis.hset(key, mapping={"token": "none", "last": "none", "expires_at": "soon", "job_id": "x"})
    else:
        redis.set(key, "no hash")
    until_over(scheduler, ledger, host, "good-1")


def test_what_a_host_makes_of_its_own_lease_keeps_nobody_from_the_device(redis: Redis) -> None:
    leases, job = Leases(redis), make.job()
    mine = Assignment(serial="A", host="lab", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=60.0)
    assert leases.acquire(mine) and leases.release("A", 1)
    redis.set(keys.held("lab", "A"), "no hash")
    assert not leases.reap("A", 1)
    assert leases.acquire(mine.model_copy(update={"host": "other", "token": 2}))


def test_an_attempt_whose_job_cannot_be_read_any_more_is_not_restored(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    submit(ledger, host, "bad-1")
    scheduler = Scheduler(farm, ledger, redis)
    scheduler.tick()
    host.claim()
    damage(farm, "UPDATE templates SET body = x'00'")
    redis.flushall()
    host.announce()
    assert scheduler.tick().lost == 1
    assert "cannot be read" in caplog.text


DRAWN = 12
NONSENSE = (
    "", "nonsense", "{", "[]", "{}", "null", "[null]", '"x"', "7", "[[1]]", b"\xff\xfe", b"x\x9c", "\x00",
    "9" * 400, -1, 2**52, 2**53, 2**62, 0.5, 1e300,
)  # fmt: skip
KEYS = {
    "id", "experiment_id", "job_id", "serial", "digest", "name", "host", "suite", "target", "what", "word",
}  # fmt: skip
"""The columns that name a row for people: that a row has another's name is not for its reader to see."""
COLUMNS = [
    (table.name, column.name)
    for table in METADATA.sorted_tables
    for column in table.columns
    if (column.name not in KEYS or isinstance(column.type, Integer | Number)) and column.computed is None
]


def damaged_at_random(farm: Settings, chance: random.Random, experiment_id: str) -> list[str]:
    """Some columns of rows that are another experiment's, where a row is of one."""
    of_experiment = "experiment NOT IN (SELECT sequence FROM experiments WHERE id = ?)"
    of_job = "SELECT j.id FROM jobs j JOIN experiments e ON e.sequence = experiment WHERE e.id = ?"
    of_lane = "SELECT choice_id FROM lanes JOIN experiments e ON e.sequence = experiment WHERE e.id = ?"
    own = {
        "experiments": "id != ?",
        **dict.fromkeys(("jobs", "lanes", "templates"), of_experiment),
        "choices": f"id NOT IN ({of_lane})",
        "choice_devices": f"choice_id NOT IN ({of_lane})",
        "records": "experiment_id != ?",
        "figures": "experiment_id != ?",
        "attempts": f"job_id NOT IN ({of_job})",
    }
    done = []
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
        for table, column in chance.sample(COLUMNS, chance.randrange(2, 12)):
            where, value = own.get(table, "? != ''"), chance.choice(NONSENSE)
            rows = connection.execute(f"SELECT rowid FROM {table} WHERE {where}", (experiment_id,)).fetchall()
            for (row,) in chance.sample(rows, chance.randint(min(1, len(rows)), len(rows))):
                with suppress(sqlite3.IntegrityError):  # a number that must be its own
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
            done.append(f"{table}.{column} = {value!r}"[:80])
        connection.commit()
    return done


NUMBERS = (0, 2**31, 2**52, 2**53 - 1, 2**53, 2**62)


@pytest.mark.parametrize("draw", range(2))
def test_a_token_from_nowhere_keeps_nobody_from_a_device(
    farm: Settings, redis: Redis, url: str, seed: int, draw: int
) -> None:
    """It is an attempt's, a job's, a device's fence, or what was counted last: also one that is to be given next.
    After a lease's life at most every device works."""
    chance = random.Random(f"{seed}:{draw}:{url.partition(':')[0]}")
    farm = farm.model_copy(update={"lease_ttl_s": 1.0, "ledger_url": url})
    host = Host(farm, redis, [make.device("A"), make.device("B")])
    host.announce()
    with Ledger(url, rest_s=0.0) as ledger, closing(Database(url)) as database:
        _tokens_from_nowhere(chance, farm, redis, host, ledger, database)


def _tokens_from_nowhere(
    chance: random.Random, farm: Settings, redis: Redis, host: Host, ledger: Ledger, database: Database
) -> None:
    submit(ledger, host, "bad-1", blocks=4)
    scheduler = Scheduler(farm, ledger, redis)
    for _ in range(2):
        scheduler.tick()
        host.claim()
        host.finish()
    scheduler.tick()
    submit(ledger, host, "good-1", blocks=3)
    for _ in range(chance.randrange(1, 4)):
        token = chance.choice((chance.randrange(20), max(0, chance.choice(NUMBERS) - chance.randrange(3))))
        match chance.choice(("attempts", "jobs", "fence", "counters")):
            case "fence":
                redis.hset(keys.lease(chance.choice("AB")), "last", token)
            case "counters":
                with database.write() as connection:
                    connection.execute(
                        text("UPDATE counters SET value = :token WHERE name = 'token'"), {"token": token}
                    )
            case table:
                one = f"(SELECT token FROM {table} ORDER BY token DESC LIMIT 1 OFFSET {chance.randrange(4)})"
                with suppress(IntegrityError), database.write() as connection:  # another attempt's
                    connection.execute(text(f"UPDATE {table} SET token = :token WHERE token = {one}"), {"token": token})
    until_over(scheduler, ledger, host, "good-1")


def test_no_number_is_skipped_that_nothing_holds(ledger: Ledger, host: Host) -> None:
    """Whatever else keeps attempts from beginning, tokens are not used up."""
    submit(ledger, host, "first-1", blocks=2)
    first, second = ledger.jobs("first-1")
    one = ledger.begin_attempt(first.job_id, "A", "lab", 60.0)
    for _ in range(3):
        ledger.skip_tokens(1)
    other = ledger.begin_attempt(second.job_id, "A", "lab", 60.0)
    assert one is not None and other is not None and other.token == one.token + 1


async def answer(app: Starlette, path: str) -> tuple[int, str]:
    """Return a page's status and text."""
    sent = list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    head = {"type": "http", "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "root_path": ""}
    asked = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "client": ("127.0.0.1", 1)}
    await app({**head, **asked, "headers": [(b"host", b"127.0.0.1")]}, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode(errors="replace")


@cache
def farm_command() -> Any:
    """Made once: it takes a second."""
    return get_command(application())


@pytest.mark.parametrize("draw", range(6))
def test_any_column_of_any_row_costs_that_row_alone(
    farm: Settings, redis: Redis, ledger: Ledger, seed: int, draw: int
) -> None:
    """Scheduler, commands, exporter and pages go on; the experiment whose rows are sound gets its results."""
    chance = random.Random(f"{seed}:{draw}")
    host = Host(farm, redis, [make.device("A"), make.device("B", host="lab")])
    host.announce()
    for number in range(3):
        submit(ledger, host, f"bad-{number}", blocks=2)
    scheduler = Scheduler(farm, ledger, redis)
    for _ in range(2):
        scheduler.tick()
        host.claim()
        host.finish()
    scheduler.tick()
    ledger.standing.say_of_host("other", HostState.DRAINING)
    ledger.standing.hold(["C"], "me")
    acts.devices.release(site(farm, ledger, redis), ME, "C")
    ledger.standing.hold(["C"], "me")
    for name in ("anna", "bob"):
        ledger.people.add(name, Kind.PERSON)
        ledger.people.grant(name, Role.VIEW, "common")
        ledger.people.tokens.make(name, Role.VIEW, "", "", None)
    ledger.dead.set_aside(b"x", "why", host="lab", name="n")
    ledger.nights.begin("night-1", "suite", 1.0, b"{}")
    ledger.nights.schedule("suite", "file", "0 0 * * *", b"{}")
    ledger.queue_runs.keep("queue", 1.0, "simulated", 1, b"{}", QueueRunBody(b"{}", b"", b""))
    good = make.many(2, name="good")
    ledger.submit("good-1", good, expand(good, "good-1", host.devices[:1]).jobs)
    what = damaged_at_random(farm, chance, "good-1")
    with closing(Database(farm.ledger)) as database:
        assert [looked.at for looked in check(database)], "the check goes through to its end"
    with Ledger(farm.ledger, rest_s=0.0) as fresh:
        until_over(Scheduler(farm, fresh, redis), fresh, host, "good-1")
        assert ledger.counts("good-1")["ok"] == 2, what
        readable_nights(fresh.nights.of())
        list_runs(fresh)
        asked = Pages(lambda: fresh, lambda: redis, Access("token"), lambda: site(farm, fresh, redis), farm.state, str)
        pages = make_app(asked)
        jobs = [job_id for number in range(3) for job_id in ids_of(farm, f"bad-{number}")]
        for path in ("/", "/queue", "/experiments", "/experiments/good-1", "/experiments/bad-1", "/nights", "/hosts",
                     "/projects", "/people", "/ranking", "/calendar", "/audit",
                     "/devices/A", "/devices/C", *(f"/jobs/{job_id}" for job_id in jobs[:2])):  # fmt: skip
            status, text = asyncio.run(answer(pages, path))
            assert status < 500, (what, path, text)
    environment = {**os.environ, "FARM_STATE": str(farm.state), "FARM_REDIS_URL": farm.redis_url}
    asked = (
        "status;status good-1;status bad-1;results good-1;results bad-1;records;devices;host list;nightly show;audit;"
        "people list;tokens list;projects list;compare good-1 bad-1"
    )
    for command in map(str.split, asked.split(";")):
        shown = CliRunner().invoke(farm_command(), command, env=environment)
        told = what, command, shown.output, shown.exception
        assert "report it" not in shown.output and isinstance(shown.exception, SystemExit | FarmError | None), told
    with closing(Database(farm.ledger)) as database, database.read() as connection:
        assert list(queue_families(connection, {}))


OWNERS = {
    **dict.fromkeys(("lanes", "templates", "jobs"), "(SELECT id FROM experiments WHERE sequence = t.experiment)"),
    "choices": "(SELECT e.id FROM lanes JOIN experiments e ON e.sequence = experiment WHERE choice_id = t.id)",
    "choice_devices": "(SELECT e.id FROM lanes l JOIN experiments e ON e.sequence = experiment"
    " WHERE l.choice_id = t.choice_id)",
    "attempts": "(SELECT e.id FROM jobs j JOIN experiments e ON e.sequence = experiment WHERE j.id = t.job_id)",
    **dict.fromkeys(("experiments", "nights", "queue_runs", "dead_records"), "t.id"),
    **dict.fromkeys(("records", "figures"), "t.experiment_id"),
    **dict.fromkeys(("device_health", "holds", "owners"), "t.serial"),
    **{"host_health": "t.host", "hosts": "t.name", "schedules": "t.suite", "audit": "t.target"},
}
"""The one whose answers a row is for: an experiment (of its device's name), a host, a suite. Other tables have none."""


def answers(ledger: Ledger) -> dict[tuple[str, str], object]:
    """Return what the ledger says, by door and by whom it is of."""
    found: dict[tuple[str, str], object] = {}

    def note(door: str, rows: Iterable[tuple[object, object]]) -> None:
        found.update({(door, str(owner)): answer for owner, answer in rows})

    one_by_one: dict[str, Callable[[str], object]] = {
        "counts": ledger.counts,
        "jobs": ledger.jobs,
        "cells": ledger.cells,
        "records": lambda each: list(ledger.records(each)),
        "figures": ledger.figures,
        "briefs": ledger.briefs,
        "listed": lambda each: ledger.listed.jobs(each, (), 0, 100),
        "standing": lambda each: how_far(ledger, ledger.experiment(each), None, lambda: None),
        "stories": lambda each: [story_of(ledger, row.job.job_id, None) for row in ledger.jobs(each)],
        "night": lambda each: ledger.nights.one(each),
        "queue run": lambda each: ledger.queue_runs.body(each),
        "device": lambda each: ledger.listed.of_device(each, 100),
    }
    of = {
        "night": ["night-0", "night-1"],
        "queue run": [each.id for each in ledger.queue_runs.listed()],
        "device": "ABC",
    }
    for door, ask in one_by_one.items():
        for each in of.get(door, "ABC"):
            try:
                note(door, [(each, ask(each))])
            except Unreadable as e:
                note(door, [(each, str(e))])
    note("experiments", ((row.id, row) for row in ledger.experiments()))
    note("names", ledger.experiment_names().items())
    note("status", ((each["experiment"], each) for each in all_in_brief(ledger, None)))
    note("page", ((row.id, row) for row in ledger.listed.experiments(0, 100)[0]))
    note("waiting", ((row.experiment_id, row.jobs) for row in ledger.waiting_groups(())))
    note("running", ((row.experiment_id, row) for row in ledger.running()))
    note("hosts", ((row.name, row) for row in ledger.standing.hosts()))
    note("holds", ((row.serial, row) for row in ledger.standing.holds()))
    note("owners", ledger.standing.owners().items())
    note("quarantined", ((row.serial, row) for row in ledger.standing.quarantined()))
    note("nights", ((row.id, row) for row in ledger.nights.of()))
    note("schedules", ((row.suite, row) for row in ledger.nights.schedules()))
    note("queue runs", ((row.id, row) for row in ledger.queue_runs.listed()))
    note("dead", ((row.id, row) for row in ledger.dead.every()))
    note("audit", ((row.target, row) for row in ledger.audit.newest(100)))
    return found


@pytest.fixture
def full(farm: Settings, redis: Redis, ledger: Ledger) -> Settings:
    """A farm with a row in every table but those of archives."""
    host = Host(farm, redis, [make.device(name) for name in "ABC"])
    host.announce()
    scheduler = Scheduler(farm, ledger, redis)
    for name in "ABC":
        experiment = make.many(3, name=name)
        jobs = expand(experiment, name, [each for each in host.devices if each.serial == name]).jobs
        assert ledger.submit(name, experiment, jobs)
    for name in "AB":
        until_over(scheduler, ledger, host, name)
    ledger.standing.say_of_host("lab", HostState.ACTIVE)
    ledger.standing.say_of_host("other", HostState.DRAINING)
    ledger.dead.set_aside(b"x", "why", host="lab", name="n")
    for number, serial in enumerate("AB"):
        ledger.standing.hold([serial], "me")
        ledger.audit.note(ME, "hold", serial, "held")
        ledger.nights.begin(f"night-{number}", "suite", 1.0, b"{}")
        ledger.nights.schedule(f"suite-{number}", "file", "0 0 * * *", b"{}")
        ledger.queue_runs.keep(f"queue-{number}", 1.0, "simulated", 1, b"{}", QueueRunBody(b"{}", b"", b""))
    return farm


def test_what_is_said_of_all_others_stays(
    full: Settings, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of each drawn column is damaged: no answer about anything else changes, and the log names the row."""
    chance = random.Random(seed)
    with Ledger(full.ledger) as fresh:
        before = answers(fresh)
    sound, file = Path(full.ledger.removeprefix("sqlite:///")), tmp_path / "damaged.sqlite"
    for table, column in chance.sample(COLUMNS, DRAWN):
        file.unlink(missing_ok=True)
        with closing(sqlite3.connect(sound)) as source, closing(sqlite3.connect(file)) as damaged:
            source.backup(damaged)
            key = ", ".join(f"t.{each.name}" for each in METADATA.tables[table].primary_key)
            owners = f"SELECT t.rowid, {OWNERS.get(table, repr('nobody'))}, {key} FROM {table} t"
            rows = damaged.execute(owners).fetchall()
            row, owner, *names = chance.choice(rows or [(0, "")])
            value = chance.choice(NONSENSE)
            with suppress(sqlite3.IntegrityError):  # a number that must be its own
                damaged.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
            damaged.commit()
            kept = damaged.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone() or (None,)
        kind = METADATA.tables[table].c[column].type
        is_number = type(kept[0]) in (int, float) and not misfit(kind, kept[0])
        what = f"{table}.{column} of {owner} = {value!r}"
        caplog.clear()
        with Ledger(f"sqlite:///{file}") as fresh:
            after = answers(fresh)
        changed = {key: str(after.get(key, "")) for key in before if before[key] != after.get(key)}
        assert {key for key in changed if key[1] != owner} == set(), what
        told = "".join([caplog.text, *changed.values()])
        named = f"{table}.{column}" in told or any(str(name) in told for name in names)
        assert before.keys() <= after.keys() or is_number or named, what
