"""The rights of a host: the farm's own Redis with TLS and access lists, its files over HTTPS, and a hostile host."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import os
import random
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from farm.join import joined, new_secret
from farm.parts.part import free_port
from farm.parts.redis_server import RedisServer
from farm.parts.services import web
from farm.reach import Reach, authority_of, certificates
from orchestrator import acts
from orchestrator.coordination import access, functions, keys
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.client import client_of, connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.coordination.sweep import Sweep
from orchestrator.coordination.tasks.queue import MEASURE, Placed, make_app, revoke, send
from orchestrator.ledger import Ledger
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import FileUnavailable, ModelFileError, ServiceDown, SetupError
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome
from orchestrator.scheduling.intake import Intake
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.celery_worker import events_of, worker_of
from tests.integration.orchestrator.hosts import Host
from tests.integration.orchestrator.sites import ME, site
from tests.servers import Server, required
from tests.unit.orchestrator import make
from tests.waiting import eventually
from workers.files.host_files import HostFiles
from workers.files.outbox import Outbox


@dataclass
class Farm:
    """Redis and the web part as `farm up --listen 127.0.0.1` starts them; hosts `lab` and `evil`."""

    settings: Settings
    hosts: dict[str, Settings]
    redis: Server
    web_log: Path
    ledger: Ledger


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    required("redis-server")
    state = tmp_path_factory.mktemp("listening")
    reach = Reach("127.0.0.1", "127.0.0.1", free_port(), free_port(), authority_of(state))
    with Ledger(Settings(state=state).ledger) as ledger:
        secrets = {name: new_secret() for name in ("lab", "evil")}
        for name, (_, sha256) in secrets.items():
            ledger.standing.admit_host(name, sha256)
    own = RedisServer(state, reach, lambda: {name: sha256 for name, (_, sha256) in secrets.items()})
    settings = Settings(
        state=state, redis_url=own.url, redis_password=SecretStr(own.password), tls_ca=own.ca, host="lab"
    )
    hosts = {
        name: Settings(
            state=state / name,
            host=name,
            redis_url=reach.redis_url,
            redis_user=access.user_of(name),
            redis_password=secret,
            tls_ca=own.ca,
            files_url=reach.web_url,
        )
        for name, (secret, _) in secrets.items()
    }
    with started(own.part(), state) as redis, started(web(reach), state), Ledger(settings.ledger) as ledger:
        yield Farm(settings, hosts, redis, state / "web.log", ledger)


@contextmanager
def started(part: Any, state: Path) -> Iterator[Server]:
    part.before_start()
    environment = {**os.environ, "FARM_STATE": str(state)}
    server = Server(list(part.command), state / f"{part.name}.log", part.is_ready, env=environment)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def redis(farm: Farm) -> Iterator[Redis]:
    with connect(farm.settings) as client:
        client.flushall()
        functions.load(client)
        access.enter(client, farm.hosts)
        yield client


@pytest.fixture
def host(farm: Farm) -> Iterator[Redis]:
    with connect(farm.hosts["lab"]) as client:
        yield client


@pytest.fixture
def evil(farm: Farm) -> Iterator[Redis]:
    with connect(farm.hosts["evil"]) as client:
        yield client


def assignment(token: int, host: str = "lab", serial: str = "A") -> Assignment:
    job = make.job()
    return Assignment(serial=serial, host=host, job_id=job.job_id, job=job, attempt=1, token=token, ttl_s=60.0)


def test_a_host_can_do_all_that_its_worker_does(redis: Redis, host: Redis) -> None:
    """But its queue: the test of the two hosts has a real worker there."""
    assert Leases(redis).acquire(assignment(7))
    inventory, leases, stream = Inventory(host), Leases(host), RecordStream(host, "lab")
    assert inventory.announce_device(make.device("A")) == ""
    inventory.announce_host(HostAnnouncement(host="lab", worker="w", pid=1, protocol=PROTOCOL))
    assert leases.claim("A", 7, "w") == assignment(7) and leases.renew("A", 7, "w", 60.0) == "held"
    assert leases.holder("A") == "w" and leases.standing("A", 7, "w") == "held"
    assert not host.sismember(keys.CANCELLED, "j") and not host.sismember(keys.ENDED, 7)
    stream.send(b"{}", "j:1")
    assert stream.holds("j:1") and stream.receipts(["j:1"]) == {}
    assert leases.release("A", 7) and Leases(redis).all() == {}
    assert [device.serial for device in Inventory(redis).devices()] == ["A"]
    assert [each.host for each in Inventory(redis).hosts()] == ["lab"]
    assert Leases(redis).acquire(assignment(8, "evil")), "it has moved"
    assert leases.renew("A", 7, "w", 60.0) == "superseded" and not leases.release("A", 7)


REPLIES_TO = f"{uuid.UUID(int=7)}.reply.celery.pidbox"
HOSTILE: dict[str, Callable[[Redis], Any]] = {
    "wipe": lambda r: r.flushall(),
    "look around": lambda r: r.scan(0),
    "all keys": lambda r: r.keys("*"),
    "configure": lambda r: r.config_set("maxmemory", 1),
    "another user": lambda r: r.execute_command("ACL", "SETUSER", "host-evil", "+@all"),
    "end a client": lambda r: r.client_kill_filter(_type="normal"),
    "take another's lease away": lambda r: r.delete(keys.held("lab", "A")),
    "move a fencing token": lambda r: r.hset(keys.lease("A"), "token", 99),
    "claim another's lease": lambda r: Leases(r).claim("B", 8, "evil"),
    "renew another's lease": lambda r: Leases(r).renew("A", 7, "w", 60.0),
    "release another's lease": lambda r: Leases(r).release("A", 7),
    "take one by a script": lambda r: r.eval("return redis.call('DEL', KEYS[1])", 1, keys.held("lab", "A")),
    "take one behind a script": lambda r: r.eval("return redis.call('DEL', 'farm:held:lab:A')", 0),
    "out of the index of leases": lambda r: r.srem(keys.LEASED, "lab:A"),
    "read another's assignment": lambda r: r.get(keys.assignment("lab", "A")),
    "read another's queue": lambda r: r.lrange("farm.lab", 0, -1),
    "give another a task": lambda r: r.lpush("farm.lab", "x"),
    "command workers": lambda r: r.publish("/0.celery.pidbox", "{}"),
    "speak where farms may": lambda r: r.publish("/0.celery", "{}"),
    "see events of others": lambda r: r.execute_command("PSUBSCRIBE", "/0.celeryev/*"),
    "read replies of others": lambda r: r.lrange(REPLIES_TO, 0, -1),
    "take replies of others": lambda r: r.rpop(REPLIES_TO),
    "ask for replies": lambda r: r.sadd("_kombu.binding.reply.celery.pidbox", "x"),
    "replies in the form of a lease": lambda r: r.lpush("farm:held:lab:A.reply.celery.pidbox", "x"),
    "send in another's name": lambda r: RecordStream(r, "lab").send(b"{}", "j:1"),
    "read another's records": lambda r: r.xrange(keys.records("lab")),
    "answer another's record": lambda r: r.set(keys.receipt("lab", "j:1"), "new"),
    "answer its own": lambda r: r.set(keys.receipt("evil", "j:1"), "new"),
    "read another's command": lambda r: r.get(keys.asked("lab", "x")),
    "answer another's command": lambda r: r.set(keys.answer("lab", "x"), "{}"),
    "announce another": lambda r: Inventory(r).announce_host(HostAnnouncement(host="lab", worker="e", pid=1)),
    "own another's phone": lambda r: r.hset(keys.OWNERS, "A", "evil"),
    "own it by a key of its own": lambda r: r.set("farm:device_host:A", "evil", ex=10_000_000),
    "a script of its own": lambda r: r.eval("while true do end", 0),
    "a script that is known": lambda r: r.evalsha("0" * 40, 0),
    "load a script": lambda r: r.script_load("return 1"),
    "a function of its own": lambda r: r.function_load("#!lua name=x\nredis.register_function('x', function() end)"),
    "no functions": lambda r: r.function_flush(),
    "no function": lambda r: r.function_delete(functions.LIBRARY),
    "many senders": lambda r: r.sadd(keys.SENDERS, *(f"x{number}" for number in range(1000))),
    "no host's name": lambda r: r.zadd(keys.HOSTS, {"nocolon": 0}),
    "into another's index": lambda r: r.zadd(keys.devices("lab"), {"x": 0}),
    "a large value": lambda r: r.setrange(keys.device("evil", "x"), 500_000_000, "x"),
    "many bits": lambda r: r.setbit(keys.device("evil", "x"), 2**31, 1),
    "ever longer": lambda r: r.append(keys.device("evil", "x"), "x" * 1000),
    "hours of work": lambda r: r.execute_command("LCS", keys.device("evil", "x"), keys.device("evil", "y")),
    "another's phone": lambda r: r.set(keys.device("lab", "A"), "{}"),
    "forget another": lambda r: r.zrem(keys.HOSTS, "lab"),
    "cancel a job": lambda r: r.sadd(keys.CANCELLED, "j"),
    "end an attempt": lambda r: r.sadd(keys.ENDED, 7),
}


def spoilt(evil: Redis, chance: random.Random) -> None:
    """Spoil some of the host's own keys in the ways that it may."""
    makes: list[Callable[[str], object]] = [
        lambda key: evil.set(key, chance.choice(["", "nonsense", "{", "9" * 400, "x" * 2_000_000])),
        lambda key: evil.hset(key, mapping={"token": "x", "expires_at": "inf", "job_id": "y"}),
        lambda key: evil.lpush(key, "x"),
        lambda key: evil.zadd(key, {f"{chance.random()}": 1e300 for _ in range(3000)}),
        lambda key: evil.xadd(key, {chance.choice(["record", "name", "new"]): "x" * chance.choice([1, 3_000_000])}),
        lambda key: evil.sadd(key, "x"),
    ]
    own = [keys.host("evil"), keys.devices("evil"), keys.lives("evil"), keys.records("evil"), keys.change("evil")]
    own += [keys.changes("evil"), keys.news("evil"), "farm.evil", keys.held("evil", "A"), keys.device("evil", "A")]
    own += [keys.live("evil", "A"), keys.assignment("evil", "B"), keys.sent("evil", "j:1")]
    for key in chance.sample(own, chance.randrange(1, len(own))):
        evil.delete(key)
        chance.choice(makes)(key)


