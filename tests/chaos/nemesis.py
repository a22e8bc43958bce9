"""The nemesis: faults drawn from a seed, let loose one after the other, and written down.

The same seed, phones and duration give the same faults at the same times. What they meet depends on the machine; the
checker's verdict may not.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import resource
import secrets
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psutil
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import RedisError

from farm import endpoints
from farm.access import COMMAND_LINE, site_of, user_by
from orchestrator import acts
from orchestrator.coordination import access, keys
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from virtual_phones import faults as phone_faults

from .history import Hit
from .running_farm import RunningFarm

EVIL = "evil"
PAUSE_S = (0.5, 3.0)
"""The shortest and the longest pause between the end of a fault and the next one."""


@dataclass(frozen=True)
class Planned:
    """One fault of the plan."""

    fault: str
    target: int
    """The phone's place among the phones, for a fault of a phone."""
    pause_s: float
    """The pause before it begins."""
    lasts_s: float


Inflict = Callable[[RunningFarm, str, float], None]
"""Lets a fault loose on the phone of this serial, or on a part of the farm, and takes it back after so many seconds."""


def _kill(part: str) -> Inflict:
    """SIGKILL: the supervisor starts the part again."""

    def inflict(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
        for process in farm.part(part):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(lasts_s)

    return inflict


def _stop(*parts: str) -> Inflict:
    """SIGSTOP, and SIGCONT afterwards: starved, or suspended where it is all of them."""

    def inflict(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
        stopped = [process for part in parts for process in farm.part(part)]
        try:
            _signal(stopped, signal.SIGSTOP)
            time.sleep(lasts_s)
        finally:
            _signal(stopped, signal.SIGCONT)

    return inflict


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _wipe_redis(farm: RunningFarm, _serial: str, _lasts_s: float) -> None:
    farm.redis().flushall()


def _lose_keys(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
    """Some of all keys, whichever they are; which share is drawn with the fault."""
    redis, draw = farm.redis(), random.Random(lasts_s)
    known = sorted(redis.scan_iter())
    for key in draw.sample(known, draw.randrange(len(known) + 1)):
        redis.delete(key)


def _spoil_keys(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
    """Some of the farm's keys have another type."""
    redis, draw = farm.redis(), random.Random(lasts_s)
    known = sorted(redis.scan_iter(match="farm:*"))
    for key in draw.sample(known, draw.randrange(len(known) + 1)):
        is_list = draw.random() < 0.5
        with redis.pipeline() as pipe:
            pipe.delete(key)
            pipe.rpush(key, "x") if is_list else pipe.set(key, "nonsense")
            pipe.execute()


def _meddle_with_messages(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
    """Tasks on their way are dropped, doubled or delayed; as many are met as are taken before their reader does."""
    redis, draw, late = farm.redis(), random.Random(lasts_s), list[tuple[float, str, str]]()
    queues = [keys.queue(endpoints.settings_for(farm.state).host), keys.WORK]
    end = time.monotonic() + lasts_s
    while time.monotonic() < end or late:
        with contextlib.suppress(RedisError):
            if time.monotonic() < end and (taken := redis.brpop(queues, timeout=0.1)):
                delays = draw.choice([(), (0.0, 0.0), (draw.uniform(0.1, 4.0),), (0.0, draw.uniform(0.1, 4.0))])
                late += [(time.monotonic() + delay, *taken) for delay in delays]
            for each in [each for each in late if each[0] <= time.monotonic()]:
                redis.lpush(*each[1:])
                late.remove(each)
        time.sleep(0.001)


def _hostile_host(farm: RunningFarm, serial: str, lasts_s: float) -> None:
    """A host of the farm's own turns on it: it wants every phone, and floods and spoils what it may write."""
    secret, draw = secrets.token_hex(16), random.Random(lasts_s)
    settings, digest = endpoints.settings_for(farm.state), hashlib.sha256(secret.encode()).hexdigest()
    with Ledger(settings.ledger) as ledger:
        ledger.standing.admit_host(EVIL, digest)
    access.admit(farm.redis(), EVIL, digest)
    own = settings.model_copy(
        update={"redis_user": access.user_of(EVIL), "redis_password": SecretStr(secret), "host": EVIL}
    )
    end = time.monotonic() + lasts_s
    with client_of(own) as evil:
        while time.monotonic() < end:
            with contextlib.suppress(RedisError, FarmError):
                _be_evil(evil, farm, draw)
    with Ledger(settings.ledger) as ledger:
        acts.hosts.remove_host(site_of(settings, ledger), user_by(COMMAND_LINE), EVIL, force=True)


def _be_evil(evil: Redis, farm: RunningFarm, draw: random.Random) -> None:
    inventory = Inventory(evil)
    for device in Inventory(farm.redis()).devices():
        inventory.announce_device(device.model_copy(update={"facts": device.facts.model_copy(update={"host": EVIL})}))
        with contextlib.suppress(RedisError):
            evil.hset(keys.OWNERS, device.serial, EVIL)
    inventory.announce_host(HostAnnouncement(host=EVIL, worker="evil", pid=1, protocol=PROTOCOL, sessions=0))
    evil.zadd(keys.devices(EVIL), {f"x{draw.random()}": 0 for _ in range(2000)})
    spoilt = draw.choice([keys.change(EVIL), keys.changes(EVIL), keys.news(EVIL), keys.lives(EVIL), keys.devices(EVIL)])
    evil.delete(spoilt)
    evil.set(spoilt, "x" * draw.choice([1, 1_000_000]))
    evil.publish("/0.celeryev/task.multi", "x" * 100_000)
    evil.lpush(f"{uuid.uuid4()}.reply.celery.pidbox", "x" * 100_000)
    for attack in (lambda: evil.eval("while true do end", 0), lambda: evil.function_flush(), lambda: evil.flushall()):
        with contextlib.suppress(RedisError):
            attack()


def _fill_disk(part: str) -> Inflict:
    """No file of the process may grow: what it writes fails with EFBIG, as with ENOSPC on a full disk."""

    def inflict(farm: RunningFarm, _serial: str, lasts_s: float) -> None:
        limited = farm.part(part)
        try:
            _limit_files(limited, 0)
            time.sleep(lasts_s)
        finally:
            _limit_files(limited, resource.RLIM_INFINITY)

    return inflict


def _limit_files(processes: Sequence[psutil.Process], size: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _phone(make: Callable[[float], phone_faults.Fault]) -> Inflict:
    def inflict(farm: RunningFarm, serial: str, lasts_s: float) -> None:
        farm.phones.fault(serial, make(lasts_s))
        time.sleep(lasts_s)

    return inflict


def _cut_power(farm: RunningFarm, _serial: str, _lasts_s: float) -> None:
    farm.cut_power()


FARM: dict[str, tuple[Inflict, str, tuple[float, float]]] = {
    "kill_worker": (_kill("worker"), "worker", (0.0, 1.0)),
    "kill_scheduler": (_kill("scheduler"), "scheduler", (0.0, 1.0)),
    "kill_beat": (_kill("beat"), "beat", (0.0, 1.0)),
    "kill_redis": (_kill("redis"), "redis", (0.0, 1.0)),
    "kill_adb": (_kill("adb"), "adb", (0.0, 1.0)),
    "wipe_redis": (_wipe_redis, "redis", (0.0, 0.0)),
    "lose_keys": (_lose_keys, "redis", (0.0, 1.0)),
    "spoil_keys": (_spoil_keys, "redis", (0.0, 1.0)),
    "meddle_with_messages": (_meddle_with_messages, "all", (2.0, 8.0)),
    "hostile_host": (_hostile_host, "all", (1.0, 6.0)),
    "stop_worker": (_stop("worker"), "worker", (1.0, 8.0)),
    "stop_scheduler": (_stop("scheduler"), "scheduler", (1.0, 8.0)),
    "stop_beat": (_stop("beat"), "beat", (1.0, 8.0)),
    "stop_redis": (_stop("redis"), "redis", (1.0, 8.0)),
    "suspend": (_stop("worker", "scheduler", "beat", "redis"), "all", (1.0, 8.0)),
    "full_disk_worker": (_fill_disk("worker"), "worker", (1.0, 6.0)),
    "full_disk_scheduler": (_fill_disk("scheduler"), "scheduler", (1.0, 6.0)),
    "cut_power": (_cut_power, "all", (0.0, 0.0)),
}
"""Faults of the farm's own parts: how, whose, and how long. No job may pay for them."""
PHONE: dict[str, tuple[Inflict, tuple[float, float]]] = {
    "unplug": (_phone(lambda s: phone_faults.Unplug(seconds=s)), (0.5, 6.0)),
    "reboot": (_phone(lambda s: phone_faults.Reboot(seconds=s)), (1.0, 4.0)),
    "hang": (_phone(lambda s: phone_faults.Hang(seconds=s)), (0.5, 6.0)),
    "offline": (_phone(lambda s: phone_faults.Offline(seconds=s)), (0.5, 6.0)),
    "restart_adbd": (_phone(lambda s: phone_faults.RestartAdbd(seconds=s)), (0.2, 1.0)),
    "kill_agent": (_phone(lambda _: phone_faults.KillAgent()), (0.0, 0.0)),
    "storage_full": (_phone(lambda s: phone_faults.StorageFull(seconds=s)), (0.5, 4.0)),
}
"""Faults of a phone, and how long they last."""
FIRST = ("kill_scheduler", "cut_power", "offline", "hang", "meddle_with_messages")
"""Faults that nothing else in the suite tries on a whole farm at work: even the shortest run has them."""


def plan(seed: int, phones: int) -> Iterator[Planned]:
    """Faults without end: each once in a random order, `FIRST` before the others; then again in another."""
    draw = random.Random(seed)
    others = [fault for fault in (*FARM, *PHONE) if fault not in FIRST]
    while True:
        for fault in (*draw.sample(FIRST, len(FIRST)), *draw.sample(others, len(others))):
            lasts = FARM[fault][2] if fault in FARM else PHONE[fault][1]
            yield Planned(fault, draw.randrange(phones), draw.uniform(*PAUSE_S), draw.uniform(*lasts))


def let_loose(
    farm: RunningFarm, serials: Sequence[str], seed: int, is_over: Callable[[], bool], *, least: int = 0
) -> tuple[Hit, ...]:
    """Inflict faults until `is_over`, and at least so many; what they were. The last one is taken back by then."""
    hits: list[Hit] = []
    for each in plan(seed, len(serials)):
        if len(hits) >= least and is_over():
            return tuple(hits)
        time.sleep(each.pause_s)
        inflict, target = FARM[each.fault][:2] if each.fault in FARM else (PHONE[each.fault][0], serials[each.target])
        began = time.time()
        inflict(farm, target, each.lasts_s)
        hits.append(Hit(each.fault, target, began, time.time()))
    raise AssertionError("a plan has no end")
