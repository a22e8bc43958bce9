"""Follow the changes of adb's list: admit every usable device, and announce all of them.

One device's failure is that device's state, with the reason and what to do; the others do not notice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from orchestrator.coordination.keys import ANNOUNCE_S
from orchestrator.model.device import Device, DeviceFacts, DeviceState, Health
from orchestrator.model.errors import DeviceBusy, DeviceSlow, FarmError, TransportLost, Unsupported
from orchestrator.system.config import Settings
from workers.connection.adb import AdbConnection, AdbServer, ListedDevice
from workers.connection.addresses import by_call
from workers.devices.admit import enrol_phone
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Fleet, Member
from workers.devices.identity import Name, Names, read_identity
from workers.devices.lookup import unusable
from workers.devices.probe import read_state
from workers.devices.workstation import enrol_workstation
from workers.enrolment import at_rest, first_sight
from workers.session.owner import HeldElsewhere
from workers.session.saved_settings import SettingsLeft

from .crash_recovery import put_back

log = logging.getLogger(__name__)

REFRESH_S = 10.0
"""Period of reading an idle phone's state; a phone in a session is left alone."""
RETRY_S = 30.0
"""A sick device is tried again after this, doubled each time up to `MAX_RETRY_S`."""
MAX_RETRY_S = 600.0
GONE_S = 600.0
"""The time for which a phone that left adb's list is still shown."""
CALL_BACK_S = 86400.0
"""The time for which a called phone that adb's server gave up, as it does after a minute, is shown and called again."""
PARALLEL = 8
LOSSES_S, REMEMBERED = 3600.0, 100
"""The time for which a phone's losses count, and how many are remembered."""


@dataclass
class _Watched:
    """The memory of discovery about one adb address."""

    row: ListedDevice | None = None
    busy: bool = False
    """A thread is at work on it."""
    name: Name | None = None
    """The name, since its phone was asked who it is."""
    stands_by: bool = False
    """Another connection to its phone is used."""
    enrolled: bool = False
    failures: int = 0
    due_at: float = 0.0
    """Monotonic time of the next look."""
    gone_at: float = 0.0
    """Monotonic time at which it left adb's list."""
    given_up: bool = False
    """The server had called it in vain; a phone that somebody disconnects leaves the list in another state."""

    lost_at: list[float] = field(default_factory=list)
    """Monotonic times at which adb lost it, of the last hour."""

    def lost(self) -> None:
        """Note that adb has lost it now."""
        self.lost_at = [*self.losses(), time.monotonic()][-REMEMBERED:]

    def losses(self) -> list[float]:
        """Return the times of the last hour."""
        return [at for at in self.lost_at if time.monotonic() - at < LOSSES_S]

    def disconnected(self) -> None:
        """Whoever answers at this address next is asked again who it is."""
        self.name, self.stands_by, self.enrolled = None, False, False


