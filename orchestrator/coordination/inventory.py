"""Read devices, hosts and sessions as they were last announced; an announcement expires.

Times are by the clock of whoever announces or reads; in Redis, by Redis' own (farm_clock.py).
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from orchestrator.model.base import Model
from orchestrator.model.device import Device
from orchestrator.model.live.announcement import HostAnnouncement, Progress
from orchestrator.model.live.waiting import WaitReason

from . import functions, keys
from .change_log import DEVICE
from .client import is_wrong_type, translated
from .farm_clock import FarmClock, device_at, device_by, host_at, host_by, progress_at, progress_by
from .news import News
from .owners import in_one_place, owners

log = logging.getLogger(__name__)

_MOMENTARY = {"seen_at": 0.0, "reading": None}
READ = 128
"""Announcements that are kept as they were read: those who look look more often than a host announces."""
M = TypeVar("M", bound=Model)
_REASONS = TypeAdapter(dict[str, WaitReason])


class Inventory:
    """Every method raises ServiceDown where Redis is away. What cannot be read is logged and skipped."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._clock = FarmClock(redis)
        self._entered, self._crowded = set[str](), set[str]()
        self._said: dict[str, Device] = {}
        """The announcement of each device by this process, without what is new each time."""
        self._reasons: Mapping[str, WaitReason] | None = None
        """The announcement of why jobs wait, likewise."""

    def tell_scheduler(self) -> None:
        """Jobs were submitted for these devices. Raises ServiceDown where Redis is away."""
        News(self._redis).tell()

    @translated
    def announce_device(self, device: Device) -> str:
        """Announce a device; the name of the host that has it, where the farm has given its serial to another one.

        A device that has gone from its host may appear at another.
        """
        serial, host = device.serial, device.facts.host
        if host not in self._entered:
            self._enter(host)
        self._announce(keys.devices(host), keys.device(host, serial), serial, device_at(device, self._clock.ahead_s()))
        self._note_change(device)
        owner = str(self._redis.hget(keys.OWNERS, serial) or host)
        return owner if owner != host else ""

    def _note_change(self, device: Device) -> None:
        """The scheduler reads a device again that says something new."""
        serial, host = device.serial, device.facts.host
        said = device.model_copy(update={"state": device.state.model_copy(update=_MOMENTARY)})
        if self._said.get(serial) != said:
            functions.call(self._redis, "note", (), (host, DEVICE + serial))
            self._said[serial] = said

    @translated
    def announce_host(self, host: HostAnnouncement) -> None:
        """The index takes it from the farm's own machine; a host with a user of its own is in it already."""
        said = host_at(host, self._clock.ahead_s())
        self._redis.set(keys.host(host.host), said.model_dump_json(), ex=keys.ANNOUNCE_TTL_S)
        self._enter(host.host)

    def _enter(self, host: str) -> None:
        with suppress(NoPermissionError):
            self._redis.zadd(keys.HOSTS, {host: 0})
        self._entered.add(host)

    @translated
    def announce_progress(self, progress: Progress, host: str) -> None:
        serial, said = progress.serial, progress_at(progress, self._clock.ahead_s())
        self._announce(keys.lives(host), keys.live(host, serial), serial, said)

    @translated
    def clear_progress(self, serial: str, host: str) -> None:
        self._redis.delete(keys.live(host, serial))

    @translated
    def devices(self) -> list[Device]:
        """Devices by serial, each of the host that has it; one that a second host announces as well says so."""
        return in_one_place([device for device in self.announced().values() if device is not None], owners(self._redis))

    @translated
    def announced(self, names: Collection[str] | None = None) -> dict[str, Device | None]:
        """Return what each of these HOST:SERIAL says, or of all that are known; None where nothing is left, or where it
        is not among the devices that its host may have."""
        wanted = self._names(keys.devices) if names is None else sorted({name for name in names if keys.parsed(name)})
        beyond = self._beyond(wanted) if names is not None else []
        said = self._said_of("device", wanted, Device)
        own = {n: d if d is not None and n == f"{d.facts.host}:{d.serial}" else None for n, d in said.items()}
        ahead_s = self._clock.ahead_s() if wanted else 0.0
        now = time.time()
        found = {
            name: device_by(device_at(device, -ahead_s), now) if device is not None else None
            for name, device in own.items()
        }
        return {**found, **dict.fromkeys(beyond)}

    @translated
    def hosts(self) -> list[HostAnnouncement]:
        """Hosts by name, those of newer versions too, whose further fields are ignored."""
        ahead_s, now = self._clock.ahead_s(), time.time()
        said = self._said_of("host", self._hosts(), HostAnnouncement)
        return [
            host_by(host_at(host, -ahead_s), now)
            for name, host in said.items()
            if host is not None and name == host.host
        ]

    @translated
    def progress(self) -> list[Progress]:
        """Sessions by serial, each as the host says it that has the device."""
        ahead_s, of = self._clock.ahead_s(), owners(self._redis)
        said = self._said_of("live", self._names(keys.lives), Progress)
        own = {name: one for name, one in said.items() if one is not None and _says_of_its_own(name, one.serial, of)}
        now = time.time()
        found = [progress_by(progress_at(progress, -ahead_s), now) for progress in own.values()]
        return sorted(found, key=lambda progress: progress.serial)

    @translated
    def announce_waiting(self, reasons: Mapping[str, WaitReason]) -> None:
        """Announce why jobs wait, as the last placement found, by job id; in each turn of a scheduler, waits or not.
        What was announced already, the same object, is sent again only where Redis has lost it."""
        if reasons is not self._reasons or not self._redis.expire(keys.WAITING, keys.ANNOUNCE_TTL_S):
            self._redis.set(keys.WAITING, _REASONS.dump_json(dict(reasons)), ex=keys.ANNOUNCE_TTL_S)
            self._reasons = reasons

    @translated
    def waiting(self) -> dict[str, WaitReason] | None:
        """Return why jobs wait, by job id; of jobs that are alike one has been looked at. None where no
        scheduler has said anything for `keys.ANNOUNCE_TTL_S`."""
        text = self._redis.get(keys.WAITING)
        try:
            return dict(_reasons(text)) if text else None
        except ValidationError as e:
            log.warning("%s in Redis cannot be read and is skipped: %s", keys.WAITING, _first_line(e))
            return None

    def _announce(self, index: str, key: str, name: str, value: Model) -> None:
        with self._redis.pipeline() as pipe:
            pipe.set(key, value.model_dump_json(), ex=keys.ANNOUNCE_TTL_S)
            pipe.zadd(index, {name: 0})
            pipe.expire(index, keys.ANNOUNCE_TTL_S)
            pipe.execute()

    def _hosts(self) -> list[str]:
        hosts, others = keys.hosts_among(self._redis.zrange(keys.HOSTS, 0, -1))
        if others:
            self._redis.zrem(keys.HOSTS, *others)
        return hosts

    def _names(self, index_of: Callable[[str], str], hosts: Collection[str] | None = None) -> list[str]:
        """HOST:SERIAL of the first that each host's index has, of these or of all hosts; one that a host has made
        something else is read as empty."""
        hosts = self._hosts() if hosts is None else hosts
        with self._redis.pipeline(transaction=False) as pipe:
            for host in hosts:
                pipe.zrange(index_of(host), 0, keys.MOST_OF_A_HOST)
            found = dict(zip(hosts, _sound(pipe.execute(raise_on_error=False)), strict=True))
        for host, names in found.items() if index_of is keys.devices else ():
            self._tell_if_crowded(host, len(names or ()))
        return [
            f"{host}:{name}" for host, names in found.items() for name in (names or ())[: keys.MOST_OF_A_HOST] if name
        ]

    def _beyond(self, names: Sequence[str]) -> list[str]:
        """Return those of these devices for which their host has no room."""
        hosts = sorted({name.partition(":")[0] for name in names})
        with self._redis.pipeline(transaction=False) as pipe:
            for host in hosts:
                pipe.zcard(keys.devices(host))
            counts = zip(hosts, _sound(pipe.execute(raise_on_error=False)), strict=True)
        crowded = {host for host, count in counts if (count or 0) > keys.MOST_OF_A_HOST}
        first = set(self._names(keys.devices, crowded)) if crowded else set()
        return [name for name in names if name not in first and name.partition(":")[0] in crowded]

    def _tell_if_crowded(self, host: str, devices: int) -> None:
        """Log it once, until the host has fewer again."""
        if devices <= keys.MOST_OF_A_HOST:
            self._crowded.discard(host)
        elif host not in self._crowded:
            self._crowded.add(host)
            log.warning(
                "event=crowded_host host=%s: it announces more than %d devices; the others, by serial, get no work. "
                "Give them to another host", host, keys.MOST_OF_A_HOST,
            )  # fmt: skip

    def _said_of(self, kind: str, names: Sequence[str], model: type[M]) -> dict[str, M | None]:
        """Return what is announced under these names. Names of which nothing is left leave their host's index."""
        start = f"{keys.PREFIX}{kind}:"
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.getrange(start + name, 0, keys.ANNOUNCED_BYTES)
            texts = dict(zip(names, _sound(pipe.execute(raise_on_error=False)), strict=True))
        gone = defaultdict[str, list[str]](list)
        for host, serial in (keys.parsed(name) or ("", "") for name, text in texts.items() if not text):
            gone[host].append(serial)
        for host, serials in gone.items():
            if host:
                functions.call(self._redis, "forget", (), (f"{keys.PREFIX}{kind}s:{host}", f"{start}{host}:", *serials))
        return {name: _parsed(start + name, text, model) if text else None for name, text in texts.items()}


