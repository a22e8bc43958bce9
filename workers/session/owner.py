"""The owner of a phone: claims that lie on the phone itself, so that two hosts that reach it never both hold it.

    FOLDER/owner/<n>         a symbolic link whose target is the claim: made at once with its content, by one host only
    FOLDER/owner/<n>.until   a link to the time at which it ends; replaced by rename when it is renewed, 0 when released

The claim with the highest number counts. Times are the phone's own CLOCK_BOOTTIME; a claim of another boot is over. The
clock is read before a claim is judged, and after one was renewed: so a claim that was renewed in time cannot have been
seen as over by anybody. Links, because toybox's `ln -s` is atomic and fails where the name is taken, and because
Android lets the shell make them (hard links it does not).
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchestrator.model.errors import DeviceBusy, DeviceSick, FarmError, LeaseLost
from orchestrator.system.durable_files import write_durably
from workers.connection.ahead import Ahead
from workers.connection.base import DeviceConnection
from workers.connection.quote import quote
from workers.devices.tools import check_ran

log = logging.getLogger(__name__)
FOLDER = "owner"
TTL_S = 60.0
"""The time that a claim lasts unrenewed: a phone behind a pulled cable goes on with its run for a while."""
FENCE = 0.8
"""Share of its life, counted from before the phone was asked, after which a claim is renewed before the next step: by
our clock it never lasts longer than by the phone's."""
RENEWALS = 3
"""Renewals in the life of a claim."""
_ASK_S = 20.0
"""The time for a script of some five commands, on a phone where each takes seconds."""
_LONGEST_S = 3600.0
"""A claim that says more is no claim."""
_TRIES = 5
_LINK = re.compile(r" ([0-9]{1,15})(\.until)? -> (.*)$", re.MULTILINE)
_CLOCK = "cat /proc/uptime /proc/sys/kernel/random/boot_id"


class HeldElsewhere(DeviceBusy):
    """Another host or farm has the phone: it is well, and it is left alone."""

    cause = "busy_elsewhere"


@dataclass(frozen=True)
class Claimant:
    """A claimant of a phone."""

    lock: str
    """The device lock that the claimant holds: an earlier claim under the same lock is a dead session's."""
    host: str = ""
    farm: str = ""
    """The farm, since only tokens of one farm can be compared; empty: unknown."""
    token: int = 0
    """The fencing token of the lease; 0: there is none."""


@dataclass(frozen=True)
class Owner:
    """The claim that counts."""

    number: int
    claimant: Claimant
    left_s: float
    """The time until it ends; not above 0: it has ended."""

    def keeps_out(self, other: Claimant) -> bool:
        """Return whether another may not take the phone now."""
        mine = self.claimant
        newer = bool(other.farm) and mine.farm == other.farm and mine.token < other.token
        return self.left_s > 0 and mine.lock != other.lock and not newer


class Claimed(NamedTuple):
    """A claim, as far as it tells it from all others of a phone."""

    number: int
    boot: str
    """The boot of the phone: its numbers may begin anew with its storage."""


class Orderly:
    """Phones that the latest session of this process left with all its agents ended, and the claim that it had. Where
    that is still the newest one, nobody has started an agent there since. Threads may share it."""

    def __init__(self) -> None:
        self._left: dict[str, Claimed] = {}

    def note(self, serial: str, claimed: Claimed) -> None:
        """A session is over, and so are its agents."""
        self._left[serial] = claimed

    def take(self, serial: str) -> Claimed | None:
        """Return what was noted, once: a session that does not end well notes nothing."""
        return self._left.pop(serial, None)


class Then(NamedTuple):
    """The questions asked once a phone is taken, and who keeps its answers."""

    ahead: Ahead
    asks: Callable[[Claimed], Sequence[Sequence[str]]]
    """The questions, by the newest claim so far under the same lock; else by no claim's number, 0."""


@dataclass(frozen=True)
class _Sight:
    """The claims on the phone, and the time there just before."""

    now_s: float
    boot: str
    owner: Owner | None
    numbers: tuple[int, ...]

    @property
    def highest(self) -> int:
        return max(self.numbers, default=0)


