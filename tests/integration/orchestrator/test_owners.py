"""Whose a phone is, whatever hosts say, Redis forgets or schedulers begin anew, in drawn histories of hosts."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import HostState, Ledger
from orchestrator.model.device import Health
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.scheduling.live_view import LiveView
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

LATE_S = keys.ANNOUNCE_TTL_S + 1.0


class World:
    """Hosts `lab` and `evil`, each with a secret of its own, and `here`, the farm's own machine."""

    def __init__(self, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.redis, self.ledger, self.inventory, self.now = redis, ledger, Inventory(redis), 0.0
        monkeypatch.setattr("orchestrator.scheduling.owners.time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr("orchestrator.scheduling.seldom.Seldom.due", property(lambda _: self.looks_at_all))
        self.looks_at_all = True
        for name in ("lab", "evil"):
            ledger.standing.admit_host(name, "0" * 64)
        self.live = LiveView(redis, ledger)

    def say(self, host: str, *, has: bool = True, health: Health = Health.READY) -> None:
        """Announce the host and, where it has one, the phone."""
        self.inventory.announce_host(HostAnnouncement(host=host, worker="w", pid=1))
        self.redis.delete(keys.device(host, "A"))
        if has:
            Inventory(self.redis).announce_device(make.device("A", host=host, health=health))

    def silence(self, host: str) -> None:
        self.redis.delete(keys.host(host), keys.device(host, "A"))

    def owner(self) -> str:
        """Whose it is for the scheduler; every view says the same, where Redis has what was decided."""
        self.live.refresh(self.inventory.hosts())
        found = self.live.devices.get("A")
        shown = {device.serial: device for device in self.inventory.devices()}.get("A")
        if not self.redis.hexists(keys.OWNERS, "A"):
            pass
        elif found is not None:
            assert shown is not None and shown.facts.host == found.facts.host
        elif shown is not None:
            assert "device conflict: it is host" in (shown.state.reason or ""), "a phone that no work comes to says why"
        return found.facts.host if found else ""

    def later(self, seconds: float = LATE_S) -> None:
        self.owner()
        self.now += seconds


@pytest.fixture
def world(redis: Redis, farm: Settings, monkeypatch: pytest.MonkeyPatch) -> object:
    with Ledger(farm.ledger) as ledger:
        yield World(redis, ledger, monkeypatch)


def test_a_phone_that_was_the_lab_s_is_nobody_else_s_whatever_is_lost(world: World, seed: int) -> None:
    """The lab is up or silent, Redis is wiped, keys of ownership are lost, schedulers begin anew, hours pass."""
    chance = random.Random(seed)
    steps: dict[str, Callable[[], object]] = {
        "lab": lambda: world.say("lab"),
        "evil": lambda: world.say("evil"),
        "silence": lambda: world.silence("lab"),
        "evil silence": lambda: world.silence("evil"),
        "wipe": world.redis.flushall,
        "lost": lambda: world.redis.delete(keys.OWNERS),
        "another scheduler": lambda: setattr(world, "live", LiveView(world.redis, world.ledger)),
        "looks": lambda: setattr(world, "looks_at_all", chance.random() < 0.5),
        "a moment": lambda: world.later(1.0),
        "long": lambda: world.later(chance.uniform(1.0, 1e5)),
    }
    world.say("lab")
    world.say("evil")
    assert world.owner() == "lab", "both were there before the first look: it was added first"
    told = []
    for _ in range(300):
        told.append(chance.choice(list(steps)))
        steps[told[-1]]()
        assert world.owner() in ("", "lab"), (seed, told[-20:])
    world.say("lab")
    world.later()
    assert world.owner() == "lab", (seed, told[-20:])


@pytest.mark.parametrize("how", ["it says gone", "it does not list it", "drained", "removed", "the farm's own machine"])
def test_a_phone_moves(world: World, how: str) -> None:
    other = "here" if how == "the farm's own machine" else "evil"
    world.say("lab")
    assert world.owner() == "lab"
    world.say(other)
    world.silence("lab")
    if how == "it says gone":
        world.say("lab", health=Health.OFFLINE)
        assert world.owner() == other
    world.later()
    if how == "it does not list it":
        world.say("lab", has=False)
    if how in ("drained", "removed"):
        assert world.owner() == "", "a silent host keeps it"
        world.ledger.standing.say_of_host("lab", HostState(how.replace("drained", "draining")))
    assert world.owner() == other
    world.say("lab")
    assert world.owner() == other, "who has it keeps it"
    world.live = LiveView(world.redis, world.ledger)
    assert world.owner() == other


def test_what_no_host_has_any_more_is_forgotten(world: World) -> None:
    """A host that names others each day fills no table."""
    for serial in range(20):
        world.inventory.announce_host(HostAnnouncement(host="evil", worker="w", pid=1))
        world.inventory.announce_device(make.device(f"x{serial}", host="evil"))
        world.owner()
        world.redis.delete(keys.device("evil", f"x{serial}"))
        world.later()
    world.owner()
    assert len(world.ledger.standing.owners()) <= 1