def _says_of_its_own(name: str, serial: str, of: Mapping[str, str]) -> bool:
    """Return whether what stands under HOST:SERIAL is of that device, and no other host has it."""
    host, known = keys.parsed(name) or ("", "")
    return serial == known and of.get(serial, host) == host


def _sound(answers: Sequence[Any]) -> list[Any]:
    """None for what a host has made of another type."""
    for each in answers:
        if isinstance(each, RedisError) and not is_wrong_type(each):
            raise each
    return [None if isinstance(each, RedisError) else each for each in answers]


def _parsed(key: str, text: str, model: type[M]) -> M | None:
    try:
        if len(text) > keys.ANNOUNCED_BYTES:
            raise ValueError(f"longer than {keys.ANNOUNCED_BYTES} bytes")
        return cast("M", _read(model, text))
    except (ValueError, RecursionError) as e:
        log.warning("%s in Redis cannot be read and is skipped: %s", key, _first_line(e))
        return None


@lru_cache(maxsize=READ)
def _read(model: type[Model], text: str) -> Model:
    return model.model_validate_json(text, extra="ignore")


@lru_cache(maxsize=1)
def _reasons(text: str) -> dict[str, WaitReason]:
    """Reasons by job; jobs that wait for the same have one object, since most of them do."""
    alike: dict[WaitReason, WaitReason] = {}
    return {job: alike.setdefault(each, each) for job, each in _REASONS.validate_json(text).items()}


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(error.errors(include_input=False, include_url=False)[:1])
    return str(error)
