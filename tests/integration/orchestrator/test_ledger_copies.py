"""A ledger at work is copied whole, and put back: nothing that was handed out before counts again."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from redis import Redis
from sqlalchemy import text

from orchestrator.coordination import keys
from orchestrator.coordination.record_stream import forget_receipts
from orchestrator.ledger import KeepResult, Ledger
from orchestrator.ledger.people import passwords
from orchestrator.ledger.schema import FIRST_VERSION
from orchestrator.ledger.upkeep import copies
from orchestrator.model.errors import SetupError
from orchestrator.model.people import Door, Kind, Role
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Actor, Grants, Terms
from orchestrator.scheduling.intake import Intake
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.system.config import Settings
from tests.integration.orchestrator import ledgers
from tests.integration.orchestrator.test_migrations import filled
from workers.spool import Spool


def test_people_come_back_with_all_that_lets_them_in(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "HASHER", PasswordHasher.from_parameters(CHEAPEST))
    copy = tmp_path / "copy"
    with Ledger(url) as ledger:
        people = ledger.people
        people.add("anna", Kind.PERSON)
        people.add_project("vision", "of cameras", Terms(share=2.0))
        people.grant("anna", Role.OPERATE, "vision")
        people.passwords.set("anna", "correct horse battery")
        token = people.tokens.make("anna", Role.SUBMIT, "", "", None)[1]
        secret = people.links.make("a", "vision", "anna", "", 9e9)[1]
        people.webhooks.add("http://127.0.0.1:9/", "vision", "anna")
        ledger.audit.note(Actor("anna", Door.PAGE, Grants()), "cancel", "a", "done")
        told = [people.every(), people.projects(), people.tokens.every(), people.links.every(), people.webhooks.every()]
        copies.backup(url, copy)
        people.end("anna")
    copies.restore(url, copy, tmp_path)
    with Ledger(url) as ledger:
        people = ledger.people
        assert told == [
            people.every(), people.projects(), people.tokens.every(), people.links.every(), people.webhooks.every()
        ]  # fmt: skip
        bearer, link = people.tokens.bearer(token), people.links.shown(secret)
        assert bearer is not None and bearer.grants.projects == {"vision": Role.SUBMIT} and link is not None
        tried = ("correct horse battery", "another horse")
        assert [people.passwords.fits("anna", each) for each in tried] == [True, False]
        assert [row.act for row in ledger.audit.newest(9)] == ["cancel"]
    with Ledger(url) as ledger:  # what was noted beside the requests was written when the ledger was closed
        assert all(each.used_at for each in (*ledger.people.tokens.every(), *ledger.people.links.every()))


def test_tokens_never_go_back_and_what_the_copy_lacks_is_measured_again(url: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with Ledger(url) as ledger:
        under_way, later = ledgers.filled(ledger, 2)[1], ledgers.filled(ledger, 1, "b-1")[0]
        old = ledgers.begun(ledger, under_way)
        made = copies.backup(url, copy)
        after = ledgers.measured(ledger, later)  # the copy does not know of it
        assert ledger.keep(ledgers.record_of(old)) is KeepResult.NEW
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and made.size == copy.stat().st_size
    put_back = copies.restore(url, copy, tmp_path)
    assert put_back.before is not None and put_back.before.exists()
    assert put_back.token >= after.token + copies.JUMP
    with Ledger(url) as ledger:
        assert ledger.counts() == {"ok": 1, "placed": 1, "waiting": 1}
        assert len(list(ledger.records("first-1"))) == 1
        ledger.end_attempt(under_way.job_id, old.attempt, Outcome.LOST, "lease_expired")
        again = ledgers.begun(ledger, later)
        assert (again.attempt, again.token) == (after.attempt, put_back.token + 1)
        with pytest.raises(Exception, match="did not begin"):
            ledger.keep(after)  # of the session before, under the same number of attempt
        assert ledger.keep(ledgers.record_of(again)) is KeepResult.NEW
        with ledgers.database(url) as opened, opened.write() as connection:
            connection.execute(text("UPDATE jobs SET not_before = 0"))
        second = ledgers.begun(ledger, under_way)
        assert ledger.keep(ledgers.record_of(old)) is KeepResult.STALE
        assert ledger.keep(ledgers.record_of(second)) is KeepResult.NEW
        assert ledger.counts() == {"ok": 3}


def test_spool_and_receipts_after_a_ledger_was_put_back(farm: Settings, redis: Redis, tmp_path: Path) -> None:
    """A record of an attempt that the copy knows comes from the spool; an old receipt lets go of no new record."""
    spool, copy = Spool(farm.state, "lab"), tmp_path / "copy"
    with Ledger(farm.ledger) as ledger:
        known, lacking = ledgers.filled(ledger, 1) + ledgers.filled(ledger, 1, "b-1")
        record = ledgers.record_of(ledgers.begun(ledger, known))
        copies.backup(farm.ledger, copy)
        spool.add(ledgers.record_of(ledgers.begun(ledger, lacking)))
        spool.send(redis)
        Intake(redis, ledger).drain()
        spool.send(redis)
    assert spool.waiting() == [] and redis.keys(keys.receipt("*", "*"))
    copies.restore(farm.ledger, copy, farm.state)
    with Ledger(farm.ledger) as ledger:
        Scheduler(farm, ledger, redis).tick()
        assert not redis.keys(keys.receipt("*", "*"))
        spool.add(record)
        spool.add(ledgers.record_of(ledgers.begun(ledger, lacking)))
        spool.send(redis)
        assert len(spool.waiting()) == 2, "nobody has them yet"
        Scheduler(farm, ledger, redis).tick()
        assert redis.keys(keys.receipt("*", "*")), "only once after a ledger was put back"
        spool.send(redis)
        assert spool.waiting() == [] and ledger.counts() == {"ok": 2} and ledger.dead.every() == []
    forget_receipts(redis, 5)
    assert not redis.keys(keys.receipt("*", "*"))


def test_a_copy_is_of_one_moment_while_records_come(tmp_path: Path) -> None:
    url, stop = f"sqlite:///{tmp_path / 'ledger.sqlite'}", threading.Event()
    with Ledger(url) as ledger:
        ledgers.filled(ledger, 1)

        def go_on() -> None:
            for number in range(1000):
                if stop.is_set():
                    return
                ledgers.filled(ledger, 3, f"e{number}-1")

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            for number in range(5):
                made = copies.backup(url, tmp_path / f"{number}.sqlite")
                assert made.facts.jobs is not None and made.facts.jobs >= 1
        finally:
            stop.set()
            writer.join()
    for number in range(5):
        with ledgers.database(f"sqlite:///{tmp_path / f'{number}.sqlite'}") as opened, opened.read() as connection:
            over = "SELECT (SELECT count(*) FROM jobs WHERE state = 'done') - (SELECT count(*) FROM records)"
            assert connection.scalar(text(over)) == 0


def test_what_is_no_whole_copy_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    url, copy = f"sqlite:///{file}", tmp_path / "copy"
    with Ledger(url) as ledger:
        ledgers.filled(ledger, 3)
        copies.backup(url, copy)
        with pytest.raises(SetupError, match="is there already"):
            copies.backup(url, copy)
        with pytest.raises(SetupError, match="another process has"):
            copies.restore(url, copy, tmp_path)
        before = copy.read_bytes()
        assert copies.backup(url, copy, force=True).facts.jobs == 3 and copy.read_bytes() == before
    kept = file.read_bytes()
    for content in (b"", b"no ledger", before[:-4096], before[:8192] + b"\xff" * 4096 + before[12288:]):
        copy.write_bytes(content)
        with pytest.raises(SetupError):
            copies.restore(url, copy, tmp_path)
    for version in (999, FIRST_VERSION - 1):
        other = tmp_path.parent / f"{tmp_path.name}-{version}"
        with closing(sqlite3.connect(other)) as connection:
            connection.executescript(
                f"CREATE TABLE counters (name, value); INSERT INTO counters VALUES ('schema', {version}), ('token', 1);"
                "CREATE TABLE experiments (a); CREATE TABLE jobs (a); CREATE TABLE records (a);"
            )
        with pytest.raises(SetupError, match=f"version {version}"):
            copies.restore(url, other, tmp_path)
    assert file.read_bytes() == kept and not list(tmp_path.glob("*.restoring*")) + list(tmp_path.glob("*before*"))


def test_an_old_copy_is_upgraded_and_a_damaged_ledger_is_set_aside(
    tmp_path: Path, next_version: Callable[[], None]
) -> None:
    old, file = tmp_path / "old.sqlite", tmp_path / "ledger.sqlite"
    jobs, token = filled(f"sqlite:///{old}"), 2**40
    with Ledger(f"sqlite:///{old}") as ledger:
        ledger.skip_tokens(token)
    next_version()
    file.write_bytes(b"damaged" * 1000)
    put_back = copies.restore(f"sqlite:///{file}", old, tmp_path)
    assert put_back.before is not None and put_back.before.read_bytes() == b"damaged" * 1000
    with Ledger(f"sqlite:///{file}") as ledger:
        assert [row.job for row in ledger.jobs("old")] == jobs
        assert ledgers.begun(ledger, jobs[1]).token == token + 2 * copies.JUMP + 1
    assert copies.JUMP > 10**6, "the ledger that is gone may have handed out many"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_postgres_in_use_is_not_replaced_and_a_cut_dump_is_none(postgres: str, tmp_path: Path) -> None:
    url, copy = ledgers.emptied(postgres), tmp_path / "copy"
    with Ledger(url) as ledger:
        ledgers.filled(ledger, 3)
        copies.backup(url, copy)
        with pytest.raises(SetupError, match="other connections"):
            copies.restore(url, copy, tmp_path)
    copy.write_bytes(copy.read_bytes()[:-300])
    with pytest.raises(SetupError, match="no whole dump"):
        copies.restore(url, copy, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