def claimant_of(state: Path, host: str, farm: str = "", token: int = 0) -> Claimant:
    """Return who a session of this state folder is; the caller holds the device's lock there."""
    path = state / "locks" / "id"
    if not path.is_file():
        mine = path.with_name(f"id.{secrets.token_hex(4)}")
        write_durably(mine, secrets.token_hex(8))
        with suppress(FileExistsError):  # sessions on two devices may begin at once: one identity is everybody's
            path.hardlink_to(mine)
        mine.unlink()
    return Claimant(path.read_text(), re.sub(r"[^A-Za-z0-9_.-]", "_", host), farm, token)


def keeper_of(connection: DeviceConnection, claimant: Claimant) -> Owner | None:
    """The owner that keeps this claimant out now, or None. Raises TransportLost, DeviceSick."""
    owner = _look(connection).owner
    return owner if owner and owner.keeps_out(claimant) else None


def refuse(connection: DeviceConnection, owner: Owner) -> HeldElsewhere:
    """The error that says who has the phone."""
    who = f"host {owner.claimant.host}" if owner.claimant.host else "another host"
    return HeldElsewhere(
        f"{who} has the phone for {owner.left_s:.0f} s more, or longer",
        device=connection.serial,
        remedy="it works again when that host lets it go; else connect it to one host alone",
    )