def test_a_hostile_host_stops_nobody_else_and_gets_no_phone_of_theirs(
    farm: Farm, redis: Redis, host: Redis, evil: Redis, seed: int
) -> None:
    chance, phones = random.Random(seed), [make.device(serial) for serial in "AB"]
    lab = Host(farm.hosts["lab"], host, phones)
    lab.leases = Leases(redis)  # it looks for its leases in their index
    with Ledger(farm.settings.ledger, rest_s=0.0) as ledger:
        experiment_id = f"hostile-{seed}"
        for name in ("lab", "evil"):  # in this order: a phone that both announce at once is the first one's
            ledger.standing.admit_host(name, hashlib.sha256(secret_of(farm, name)).hexdigest())
        ledger.submit(experiment_id, make.many(6), expand(make.many(6), experiment_id, phones).jobs)
        lab.announce()
        scheduler, stolen = Scheduler(farm.settings, ledger, redis), Host(farm.hosts["evil"], evil, [
            make.device(serial, host="evil") for serial in "AB"
        ])  # fmt: skip
        for _ in range(40):
            with suppress(RedisError, ServiceDown):
                stolen.announce()
                evil.zadd(keys.devices("evil"), {f"x{chance.random()}": 0 for _ in range(2000)})
                spoilt(evil, chance)
            scheduler.tick()
            assert {device.facts.host for device in Inventory(redis).devices()} == {"lab"}
            assert [each.host for each in Inventory(redis).hosts() if each.host != "evil"] == ["lab"]
            lab.announce()
            lab.claim()
            lab.finish()
            if not ledger.counts(experiment_id).keys() - {"ok"}:
                break
        else:
            pytest.fail(str(ledger.counts(experiment_id)))
        acts.hosts.remove_host(site(farm.settings, ledger, redis), ME, "evil", force=True)
        ledger.standing.admit_host("evil", hashlib.sha256(secret_of(farm, "evil")).hexdigest())
    assert [key for key in redis.keys("*evil*") if not key.startswith("_kombu")] == []
    assert not any("evil" in names for names in (redis.smembers(keys.SENDERS), redis.zrange(keys.HOSTS, 0, -1)))
    access.admit(redis, "evil", hashlib.sha256(secret_of(farm, "evil")).hexdigest())


