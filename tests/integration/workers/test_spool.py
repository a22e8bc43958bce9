"""Records survive the worker and Redis, and leave the disk only against a receipt."""

from __future__ import annotations

import logging
import os
import random
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.client import client_of
from orchestrator.coordination.record_stream import RECORD_BYTES, RecordStream
from orchestrator.ledger.records import parsed
from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.errors import ServiceDown, Unstorable
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.waiting import LIMIT_S, eventually
from workers.spool import Spool, kept
from workers.spool import spool as spool_module
from workers.spool.body import body_of
from workers.spool.kept import KeptRecords


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as started:
        yield started


@pytest.fixture
def redis(server: RedisServer, tmp_path: Path) -> Iterator[Redis]:
    with client_of(Settings(state=tmp_path, redis_url=server.url)) as client:
        yield client


def record(job_id: str = "job1", attempt: int = 1) -> Record:
    facts = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
    return Record(
        experiment_id="e",
        job_id=job_id,
        cell_id="c",
        block=0,
        attempt=attempt,
        token=7,
        worker="w",
        device=facts,
        source=Source.PHONE,
        outcome=Outcome.OK,
        started_at=1.0,
        ended_at=2.0,
    )


def sent(redis: Redis) -> list[Record]:
    return [Record.model_validate_json(fields["record"]) for _, fields in redis.xrange(keys.records(""))]


def test_kept_on_disk_until_the_receipt(tmp_path: Path, redis: Redis) -> None:
    now = [0.0]
    spool = Spool(tmp_path, clock=lambda: now[0])
    path = spool.add(record())
    spool.send(redis)
    spool.send(redis)
    spool.flush(everything=False)
    assert sent(redis) == [record()], "sent once, not in every pass"
    assert not path.exists() and spool.waiting() == [path]
    now[0] = kept.FLUSH_S
    spool.flush(everything=False)
    assert path.exists()
    redis.set(keys.receipt("", "job1:1"), "new")
    spool.send(redis)
    assert spool.waiting() == []
    assert len(sent(redis)) == 1


def test_many_that_are_due_share_a_file_until_each_gets_its_own(tmp_path: Path, redis: Redis) -> None:
    """A process that is killed meanwhile loses none, and sends none that the ledger has."""
    now = [0.0]

    def files(ending: str) -> list[str]:
        return sorted(path.name for path in (tmp_path / "spool").glob(f"*{ending}"))

    killed = Spool(tmp_path, clock=lambda: now[0])
    for number in range(kept.BUNDLE):
        killed.add(record(f"job{number}"))
    now[0] += kept.FLUSH_S
    killed.flush(everything=False)
    assert len(files(".bundle")) == 1 and not files(".json")

    spool, stop = Spool(tmp_path), threading.Event()
    redis.set(keys.receipt("", "job0:1"), "new")
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        eventually(lambda: len(sent(redis)) == kept.BUNDLE - 1)
        eventually(lambda: not files(".bundle"))
    finally:
        stop.set()
        spool.nudge()
        sender.join(60)
    others = [f"job{number}" for number in range(1, kept.BUNDLE)]
    assert sorted(each.job_id for each in sent(redis)) == others
    assert files(".json") == [f"{name}-1.json" for name in others]


