"""Read devices, hosts and sessions as they were last announced; an announcement expires.

Times are by the clock of whoever announces or reads; in Redis, by Redis' own (farm_clock.py).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from redis import Redis

from orchestrator.model.base import Model
from orchestrator.model.device import Device, Health
from orchestrator.model.live import HostAnnouncement, Progress
from orchestrator.model.waiting import WaitReason

from . import keys
from .change_log import DEVICE, NOTE
from .client import translated
from .farm_clock import FarmClock, device_at, host_at, progress_at
from .news import News

log = logging.getLogger(__name__)

# ARGV: index, kind, names: out of the index, unless somebody has announced them meanwhile.
_FORGET = """
for i = 3, #ARGV do
  if redis.call('EXISTS', 'farm:' .. ARGV[2] .. ':' .. ARGV[i]) == 0 then redis.call('ZREM', ARGV[1], ARGV[i]) end
end
"""

_MOMENTARY = {"seen_at": 0.0, "reading": None}
M = TypeVar("M", bound=Model)
_REASONS = TypeAdapter(dict[str, WaitReason])


class Inventory:
    """Every method raises ServiceDown where Redis is away. What cannot be read is logged and skipped."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._clock = FarmClock(redis)
        self._forget = redis.register_script(_FORGET)
        self._note = redis.register_script(NOTE + "note(ARGV[1], ARGV[2])")
        self._said: dict[str, Device] = {}
        """What this process announced of each device, without what is new each time."""

    def tell_scheduler(self) -> None:
        """Jobs were submitted for these devices. Raises ServiceDown where Redis is away."""
        News(self._redis).tell()

    @translated
    def announce_device(self, device: Device) -> str:
        """Announce a device, unless another host announces a usable one of this serial: the name of that host then.

        A device that has gone from its host may appear at another.
        """
        serial, host = device.serial, device.facts.host
        key = keys.device_host(serial)
        is_away = device.state.health is Health.OFFLINE
        if not is_away:
            self._redis.set(key, host, ex=keys.ANNOUNCE_TTL_S, nx=True)
        owner = str(self._redis.get(key) or host)
        if owner != host:
            if not is_away:
                self._redis.set(keys.rival(serial), host, ex=keys.ANNOUNCE_TTL_S)
            return owner
        if is_away:
            self._redis.delete(key)
        else:
            self._redis.expire(key, keys.ANNOUNCE_TTL_S)
        self._announce(keys.DEVICES, keys.device(host, serial), device_at(device, self._clock.ahead_s()))
        self._note_change(device)
        return ""

    def _note_change(self, device: Device) -> None:
        """The scheduler reads a device again that says something new."""
        serial, host = device.serial, device.facts.host
        said = device.model_copy(update={"state": device.state.model_copy(update=_MOMENTARY)})
        if self._said.get(serial) != said:
            self._note((), [host, DEVICE + serial])
            self._said[serial] = said

    @translated
    def announce_host(self, host: HostAnnouncement) -> None:
        self._announce(keys.HOSTS, keys.host(host.host), host_at(host, self._clock.ahead_s()))

    @translated
    def announce_progress(self, progress: Progress, host: str) -> None:
        self._announce(keys.LIVES, keys.live(host, progress.serial), progress_at(progress, self._clock.ahead_s()))

    @translated
    def clear_progress(self, serial: str, host: str) -> None:
        self._redis.delete(keys.live(host, serial))

    @translated
    def devices(self) -> list[Device]:
        """Devices by serial; one that a second host announces as well says so."""
        said, ahead_s = self._read(keys.DEVICES, "device", Device), self._clock.ahead_s()
        found = self.of_their_hosts(
            [device_at(device, -ahead_s) for name, device in said if name == f"{device.facts.host}:{device.serial}"]
        )
        rivals = self._redis.mget([keys.rival(device.serial) for device in found]) if found else []
        return [_contested(device, rival) if rival else device for device, rival in zip(found, rivals, strict=True)]

    @translated
    def announced(self, names: Collection[str] | None = None) -> dict[str, Device | None]:
        """What each of these HOST:SERIAL says, or of all that are known; None where nothing is left."""
        wanted = sorted(self._redis.zrange(keys.DEVICES, 0, -1) if names is None else set(names))
        prefix = keys.PREFIX + "device:"
        texts = self._redis.mget([prefix + name for name in wanted]) if wanted else []
        said = {n: _parsed(prefix + n, t, Device) if t else None for n, t in zip(wanted, texts, strict=True)}
        own = {n: d if d is not None and n == f"{d.facts.host}:{d.serial}" else None for n, d in said.items()}
        ahead_s = self._clock.ahead_s() if wanted else 0.0
        return {name: device_at(device, -ahead_s) if device is not None else None for name, device in own.items()}

    def of_their_hosts(self, announced: list[Device]) -> list[Device]:
        """One for each serial, by serial: where a device has just moved, that of the host that has it now."""
        by_serial: dict[str, list[Device]] = defaultdict(list)
        for device in announced:
            by_serial[device.serial].append(device)
        moved = {
            serial: self._redis.get(keys.device_host(serial)) for serial, all_ in by_serial.items() if len(all_) > 1
        }
        return [
            max(all_, key=lambda device: (device.facts.host == moved.get(serial), device.state.health is Health.READY))
            for serial, all_ in sorted(by_serial.items())
        ]

    @translated
    def hosts(self) -> list[HostAnnouncement]:
        """Hosts by name, those of newer versions too, whose further fields are ignored."""
        ahead_s = self._clock.ahead_s()
        said = self._read(keys.HOSTS, "host", HostAnnouncement)
        return [host_at(host, -ahead_s) for name, host in said if name == host.host]

    @translated
    def progress(self) -> list[Progress]:
        """Sessions by serial."""
        ahead_s = self._clock.ahead_s()
        return [progress_at(progress, -ahead_s) for _, progress in self._read(keys.LIVES, "live", Progress)]

    @translated
    def announce_waiting(self, reasons: Mapping[str, WaitReason]) -> None:
        """Why jobs wait, as the last placement found, by job id; said in every turn of a scheduler, waits or not."""
        self._redis.set(keys.WAITING, _REASONS.dump_json(dict(reasons)), ex=keys.ANNOUNCE_TTL_S)

    @translated
    def waiting(self) -> dict[str, WaitReason] | None:
        """Why jobs wait, by job id; only the first jobs of each experiment have been looked at. None where no scheduler
        has said anything for `keys.ANNOUNCE_TTL_S`."""
        text = self._redis.get(keys.WAITING)
        try:
            return _REASONS.validate_json(text) if text else None
        except ValidationError as e:
            log.warning("%s in Redis cannot be read and is skipped: %s", keys.WAITING, _first_line(e))
            return None

    @translated
    def _announce(self, index: str, key: str, value: Model) -> None:
        with self._redis.pipeline() as pipe:
            pipe.set(key, value.model_dump_json(), ex=keys.ANNOUNCE_TTL_S)
            pipe.zadd(index, {key.removeprefix(keys.PREFIX).split(":", 1)[1]: 0})
            pipe.execute()

    @translated
    def _read(self, index: str, kind: str, model: type[M]) -> list[tuple[str, M]]:
        """What is announced, by the name in its key; names of which nothing is left leave the index."""
        names = sorted(self._redis.zrange(index, 0, -1))
        prefix = f"{keys.PREFIX}{kind}:"
        texts = dict(zip(names, self._redis.mget([prefix + name for name in names]) if names else [], strict=True))
        if gone := [name for name, text in texts.items() if not text]:
            self._forget((), [index, kind, *gone])
        found = ((name, _parsed(prefix + name, text, model)) for name, text in texts.items() if text)
        return [(name, value) for name, value in found if value is not None]


def _contested(device: Device, rival: str) -> Device:
    why = f"device conflict: host {rival} has a device of this serial too, and is refused; disconnect one of them"
    reason = "; ".join(filter(None, (device.state.reason, why)))
    return device.model_copy(update={"state": device.state.model_copy(update={"reason": reason})})


def _parsed(key: str, text: str, model: type[M]) -> M | None:
    try:
        return model.model_validate_json(text, extra="ignore")
    except ValidationError as e:
        log.warning("%s in Redis cannot be read and is skipped: %s", key, _first_line(e))
        return None


def _first_line(error: ValidationError) -> str:
    return str(error.errors(include_input=False, include_url=False)[:1])