class Ownership:
    """A claim of ours, renewed on a thread of its own until `release`."""

    def __init__(self, connection: DeviceConnection, claimant: Claimant, then: Then | None = None) -> None:
        """Take the phone; `then` is asked in the trip that takes it, if that goes well. Raises HeldElsewhere,
        TransportLost, DeviceSick."""
        self._connection, self._claimant = connection, claimant
        self._folder = f"{connection.folder}/{FOLDER}"
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._lost = ""
        self.claimed = self.before = Claimed(0, "")
        """Its claim, and the newest one before it, where that was made under the same lock."""
        self._take(then)
        self._thread = threading.Thread(target=self._keep, name=f"owner-{connection.serial}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Check the claim before each step on the device. Raises LeaseLost where another has taken it."""
        if not self._lost and _now_s() >= self._fence_s:  # the cable was away, or this machine slept
            self._quietly()
        if self._lost:
            raise LeaseLost(self._lost, device=self._connection.serial)

    def release(self) -> None:
        """Let the phone go; where it cannot be reached the claim runs out."""
        self._over.set()
        self._thread.join()
        with suppress(FarmError), self._guard:
            if not self._lost:
                self._connection.shell(["sh", "-c", self._until(0)], deadline_s=_ASK_S)

    def _take(self, then: Then | None = None) -> None:
        for _ in range(_TRIES):
            asked_at = _now_s()
            sight = _look(self._connection)
            if sight.owner and sight.owner.keeps_out(self._claimant):
                raise refuse(self._connection, sight.owner)
            number, until_s = sight.highest + 1, sight.now_s + TTL_S
            c = self._claimant
            claim = f"{c.lock}:{c.host}:{c.farm}:{c.token}:{sight.boot}:{until_s:.2f}"
            old = [f"{self._folder}/{n}{end}" for n in sight.numbers for end in ("", ".until")]
            script = f"mkdir -p {self._folder} && " + quote(["ln", "-s", claim, f"{self._folder}/{number}"])
            is_ours = sight.owner is not None and sight.owner.claimant.lock == c.lock
            self.before = Claimed(sight.highest, sight.boot) if is_ours else Claimed(0, "")
            take = ["sh", "-c", script + (f" && {quote(['rm', '-f', *old])}" if old else "")]
            told = then.ahead.shells([take, *then.asks(self.before)], deadline_s=30.0, guard=0) if then else []
            done = told[0] if told else self._connection.shell(take, deadline_s=_ASK_S)
            if done.code == 0:
                self._number, self._phone_until_s = number, until_s
                self.claimed = Claimed(number, sight.boot)
                self._fence_s = asked_at + FENCE * TTL_S
                self._offset_s = sight.now_s - asked_at
                return
            check_ran(self._connection, take, done)
            if _look(self._connection).highest < number:
                said = (done.stderr or done.stdout).decode(errors="replace").strip()
                full = "storage full: " if "No space left" in said else ""
                raise DeviceSick(
                    f"{full}its owner cannot be written to {self._folder}: {said[-300:]}",
                    device=self._connection.serial,
                    remedy="free space on the phone, and look at that folder",
                )
        raise HeldElsewhere("other hosts take the phone at the same time", device=self._connection.serial)

    def _keep(self) -> None:
        while not self._over.wait(TTL_S / RENEWALS) and not self._lost:
            self._quietly()

    def _quietly(self) -> None:
        try:
            self._renew()
        except FarmError as e:  # as long as the phone is out of reach, nothing is done to it either
            log.warning("%s: its owner's claim is not renewed: %s", self._connection.serial, e)

    def _renew(self) -> None:
        with self._guard:
            before, asked_at = self._phone_until_s, _now_s()
            until_s = asked_at + self._offset_s + TTL_S
            sight = _look(self._connection, first=self._until(until_s))
            if sight.highest != self._number or sight.owner is None:
                self._lost = "another host has taken the phone"
            elif sight.now_s > before or sight.owner.left_s <= 0:  # too late, and nobody came: as anybody may
                try:
                    self._take()
                except HeldElsewhere as e:
                    self._lost = str(e.args[0])
            else:
                self._phone_until_s, self._fence_s = until_s, asked_at + FENCE * TTL_S

    def _until(self, until_s: float) -> str:
        """Commands that replace the end of the claim at once."""
        new, end = f"{self._folder}/{self._number}.new", f"{self._folder}/{self._number}.until"
        return f"rm -f {new}; ln -s {until_s:.2f} {new} && mv -f {new} {end}"


@contextmanager
def owned(connection: DeviceConnection, claimant: Claimant, then: Then | None = None) -> Iterator[Ownership]:
    """Hold a phone. Raises HeldElsewhere, TransportLost, DeviceSick. After LeaseLost it is not touched any more."""
    held = Ownership(connection, claimant, then)
    try:
        yield held
    finally:
        held.release()


def _look(connection: DeviceConnection, *, first: str = "true") -> _Sight:
    """Read the clock, then the claims; `first`: commands to run before. Raises TransportLost, DeviceSick."""
    folder = f"{connection.folder}/{FOLDER}"
    found = connection.shell(["sh", "-c", f"{first}; {_CLOCK} || exit; ls -l {folder} 2>/dev/null"], deadline_s=_ASK_S)
    check_ran(connection, ["ls"], found)  # no list is not an empty list
    text = found.stdout.decode(errors="replace")
    try:
        uptime, boot = text.split()[0], text.splitlines()[1].strip()
        now_s = float(uptime)
    except (IndexError, ValueError) as e:
        raise DeviceSick(f"its clock is unreadable: {text[:200]!r}", device=connection.serial) from e
    links = [(int(number), bool(end), target) for number, end, target in _LINK.findall(text)]
    claims = {number: target for number, end, target in links if not end}
    numbers = tuple(sorted({number for number, _, _ in links}))
    ends = {number: target for number, end, target in links if end}
    top = max(claims, default=0)
    owner = _owner(top, claims[top], ends.get(top), now_s, boot) if top else None
    return _Sight(now_s, boot, owner, numbers)


def _owner(number: int, claim: str, end: str | None, now_s: float, boot: str) -> Owner | None:
    """None where nobody can tell what the claim says: it is over."""
    try:
        lock, host, farm, token, booted, until = claim.split(":")
        left_s = float(until if end is None else end) - now_s if booted == boot else 0.0
        return Owner(number, Claimant(lock, host, farm, int(token)), left_s) if left_s <= _LONGEST_S else None
    except ValueError:
        return None


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