def test_what_nobody_waits_for_goes_with_what_is_awaited(
    tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the others may be gathered."""
    monkeypatch.setattr(spool_module, "GATHER_S", 2 * LIMIT_S)
    spool, stop = Spool(tmp_path), threading.Event()
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        spool.add(record("first"))
        eventually(lambda: len(sent(redis)) == 1)
        spool.add(record("second"), is_awaited=False)
        spool.add(record("third"))
        eventually(lambda: len(sent(redis)) == 3)
        monkeypatch.setattr(spool_module, "GATHER_S", 0.0)
        spool.add(record("fourth"), is_awaited=False)
        eventually(lambda: len(sent(redis)) == 4)
    finally:
        stop.set()
        spool.nudge()
        sender.join(60)


def test_a_bundle_goes_with_the_last_receipt(tmp_path: Path, redis: Redis) -> None:
    now = [0.0]
    spool = Spool(tmp_path, clock=lambda: now[0])
    for number in range(kept.BUNDLE):
        spool.add(record(f"job{number}"))
    now[0] += kept.FLUSH_S
    spool.flush(everything=False)
    for number in range(kept.BUNDLE):
        assert len(list((tmp_path / "spool").iterdir())) == 1
        redis.set(keys.receipt("", f"job{number}:1"), "new")
        spool.send(redis)
    assert spool.waiting() == [] and not list((tmp_path / "spool").iterdir())


def test_what_the_ledger_has_soon_never_touches_the_disk(tmp_path: Path, redis: Redis) -> None:
    spool, stop = Spool(tmp_path), threading.Event()
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        redis.set(keys.receipt("", "job1:1"), "new")
        spool.add(record())
        eventually(lambda: not spool.waiting())
    finally:
        stop.set()
        sender.join(60)
    assert not (tmp_path / "spool").exists() or not list((tmp_path / "spool").iterdir())


def test_a_redis_that_hangs_keeps_no_record_from_the_disk(tmp_path: Path, redis: Redis) -> None:
    spool, stop = Spool(tmp_path), threading.Event()
    redis.client_pause(3000)
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        path = spool.add(record())
        eventually(path.exists)
        assert sender.is_alive()
    finally:
        stop.set()
        spool.nudge()
        sender.join(60)
    assert sent(redis) == [record()]


def test_a_clean_end_leaves_nothing_in_memory(tmp_path: Path, server: RedisServer, redis: Redis) -> None:
    spool, stop = Spool(tmp_path), threading.Event()
    server.stop(kill=True)
    for number in range(3):
        spool.add(record(f"job{number}"))
    stop.set()
    spool.run(redis, stop)
    assert [path.name for path in sorted((tmp_path / "spool").iterdir())] == [f"job{n}-1.json" for n in range(3)]


def test_a_restarted_worker_sends_what_is_left(tmp_path: Path, redis: Redis) -> None:
    left = Spool(tmp_path)
    left.add(record())
    left.flush()
    restarted = Spool(tmp_path)
    restarted.send(redis)
    assert sent(redis) == [record()]


def test_sent_again_without_a_receipt(tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "RESEND_S", 0.0)
    spool = Spool(tmp_path)
    spool.add(record())
    spool.send(redis)
    redis.delete(keys.records(""))  # a wiped Redis
    spool.send(redis)
    assert sent(redis) == [record()]


def test_redis_away_and_back(
    tmp_path: Path, server: RedisServer, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "workers.spool")
    spool, stop = Spool(tmp_path), threading.Event()
    server.stop(kill=True)
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        spool.add(record())
        eventually(lambda: "records wait in" in caplog.text)
        server.start()
        eventually(lambda: redis.xlen(keys.records("")))
        assert sent(redis) == [record()]
    finally:
        stop.set()
        sender.join(60)


@pytest.mark.parametrize(
    ("job", "name", "content"),
    [(b"bad", "bad:1", b'{"half a rec'), (b"bad", "bad:1", b"\xff\x00 no text"), (b"\xff", r"\udcff:1", b"{}")],
)
def test_bytes_that_are_no_record_are_sent_as_they_are(
    tmp_path: Path, redis: Redis, job: bytes, name: str, content: bytes
) -> None:
    """The ledger is to say whether they are one; it keeps what is none. The name of a file may be no text, too."""
    spool = Spool(tmp_path, "lab")
    file = os.fsdecode(job + b"-1.json")
    (tmp_path / "spool").mkdir(exist_ok=True)
    (tmp_path / "spool" / file).write_bytes(content)
    spool.add(record("good"))
    spool.send(redis)
    found = {each.name: each for each in RecordStream(redis, "lab").read("", 10)}
    assert (found[name].body, found[name].host) == (content, "lab")
    assert Record.model_validate_json(found["good:1"].body) == record("good")
    redis.set(keys.receipt("lab", name), "dead")
    spool.send(redis)
    assert (tmp_path / "spool" / "dead" / file).read_bytes() == content
    spool.flush()
    assert [path.name for path in spool.waiting()] == ["good-1.json"]


def test_what_an_earlier_version_put_away_is_sent(tmp_path: Path, redis: Redis) -> None:
    spool, stop = Spool(tmp_path), threading.Event()
    path = spool.add(record())
    spool.flush()
    path.rename(tmp_path / "spool" / "job1-1.unreadable")
    stop.set()
    spool.run(redis, stop)
    assert sent(redis) == [record()]


def test_of_what_an_earlier_version_left_too_long_only_that_is_sent(tmp_path: Path, redis: Redis, seed: int) -> None:
    """It lies in `dead/` as a whole when the ledger has said so."""
    spool, more = Spool(tmp_path, "lab"), random.Random(seed).choice([1, 1 << 20, 1 << 29])
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "job1-1.json").touch()
    os.truncate(tmp_path / "spool" / "job1-1.json", RECORD_BYTES + more)
    spool.send(redis)
    (found,) = RecordStream(redis, "lab").read("", 10)
    with pytest.raises(Unstorable, match=f"too long for a record: {RECORD_BYTES + more} bytes"):
        parsed(found.body)
    redis.set(keys.receipt("lab", "job1:1"), "dead")
    spool.send(redis)
    assert not spool.waiting() and (tmp_path / "spool" / "dead" / "job1-1.json").stat().st_size == RECORD_BYTES + more


def test_many_are_sent_once_each_in_few_trips(tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trip may be cut short: what came of it is not sent again."""
    monkeypatch.setattr(spool_module, "TOGETHER", 20)
    names = [f"job{number}" for number in range(60)]
    spool, trips, send_all = Spool(tmp_path), list[int](), RecordStream.send_all

    def counted(stream: RecordStream, records: list[tuple[bytes, str]], *, tell: bool) -> None:
        trips.append(len(records))
        send_all(stream, records[:7] if len(trips) == 2 else records, tell=tell)
        if len(trips) == 2:
            raise ServiceDown("cut")

    monkeypatch.setattr(RecordStream, "send_all", counted)
    for name in names:
        spool.add(record(name))
    spool.send(redis)
    spool.send(redis)
    assert trips == [20, 20, 20]
    assert sorted(each.job_id for each in sent(redis)) == sorted(names)


def test_a_record_that_comes_in_mid_pass_is_sent_once(
    tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, waiting = Spool(tmp_path), KeptRecords.waiting

    def late(self: KeptRecords) -> list[str]:
        monkeypatch.undo()
        spool.add(record())
        return waiting(self)

    monkeypatch.setattr(KeptRecords, "waiting", late)
    spool.send(redis)
    spool.send(redis)
    assert sent(redis) == [record()]


def test_an_unknown_word_deletes_nothing(tmp_path: Path, redis: Redis) -> None:
    """The word is of a scheduler of another version."""
    spool = Spool(tmp_path)
    spool.add(record())
    redis.set(keys.receipt("", "job1:1"), "poison")
    spool.send(redis)
    assert [path.name for path in (tmp_path / "spool" / "dead").iterdir()] == ["job1-1.json"]


def test_no_descriptors_cost_time_only(tmp_path: Path, redis: Redis) -> None:
    spool = Spool(tmp_path)
    spool.add(record())
    spool.flush()
    redis.ping()  # connected
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        spool.send(redis)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sent(redis) == []
    spool.send(redis)
    assert sent(redis) == [record()]
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["job1-1.json"]


def test_a_file_that_cannot_be_read_now_holds_back_no_other(tmp_path: Path, redis: Redis) -> None:
    spool = Spool(tmp_path)
    (tmp_path / "spool" / "bad-1.json").mkdir(parents=True)  # reading it is an OSError
    spool.add(record("good"))
    spool.send(redis)
    assert [each.job_id for each in sent(redis)] == ["good"]
    assert [path.name for path in spool.waiting()] == ["bad-1.json", "good-1.json"]


def test_a_file_that_cannot_be_removed_holds_back_no_other(tmp_path: Path, redis: Redis) -> None:
    spool, stuck = Spool(tmp_path), tmp_path / "spool" / "job1-1.json"
    stuck.mkdir(parents=True)  # `unlink` fails
    path = spool.add(record("job2"))
    spool.flush()
    spool.send(redis)
    for name in ("job1:1", "job2:1"):
        redis.set(keys.receipt("", name), "new")
    spool.send(redis)
    assert not path.exists() and spool.waiting() == [stuck]


def test_a_record_longer_than_the_farm_takes_is_a_failure_that_it_takes(seed: int) -> None:
    """Whatever part makes it long; it is the same attempt, and says what to do."""
    draw = random.Random(seed)
    long, most = ("x" * 400,) * draw.randint(100, 400), draw.randint(4_000, 30_000)
    given = record("long").model_copy(update={draw.choice(["evidence", "reasons"]): long, "outcome": Outcome.OK})
    assert body_of(given) == body_of(given, len(given.model_dump_json())) == given.model_dump_json()
    found = Record.model_validate_json(body_of(given, most))
    assert (found.outcome, found.cause) == (Outcome.FAILED, "record_too_long") and "sampling.load" in found.reasons[0]
    assert (found.job_id, found.attempt, found.token) == (given.job_id, given.attempt, given.token)
    assert len(found.model_dump_json()) < most


def test_a_record_that_redis_refuses_holds_back_no_other(tmp_path: Path, redis: Redis) -> None:
    """It is tried again ever later; the others are sent in the same pass."""
    redis.config_set("proto-max-bulk-len", 1 << 20)
    now = [0.0]
    spool = Spool(tmp_path, clock=lambda: now[0])
    large = record("large").model_copy(update={"reasons": ("x" * (2 << 20),)})
    path = spool.add(large)
    spool.flush()
    os.utime(path, (1, 1))
    spool.add(record("good"))
    spool.send(redis)
    assert [each.job_id for each in sent(redis)] == ["good"]
    redis.config_set("proto-max-bulk-len", 512 << 20)
    now[0] = spool_module.RESEND_S - 1
    spool.send(redis)
    assert len(sent(redis)) == 1
    now[0] = spool_module.RESEND_S
    spool.send(redis)
    assert [each.job_id for each in sent(redis)] == ["good", "large"]


def test_a_long_outage_of_the_ledger_fills_no_stream(tmp_path: Path, redis: Redis) -> None:
    """Ten minutes without a receipt, and a worker that is started again: the stream has the record twice at most."""
    now = [0.0]
    large = record().model_copy(update={"evidence": ("x" * 500,) * 50})
    spool = Spool(tmp_path, clock=lambda: now[0])
    spool.add(large)
    for second in range(600):
        now[0] = float(second)
        if second == 300:
            spool.flush()
            spool = Spool(tmp_path, clock=lambda: now[0])
        spool.send(redis)
    assert redis.xlen(keys.records("")) == 1


def test_entries_that_vanish_are_sent_ever_more_rarely(tmp_path: Path, redis: Redis) -> None:
    """A scheduler may take them and answer nothing."""
    now, taken = [0.0], []
    spool = Spool(tmp_path, clock=lambda: now[0])
    spool.add(record())
    for second in range(0, 3600, 10):
        now[0] = float(second)
        spool.send(redis)
        if redis.delete(keys.records("")):
            taken.append(second)
    assert taken[:5] == [0, 10, 30, 70, 150]
    assert max(later - sooner for sooner, later in pairwise(taken)) == spool_module.MAX_RESEND_S


def test_a_disk_that_takes_nothing_loses_no_record(tmp_path: Path, redis: Redis) -> None:
    (tmp_path / "spool").write_text("in the way of the folder")
    spool = Spool(tmp_path)
    spool.add(record())
    spool.send(redis)
    assert sent(redis) == [record()] and len(spool.waiting()) == 1
    spool.flush()
    assert len(spool.waiting()) == 1
    (tmp_path / "spool").unlink()
    spool.flush()
    assert Record.model_validate_json((tmp_path / "spool" / "job1-1.json").read_text()) == record()
    redis.set(keys.receipt("", "job1:1"), "new")
    spool.send(redis)
    assert spool.waiting() == [] and list((tmp_path / "spool").iterdir()) == []


def test_the_sender_outlives_what_nobody_foresaw(tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    spool, stop = Spool(tmp_path), threading.Event()
    failures, waiting = [RuntimeError("out of the blue"), MemoryError()], KeptRecords.waiting

    def fail(self: KeptRecords) -> list[str]:
        if failures:
            raise failures.pop()
        return waiting(self)

    monkeypatch.setattr(KeptRecords, "waiting", fail)
    monkeypatch.setattr(spool_module, "PERIOD_S", 0.01)
    redis.set(keys.receipt("", "job1:1"), "new")
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        eventually(lambda: not failures)
        spool.add(record())
        eventually(lambda: spool.waiting() == [])
        assert sender.is_alive() and sent(redis) == [record()]
    finally:
        stop.set()
        sender.join(60)


def test_threads_that_ask_at_once_find_a_fit_disk(tmp_path: Path) -> None:
    """A wake-up asks beside the announcements: neither may take the other's trial file for a disk that is lost."""
    spool = Spool(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: spool.check(), range(400)))
    assert not any(found)