class Discovery:
    """Keeps a fleet up to date; `announce` is called with every device in each period.

    `is_taken`: whether another host has the phone of this serial; then it is not touched.
    """

    def __init__(
        self,
        fleet: Fleet,
        settings: Settings,
        server: AdbServer,
        is_taken: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._fleet = fleet
        self._settings = settings
        self._server, self._is_taken = server, is_taken
        self._watched: dict[str, _Watched] = {}
        self._names = Names(lambda address: read_identity(AdbConnection(address, server)))
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="discovery")
        self._workstation_due_at = 0.0
        self._workstation_busy = False
        self.adb = ""
        """Version and port of the adb server, or what is wrong with it."""

    def run(self, stop: threading.Event, announce: Callable[[list[Device]], None]) -> None:
        """Look, act and announce until `stop`."""
        while not stop.is_set():
            try:
                self.tick()
                announce(self._fleet.devices())
            except FarmError as e:
                log.warning("cannot announce: %s", e)
            except Exception:  # a host that announces nothing is dead to the farm: try again
                log.exception("discovery")
            stop.wait(ANNOUNCE_S)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self) -> None:
        """One look at the list; work is handed to threads, so that a hung phone delays nobody."""
        self._look_at_workstation()
        self._server.look()
        try:
            rows = {row.address: row for row in self._list()}
        except FarmError as e:
            self._all_away(str(e))
            return
        for address in [address for address in self._watched if address not in rows]:
            self._gone(address)
        for row in rows.values():
            self._look_at(row)

    def _list(self) -> list[ListedDevice]:
        if not self.adb.startswith("version"):
            self.adb = f"version {self._server.check()} on {self._server.place}"
        return self._server.devices()

    def _all_away(self, reason: str) -> None:
        if self.adb != reason:
            log.warning("%s", reason)
        self.adb = reason
        for address, watched in self._watched.items():
            self._away(address, watched, Health.OFFLINE, reason)
            watched.failures, watched.due_at = 0, 0.0  # whatever it waited for: a new server is a new start

    def _away(self, address: str, watched: _Watched, health: Health, reason: str) -> None:
        """Nothing answers at this address now; the phone keeps its name and its facts."""
        watched.disconnected()
        self._names.release(address)
        self._set(address, health, reason)

    def _gone(self, address: str) -> None:
        """It left the list: shown as offline for a while, if it was ever a phone of this farm."""
        watched, now = self._watched[address], time.monotonic()
        if watched.row is not None:
            if watched.row.state == "device":
                watched.lost()
            watched.given_up = watched.row.state == "offline" and by_call(address)
            watched.row, watched.gone_at, watched.due_at = None, now, now
        if self._names.is_known(address) and now - watched.gone_at < (CALL_BACK_S if watched.given_up else GONE_S):
            self._away(address, watched, Health.OFFLINE, "it is no longer connected: check cable, hub and phone")
            if watched.given_up and not watched.busy and now >= watched.due_at:
                watched.busy = True
                self._pool.submit(self._call_back, address, watched)
            return
        del self._watched[address]
        if self._names.speaks(address):
            self._fleet.forget(self._names.serial(address))
        self._names.forget(address)

    def _call_back(self, address: str, watched: _Watched) -> None:
        """Call a phone back, on a thread: one that nobody reaches takes seconds to say so."""
        try:
            AdbConnection(address, self._server).reconnect()
        finally:
            watched.due_at = time.monotonic() + RETRY_S
            watched.busy = False

    def _look_at(self, row: ListedDevice) -> None:
        watched = self._watched.setdefault(row.address, _Watched())
        if watched.row != row:
            watched.failures, watched.due_at = 0, 0.0
            if watched.row is not None and watched.row.state == "device" != row.state:
                watched.lost()
        watched.row = row
        if row.state != "device":
            self._away(row.address, watched, *unusable(row, self._server))
        elif not watched.busy and time.monotonic() >= watched.due_at:
            watched.busy = True
            self._pool.submit(self._work, row.address, watched)

    def _work(self, address: str, watched: _Watched) -> None:
        """Name, enrol or refresh one phone, on a thread."""
        row = watched.row
        try:
            if not watched.stands_by or self._names.speaks(address):  # else not to be disturbed: it may be measuring
                self._work_on(address, watched)
            watched.due_at = time.monotonic() + (ANNOUNCE_S if watched.stands_by else REFRESH_S)
        except HeldElsewhere as e:  # it is well, and nobody's fault
            self._set(address, Health.BUSY_ELSEWHERE, str(e.args[0]))
            watched.due_at = time.monotonic() + ANNOUNCE_S
        except DeviceBusy:  # a session holds it: it is well, and it is not to be disturbed
            watched.due_at = time.monotonic() + ANNOUNCE_S
        except Exception as e:
            self._failed(address, watched, e)
        finally:
            if watched.row != row:  # it was connected anew meanwhile: what became of the old connection says nothing
                watched.failures, watched.due_at = 0, 0.0
            watched.busy = False

    def _work_on(self, address: str, watched: _Watched) -> None:
        name = watched.name = watched.name or self._claim(address)
        watched.stands_by = name is None
        if name is not None:
            if self._is_taken(name.serial):
                raise DeviceBusy("another host has it", device=name.serial)
            with device_lock(self._settings.state, name.serial):
                self._put_back(address, name)
                losses = len(watched.losses())
                self._refresh(name, losses) if watched.enrolled else self._enrol(address, name, losses)
            watched.enrolled, watched.failures = True, 0

    def _put_back(self, address: str, name: Name) -> None:
        """Put back what a crashed session left changed, of this host or another: no other job need come for it. Raises
        SettingsLeft, HeldElsewhere, TransientError."""
        done = put_back(self._settings, AdbConnection(address, self._server, serial=name.serial))
        if done:
            log.warning("%s: put back what a session had left changed: %s", name.serial, ", ".join(done))

    def _failed(self, address: str, watched: _Watched, error: Exception) -> None:
        if not isinstance(error, FarmError):
            log.exception("probing %s", address)
        watched.failures += 1
        left = isinstance(error, SettingsLeft)  # somebody may put it back or release it: to look costs little
        watched.due_at = time.monotonic() + (REFRESH_S if left else retry_s(watched.failures))
        message = str(error) or type(error).__name__
        if isinstance(error, Unsupported):  # it stays so until another phone, or another system, is connected
            watched.due_at = float("inf")
        if isinstance(error, TransportLost) and not isinstance(error, DeviceSlow):
            self._away(address, watched, Health.OFFLINE, message)
        else:
            watched.enrolled = False
            self._set(address, Health.SICK, message)

    def _claim(self, address: str) -> Name | None:
        """The phone's name, or None where another connection to it is used. Raises FarmError."""
        name = self._names.claim(address)
        serial = self._names.serial(address)
        if serial != address:
            self._fleet.forget(address)  # as which it was shown before it could be asked
        if name is None:
            log.info("%s is connected as %s too: the first connection is used", serial, address)
        elif not self._fleet.known(serial):
            self._set(address, Health.PROBING, "the agent's probe is running")
        return name

    def _enrol(self, address: str, name: Name, losses: int) -> None:
        connection = AdbConnection(address, self._server, serial=name.serial)
        member, state = enrol_phone(connection, self._settings)
        state = self._fleet.watched(name.serial, state)
        self._fleet.enrol(member, state.model_copy(update={"reason": name.reason, "adb_losses": losses}))
        self._show_profile(member, state)
        facts = member.facts
        log.info("%s: %s %s, %s", name.serial, facts.model, facts.gpu, ", ".join(each.api for each in facts.apis))

    def _refresh(self, name: Name, losses: int) -> None:
        member = self._fleet.member(name.serial)
        state = self._fleet.watched(name.serial, read_state(member.connection, "phone"))
        said = {"reason": name.reason, "adb_losses": losses}
        self._fleet.set_state(member.facts, state.model_copy(update=said))
        self._show_profile(member, state)

    def _show_profile(self, member: Member, state: DeviceState) -> None:
        """The device profile: made at first sight, renewed by `farm enrol`. Without one a device works all the same."""
        try:
            profile = at_rest(self._settings, first_sight(member, self._settings), state)
        except FarmError as e:
            log.warning("%s: no device profile: %s", member.facts.serial, e)
            return
        self._fleet.set_enrolment(member.facts.serial, profile)

    def _set(self, address: str, health: Health, reason: str) -> None:
        """The state of what is at an address; facts that are known already are kept."""
        if self._names.speaks(address):
            serial = self._names.serial(address)
            source = self._names.source(address)
            facts = DeviceFacts(serial=serial, host=self._settings.host, kind="phone", source=source, address=address)
            self._fleet.set_state(facts, DeviceState(health=health, reason=reason, seen_at=time.time()))

    def _look_at_workstation(self) -> None:
        if not self._workstation_busy and time.monotonic() >= self._workstation_due_at:
            self._workstation_busy = True
            self._pool.submit(self._enrol_workstation)

    def _enrol_workstation(self) -> None:
        try:
            for member, state in enrol_workstation(self._settings):
                self._fleet.enrol(member, state)
                self._show_profile(member, state)
            self._workstation_due_at = float("inf")
        except FarmError as e:
            log.warning("this host's own devices cannot be used: %s", e)
            self._workstation_due_at = time.monotonic() + RETRY_S
        finally:
            self._workstation_busy = False


def retry_s(failures: int) -> float:
    """Pause after so many failures in a row."""
    return float(min(RETRY_S * 2 ** min(failures - 1, 10), MAX_RETRY_S)) if failures > 1 else ANNOUNCE_S