def secret_of(farm: Farm, name: str) -> bytes:
    return farm.hosts[name].redis_password.get_secret_value().encode()


def test_a_host_with_more_than_its_share_loses_what_it_has(
    redis: Redis, evil: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other host loses anything."""
    monkeypatch.setattr(keys, "HOST_BYTES", 1 << 20)
    assert Leases(redis).acquire(assignment(7))
    before = redis.keys("*")
    for number in range(50):
        evil.set(keys.sent("evil", f"j:{number}"), "x" * 4000)
        evil.xadd(keys.records("evil"), {"record": "x" * 40_000, "name": "n"})
    Sweep(redis).look(at_once=True)
    assert sorted(redis.keys("*")) == sorted(before)


def test_replies_that_are_large_many_or_old_go(redis: Redis, evil: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any host writes where another's answers to remote control are; what is asked and fetched at once stays."""

    def reply(size: int) -> str:
        key = f"{uuid.uuid4()}.reply.celery.pidbox"
        evil.lpush(key, "x" * size)
        return key

    fresh, large, old = reply(100), reply(keys.REPLY_BYTES), reply(100)
    redis.restore(old, 0, redis.dump(old), replace=True, idletime=2 * keys.REPLY_LIFE_S)
    evil.sadd("_kombu.binding.celery.pidbox", *(f"{number:1000}" for number in range(5000)))
    Sweep(redis).look(at_once=True)
    assert redis.exists(fresh) and not redis.exists(large, old, "_kombu.binding.celery.pidbox")
    monkeypatch.setattr(keys, "HOST_BYTES", 1 << 20)
    for _ in range(20):
        reply(100_000)
    Sweep(redis).look(at_once=True)
    assert redis.keys("*.reply.celery.pidbox") == []


def test_a_host_s_worker_is_seen_and_obeys_by_its_own_rights(farm: Farm, redis: Redis) -> None:
    worker, asking, began = make_app(farm.hosts["lab"]), make_app(farm.settings), threading.Event()

    @worker.task(name=MEASURE, shared=False)  # type: ignore[untyped-decorator]
    def measure(**_: object) -> None:
        began.set()

    with events_of(asking) as seen, worker_of(worker, keys.queue("lab"), keys.worker("lab")):
        send("lab", Placed("j", 1, "A", 7), by=asking)
        assert began.wait(60)
        eventually(lambda: asking.control.inspect().active() == {"farm@lab": []})
        revoke(["k-1"], by=asking)
        eventually(lambda: "k-1" in asking.control.inspect().revoked()["farm@lab"])
        eventually(lambda: {"task-received", "task-started", "task-succeeded"} <= {event["type"] for event in seen})


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_host_is_refused(redis: Redis, host: Redis, evil: Redis, what: str) -> None:
    assert Leases(redis).acquire(assignment(7)) and Leases(host).claim("A", 7, "w") is not None
    assert Leases(redis).acquire(assignment(8, serial="B"))
    redis.lpush("farm.lab", "task")
    before = {key: redis.dump(key) for key in redis.keys("*")}
    with pytest.raises(ResponseError, match=r"no permissions|can't access at least one of the keys"):
        HOSTILE[what](evil)
    assert {key: redis.dump(key) for key in redis.keys("*")} == before


def test_a_forged_record_is_set_aside_under_the_forger_s_name(
    farm: Farm, redis: Redis, host: Redis, evil: Redis
) -> None:
    """A host may send what it wants in its own stream: tokens are no secret."""
    job = make.job()
    with Ledger(farm.settings.ledger) as ledger:
        ledger.submit("first-1", make.many(1), [job])
        given = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
        assert given is not None
        record = make.record(job, attempt=1, token=given.token)
        body, name = record.model_dump_json().encode(), f"{job.job_id}:1"
        RecordStream(evil, "evil").send(body, name)
        assert Intake(redis, ledger).drain() == {"forged": 1}
        assert RecordStream(host, "lab").receipts([name]) == {}, "the holder is told nothing"
        RecordStream(host, "lab").send(body, name)
        assert Intake(redis, ledger).drain() == {"new": 1}
        assert {dead.host for dead in ledger.dead.every()} == {"evil"}


def test_users_outlive_redis_and_a_removed_one_is_gone(farm: Farm, redis: Redis, evil: Redis) -> None:
    farm.redis.stop(kill=True)
    farm.redis.start()
    with connect(farm.hosts["lab"]) as again:
        assert again.ping()
    access.expel(redis, "evil")
    with pytest.raises(SetupError, match="refuses us"):
        connect(farm.hosts["evil"])
    access.admit(
        redis, "evil", hashlib.sha256(farm.hosts["evil"].redis_password.get_secret_value().encode()).hexdigest()
    )
    with connect(farm.hosts["evil"]) as again:
        assert again.ping()


def test_a_scheduler_lets_hosts_in_by_the_rights_of_its_version(farm: Farm, redis: Redis) -> None:
    redis.execute_command("ACL", "SETUSER", access.user_of("lab"), "clearselectors")
    with Ledger(farm.settings.ledger) as ledger:
        ledger.standing.admit_host("lab", hashlib.sha256(secret_of(farm, "lab")).hexdigest())
        Scheduler(farm.settings, ledger, redis).tick()
    with connect(farm.hosts["lab"]) as again:
        assert again.publish("/0.celeryev/worker.online", "{}") == 0


def test_who_has_no_secret_or_trusts_another_authority_does_not_get_in(farm: Farm, tmp_path: Path) -> None:
    lab = farm.hosts["lab"]
    with pytest.raises(SetupError, match="refuses us"):
        connect(lab.model_copy(update={"redis_password": SecretStr("guessed")}))
    with pytest.raises(SetupError, match="refuses us"):
        connect(lab.model_copy(update={"redis_user": "", "redis_password": lab.redis_password}))
    other = authority_of(tmp_path)
    other.issue("farm", ["127.0.0.1"])
    with pytest.raises(SetupError, match=r"certificate of Redis(.|\n)*is not valid: .*\n.*FARM_TLS_CA"):
        connect(lab.model_copy(update={"tls_ca": other.certificate}))
    plain = lab.model_copy(update={"redis_url": lab.redis_url.replace("rediss", "redis")})
    with pytest.raises(ServiceDown), client_of(plain, reply_s=1.0) as client:
        Inventory(client).hosts()


def test_who_joins_learns_at_once_what_keeps_him_out(farm: Farm, tmp_path: Path) -> None:
    lab, told = farm.hosts["lab"], []
    url = lab.redis_url
    assert joined(lab, url, told.append) == lab and not told
    with pytest.raises(SetupError, match=r"refuses us(.|\n)*farm host add"):
        joined(lab.model_copy(update={"redis_password": SecretStr("guessed")}), url, told.append)
    with pytest.raises(SetupError, match=r"fetches files(.|\n)*FARM_FILES_URL"):
        joined(lab.model_copy(update={"files_url": ""}), url, told.append)
    wrong = tmp_path / "wrong.join"
    wrong.write_text('{"host": "../lab", "redis_url": "rediss://a", "files_url": "", "secret": "", "ca": ""}')
    with pytest.raises(SetupError, match=r"no file of `farm host add`: host"):
        joined(lab, str(wrong), told.append)
    assert not told


def test_who_joins_waits_for_a_farm_that_is_away_or_whose_certificate_begins_later(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host may be up first after a power cut, or its clock behind."""
    lab = farm.hosts["lab"]

    class Left(Exception):
        pass

    def leave(reason: str) -> None:
        raise Left(reason)

    with pytest.raises(Left, match=r"does not answer: .*refused.*farm up --listen"):
        joined(lab, f"rediss://127.0.0.1:{free_port()}/0", leave)
    monkeypatch.setattr(certificates, "EARLIER", timedelta(days=-1))
    later = authority_of(tmp_path)
    own = later.issue("farm", ["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.certificate, own.key)
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(Left, match=r"does not answer: .*not yet valid"):
            url = f"rediss://127.0.0.1:{server.server_port}/0"
            joined(lab.model_copy(update={"tls_ca": later.certificate}), url, leave)
        server.shutdown()


# files


@pytest.fixture
def stored(farm: Farm, tmp_path: Path) -> tuple[str, bytes]:
    """A file of the farm, new in each test, which a job of `lab` needs: its SHA-256 and content."""
    content = os.urandom(3 << 20)
    (tmp_path / "model.onnx").write_bytes(content)
    sha256 = Artifacts(farm.settings.state).put(tmp_path / "model.onnx")
    begun(farm, "lab", Workload(onnx="model.onnx", onnx_sha256=sha256))
    return sha256, content


def begun(farm: Farm, host: str, workload: Workload, **more: Any) -> Callable[[], object]:
    """Give a host a job; what ends it."""
    job = make.job(uuid.uuid4().hex)
    job = job.model_copy(update={"cell": Cell(workload=workload, backend="cpu", **more)})
    farm.ledger.submit(job.experiment_id, make.many(1), [job])
    given = farm.ledger.begin_attempt(job.job_id, f"of-{host}", host, 600.0)
    assert given is not None
    return lambda: farm.ledger.end_attempt(job.job_id, given.attempt, Outcome.LOST, "transport_lost")


def test_a_host_gets_the_files_of_its_jobs_while_it_has_them(farm: Farm, tmp_path: Path, seed: int) -> None:
    """Drawn: own, another's, both's, an ended job's, nobody's; named as model, input, file, build, file of a build."""
    chance, kept = random.Random(seed), Artifacts(farm.settings.state)
    ends, right, wrong = list[Callable[[], object]](), dict[str, set[str]](), list[str]()
    for number in range(15):
        sha256 = kept.put_bytes(chance.randbytes(99))
        whose = chance.choice([(), ("lab",), ("evil",), ("lab", "evil")])
        form = ("onnx", "input", "files", "model", "build")[number % 5]
        named: dict[str, dict[str, Any]] = {
            "onnx": {"onnx": "m.onnx", "onnx_sha256": sha256},
            "input": {"network": "lenet", "input": "a.npy", "input_sha256": sha256},
            "files": {"model": "m", "files_sha256": {"a.bin": sha256}},
        }
        workload, more = Workload(**named.get(form, {"network": "lenet"})), dict[str, Any]()
        if form == "build":
            build = EngineBuild(engine="mine", abi="arm64-v8a", program="run", files={"run": sha256}, bytes=99)
            more = {"build": {"arm64-v8a": kept.put_bytes(build.model_dump_json().encode())}}
        elif form == "model":
            more = {"model_files": {"m.param": sha256}}
        for host in whose:
            end = begun(farm, host, workload, **more)
            over = chance.random() < 0.3
            end() if over else ends.append(end)
            right.setdefault(sha256, set()).update([] if over else [host])
        right.setdefault(sha256, set())
    for sha256, host in itertools.product(right, farm.hosts):
        try:
            HostFiles(tmp_path / host, farm.hosts[host]).path(sha256)
            got = True
        except FileUnavailable as e:
            assert "403 no job that this host has in hand needs this file" in str(e)
            got = False
        if got is not (host in right[sha256]):
            wrong.append(f"{host} {sha256}: {got}")
    assert not wrong and {len(each) for each in right.values()} > {0, 1}
    for end in ends:
        end()
    with pytest.raises(FileUnavailable, match="403"):
        HostFiles(tmp_path / "later", farm.hosts["lab"]).path(next(iter(right)))


def files(farm: Farm, folder: Path, **other: Any) -> HostFiles:
    return HostFiles(folder / "host", farm.hosts["lab"].model_copy(update=other))


def test_a_file_is_fetched_once_and_mended_where_it_was_damaged(
    farm: Farm, stored: tuple[str, bytes], tmp_path: Path
) -> None:
    sha256, content = stored
    host = files(farm, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(host.path, [sha256] * 8))
    assert len(set(paths)) == 1 and paths[0].read_bytes() == content
    assert farm.web_log.read_text().count(f"file_sent host=lab sha256={sha256}") == 1
    paths[0].write_bytes(content[:-1])
    assert host.path(sha256).read_bytes() == content
    assert [each.name for each in paths[0].parent.parent.glob(".new-*")] == []


def test_what_the_farm_lacks_is_the_job_s_fault_and_the_rest_the_host_s(
    farm: Farm, stored: tuple[str, bytes], tmp_path: Path
) -> None:
    sha256, content = stored
    with pytest.raises(ModelFileError, match="the farm lacks a file: artifact 0000"):
        begun(farm, "lab", Workload(onnx="model.onnx", onnx_sha256="0" * 64))
        files(farm, tmp_path).path("0" * 64)
    with pytest.raises(FileUnavailable, match="401 no host of this farm has this secret"):
        files(farm, tmp_path, redis_password=SecretStr("guessed")).path(sha256)
    with pytest.raises(FileUnavailable, match="refused"):
        files(farm, tmp_path, files_url=f"https://127.0.0.1:{free_port()}").path(sha256)
    Artifacts(farm.settings.state).path(sha256).write_bytes(content[1:])
    with pytest.raises(ModelFileError, match="damaged"):
        files(farm, tmp_path).path(sha256)


@pytest.mark.parametrize("fault", ["other", "cut"])
def test_bytes_that_do_not_have_the_hash_are_not_kept(
    farm: Farm, stored: tuple[str, bytes], tmp_path: Path, fault: str
) -> None:
    sha256, content = stored

    class Wrong(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[::-1] if fault == "other" else content[:1000])

        def log_message(self, *_: object) -> None:
            pass

    own = authority_of(farm.settings.state).folder
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own / "farm.crt", own / "farm.key")
    with socketserver.TCPServer(("127.0.0.1", 0), Wrong) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            host = files(farm, tmp_path, files_url=f"https://127.0.0.1:{server.server_address[1]}")
            with pytest.raises(FileUnavailable):
                host.path(sha256)
        finally:
            server.shutdown()
            thread.join()
    assert [each for each in (tmp_path / "host").rglob("*") if each.is_file()] == []


def test_what_a_host_made_travels_to_the_farm_though_it_was_away(farm: Farm, tmp_path: Path) -> None:
    """A worker that was killed in between leaves the name on disk; another one sends the file."""
    kept = Artifacts(tmp_path / "host")
    content = os.urandom(3 << 20)
    (tmp_path / "trained.onnx").write_bytes(content)
    sha256 = kept.put(tmp_path / "trained.onnx")
    Outbox(tmp_path / "host", files(farm, tmp_path, files_url=f"https://127.0.0.1:{free_port()}")).add(sha256)
    restarted, stop = Outbox(tmp_path / "host", files(farm, tmp_path), retry_s=0.1), threading.Event()
    assert restarted.waiting() == [sha256]
    thread = threading.Thread(target=restarted.run, args=(stop,))
    thread.start()
    try:
        eventually(lambda: restarted.waiting() == [])
    finally:
        stop.set()
        thread.join()
    assert Artifacts(farm.settings.state).path(sha256).read_bytes() == content
    assert f"file_received host=lab sha256={sha256}" in farm.web_log.read_text()


def test_the_farm_keeps_nothing_that_has_another_hash_or_comes_from_nobody(farm: Farm, tmp_path: Path) -> None:
    (tmp_path / "trained.onnx").write_bytes(os.urandom(1000))
    sha256 = Artifacts(tmp_path / "host").put(tmp_path / "trained.onnx")
    with pytest.raises(FileUnavailable, match="401 no host of this farm has this secret"):
        files(farm, tmp_path, redis_password=SecretStr("guessed")).send(sha256)
    secret = farm.hosts["lab"].redis_password.get_secret_value()
    trusted = ssl.create_default_context(cafile=farm.settings.tls_ca)
    for name, code in ((sha256, 422), ("..%2Fledger.sqlite", 404), ("ledger", 422)):
        request = urllib.request.Request(
            f"{farm.hosts['lab'].files_url}/files/{name}", b"other", {"Authorization": f"Bearer {secret}"}, method="PUT"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60, context=trusted)
        with refused.value as answer:
            assert answer.code == code
    with pytest.raises(ModelFileError, match="is not in"):
        Artifacts(farm.settings.state).path(sha256)
    (tmp_path / "host/artifacts" / sha256[:2] / sha256).write_bytes(b"damaged")
    Outbox(tmp_path / "host", files(farm, tmp_path)).add(sha256)
    assert Outbox(tmp_path / "host", files(farm, tmp_path)).waiting() == [], "what is lost here never arrives"


@pytest.mark.parametrize("length", [b"Content-Length: 1\r\nTransfer-Encoding: chunked", b"Content-Length: 1"])
def test_an_upload_is_no_longer_than_it_says(farm: Farm, length: bytes) -> None:
    content = os.urandom(1 << 20)
    sha256 = hashlib.sha256(content).hexdigest()
    url = urllib.parse.urlsplit(farm.hosts["lab"].files_url)
    head = f"PUT /files/{sha256} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {secret_of(farm, 'lab').decode()}\r\n"
    trusted = ssl.create_default_context(cafile=farm.settings.tls_ca)
    plain = socket.create_connection((url.hostname, url.port), timeout=60)
    with trusted.wrap_socket(plain, server_hostname=url.hostname) as connection, suppress(OSError):
        connection.sendall(head.encode() + length + b"\r\n\r\n100000\r\n" + content + b"\r\n0\r\n\r\n")
        assert connection.recv(12) in (b"HTTP/1.1 411", b"HTTP/1.1 422")
    with pytest.raises(ModelFileError, match="is not in"):
        Artifacts(farm.settings.state).path(sha256)


# the ledger


def test_a_postgres_with_the_farm_s_certificate(farm: Farm, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is as docs/howto/several-hosts.md says: `sslmode=verify-full` against the farm's own authority."""
    from tests.servers import private_postgres

    folder = tmp_path_factory.mktemp("pg-tls")
    command = [sys.executable, "-m", "farm.cli", "host", "certificate", "127.0.0.1", "--out", str(folder)]
    subprocess.run([*command, "--state", str(farm.settings.state)], check=True, capture_output=True)
    port = free_port()
    with private_postgres(folder, tls=(port, folder / "server.crt", folder / "server.key")):
        url = f"postgresql+psycopg://farm@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert="
        with Ledger(url + str(folder / "ca.crt")) as ledger:
            ledger.standing.admit_host("lab", "0" * 64)
            assert [row.name for row in ledger.standing.hosts()] == ["lab"]
        other = authority_of(folder / "other")
        other.issue("x", ["x"])
        with pytest.raises(ServiceDown, match="certificate verify failed"):
            Ledger(url + str(other.certificate))
