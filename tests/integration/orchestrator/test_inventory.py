"""Announcements on a real Redis; garbage is skipped; errors are translated."""

from __future__ import annotations

import logging
import random

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import ResponseError

from orchestrator.coordination import client as redis_client
from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Health
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.model.live.announcement import HostAnnouncement, Progress
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.scheduling.live_view import LiveView
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make


def test_devices_hosts_and_sessions(redis: Redis) -> None:
    inventory = Inventory(redis)
    assert inventory.devices() == [] and inventory.hosts() == [] and inventory.progress() == []
    for serial in "BA":
        inventory.announce_device(make.device(serial))
    assert inventory.devices() == [make.device("A"), make.device("B")]
    host = HostAnnouncement(host="lab", worker="lab:1", pid=1, running=(("A", "job", 1, 7),))
    inventory.announce_host(host)
    assert inventory.hosts() == [host]
    progress = Progress(serial="A", job_id="j", attempt=1, token=7, label="x", phase="running", since=1.0)
    inventory.announce_progress(progress, "lab")
    assert inventory.progress() == [progress]
    inventory.clear_progress("A", "lab")
    assert inventory.progress() == []
    assert 0 < redis.ttl(keys.device("lab", "A")) <= keys.ANNOUNCE_TTL_S
    redis.delete(keys.device("lab", "A"))
    assert [d.serial for d in inventory.devices()] == ["B"]


def test_a_serial_that_two_hosts_announce_is_one_host_s(redis: Redis, farm: Settings) -> None:
    """The scheduler decides whose it is, and hosts are told."""
    inventory, live = Inventory(redis), LiveView(redis, Ledger(farm.ledger))
    hosts = [HostAnnouncement(host=name, worker="w", pid=1) for name in ("h1", "h2")]
    for host in hosts:
        inventory.announce_host(host)
    first, second = make.device("A", host="h1"), make.device("A", host="h2")

    def shown() -> str:
        live.refresh(hosts)
        (device,) = inventory.devices()
        assert live.devices["A"].facts.host == device.facts.host
        return device.facts.host + "!" * ("device conflict: host " in (device.state.reason or ""))

    assert inventory.announce_device(first) == "" and shown() == "h1"
    assert inventory.announce_device(second) == "h1" and shown() == "h1!"
    assert inventory.announce_device(first) == ""
    redis.delete(keys.OWNERS)
    assert shown() == "h1!", "what it decided it knows"
    gone = make.device("A", host="h1", health=Health.OFFLINE)
    assert inventory.announce_device(gone) == "" and shown() == "h2"
    assert inventory.announce_device(second) == "", "it has moved"
    assert inventory.announce_device(gone) == "h2" and shown() == "h2"
    redis.flushall()
    for host in hosts:
        inventory.announce_host(host)
    assert inventory.announce_device(first) == "" and inventory.announce_device(second) == ""
    live.refresh(hosts)
    assert live.devices["A"].facts.host == "h2", "a wipe gives it to nobody else"


def test_a_crowded_host_s_further_devices_get_no_work_and_the_log_says_so(
    redis: Redis, farm: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """The same devices count, whether they come one by one or all are read."""
    chance = random.Random(seed)
    monkeypatch.setattr(keys, "MOST_OF_A_HOST", most := chance.randint(2, 5))
    inventory, live = Inventory(redis), LiveView(redis, Ledger(farm.ledger))
    hosts = [HostAnnouncement(host=name, worker="w", pid=1) for name in ("lab", "other")]
    serials = [
        f"{host}{number}"
        for host, count in (("l", most + chance.randint(1, 4)), ("o", most))
        for number in range(count)
    ]
    counted = {each for each in serials if int(each[1:]) < most}
    for host in hosts:
        inventory.announce_host(host)
    live.refresh(hosts)
    last = "l9"
    for serial in [*chance.sample(serials, len(serials)), last]:
        inventory.announce_device(make.device(serial, host="lab" if serial[0] == "l" else "other"))
        if chance.random() < 0.5 or serial == last:
            live.refresh(hosts)
    afresh = LiveView(redis, Ledger(farm.ledger))
    afresh.refresh(hosts)
    assert {each.serial for each in inventory.devices()} == afresh.devices.keys() == counted
    assert counted <= live.devices.keys() and last not in live.devices
    assert "crowded_host host=lab" in caplog.text and "host=other" not in caplog.text


def test_garbage_is_skipped_with_a_log_line(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    inventory = Inventory(redis)
    inventory.announce_device(make.device("A"))
    inventory.announce_device(make.device("B"))
    redis.set(keys.device("lab", "A"), b"\xff{not json")
    with caplog.at_level(logging.WARNING):
        assert [d.serial for d in inventory.devices()] == ["B"]
    assert "farm:device:lab:A" in caplog.text


def test_reasons_of_waiting(redis: Redis) -> None:
    inventory = Inventory(redis)
    assert inventory.waiting() is None, "no scheduler has said anything"
    reasons = {"j": WaitReason(kind=WaitKind.RESTING, text="cooling, ready at about 10:00:00")}
    for _ in range(2):
        inventory.announce_waiting(reasons)
        assert inventory.waiting() == reasons and redis.expire(keys.WAITING, 1)
    inventory.announce_waiting(reasons)
    assert redis.ttl(keys.WAITING) > 1, "what was said already is said for as long again"
    redis.flushall()
    inventory.announce_waiting(reasons)
    assert inventory.waiting() == reasons, "to a Redis that has lost it, too"
    inventory.announce_waiting({})
    assert inventory.waiting() == {}
    redis.set(keys.WAITING, "garbage")
    assert inventory.waiting() is None


def test_no_redis() -> None:
    with pytest.raises(SetupError, match="no Redis is configured"):
        redis_client.connect(Settings(redis_url=""))
    with pytest.raises(SetupError, match="cannot be used"):
        redis_client.connect(Settings(redis_url="http://x"))
    with pytest.raises(ServiceDown, match="does not answer") as caught:
        redis_client.connect(Settings(redis_url="redis://me:secret@127.0.0.1:1/0"))
    assert "secret" not in str(caught.value)
    lost = Inventory(redis_client.client_of(Settings(redis_url="redis://127.0.0.1:1/0")))
    with pytest.raises(ServiceDown):
        lost.devices()

    @redis_client.translated
    def on_a_full_disk() -> None:
        raise ResponseError("MISCONF Errors writing to the AOF file: No space left on device")

    with pytest.raises(ServiceDown, match="cannot serve now") as caught:
        on_a_full_disk()
    assert caught.value.remedy == redis_client.DISK_FULL


def test_a_password_is_asked_for(farm: Settings, redis: Redis) -> None:
    redis.config_set("requirepass", "open sesame / ?")
    try:
        with pytest.raises(SetupError, match="refuses us"):
            redis_client.connect(farm)
        right = farm.model_copy(update={"redis_password": SecretStr("open sesame / ?")})
        assert redis_client.connect(right).ping()
    finally:
        redis.config_set("requirepass", "")
