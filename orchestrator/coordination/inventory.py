"""Read devices, hosts and sessions as they were last announced; an announcement expires."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from redis import Redis

from orchestrator.model.base import Model
from orchestrator.model.device import Device, Health
from orchestrator.model.live import HostAnnouncement, Progress
from orchestrator.model.waiting import WaitReason

from . import keys
from .client import translated

log = logging.getLogger(__name__)

FORGET_S = 3600.0
"""Names that were not announced for this long leave the index."""

M = TypeVar("M", bound=Model)
_REASONS = TypeAdapter(dict[str, WaitReason])


class Inventory:
    """Every method raises ServiceDown where Redis is away. What cannot be read is logged and skipped."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

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
        self._announce(keys.DEVICES, serial, keys.device(serial), device)
        return ""

    def announce_host(self, host: HostAnnouncement) -> None:
        self._announce(keys.HOSTS, host.host, keys.host(host.host), host)

    def announce_progress(self, progress: Progress) -> None:
        self._announce(keys.LIVES, progress.serial, keys.live(progress.serial), progress)

    @translated
    def clear_progress(self, serial: str) -> None:
        with self._redis.pipeline() as pipe:
            pipe.delete(keys.live(serial))
            pipe.zrem(keys.LIVES, serial)
            pipe.execute()

    @translated
    def devices(self) -> list[Device]:
        """Devices by serial; one that a second host announces as well says so."""
        found = self._read(keys.DEVICES, keys.PREFIX + "device:", Device)
        rivals = self._redis.mget([keys.rival(device.serial) for device in found]) if found else []
        return [_contested(device, rival) if rival else device for device, rival in zip(found, rivals, strict=True)]

    def hosts(self) -> list[HostAnnouncement]:
        """Hosts by name, those of newer versions too, whose further fields are ignored."""
        return self._read(keys.HOSTS, keys.PREFIX + "host:", HostAnnouncement)

    def progress(self) -> list[Progress]:
        """Sessions by serial."""
        return self._read(keys.LIVES, keys.PREFIX + "live:", Progress)

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
    def _announce(self, index: str, name: str, key: str, value: Model) -> None:
        with self._redis.pipeline() as pipe:
            pipe.set(key, value.model_dump_json(), ex=keys.ANNOUNCE_TTL_S)
            pipe.zadd(index, {name: time.time()})
            pipe.execute()

    @translated
    def _read(self, index: str, prefix: str, model: type[M]) -> list[M]:
        names = sorted(self._redis.zrange(index, 0, -1))
        if not names:
            return []
        texts = self._redis.mget([prefix + name for name in names])
        self._redis.zremrangebyscore(index, "-inf", time.time() - FORGET_S)
        found = (_parsed(prefix + name, text, model) for name, text in zip(names, texts, strict=True) if text)
        return [value for value in found if value is not None]


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
