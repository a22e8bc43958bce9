"""Drives the agent on a device: start it detached, follow its journal through lost cables, stop it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.model.errors import DeviceSick, DeviceSlow, TransientError, TransportLost
from orchestrator.model.event import Device, Error, Event, Hello, Result, Setup
from workers.devices.agent_journal import Journal, evidence
from workers.devices.fleet import Member
from workers.devices.install import succeeded
from workers.devices.probe import ADBD, parse_adbd, read_adbd, read_boot_id
from workers.engines.told import suspended_s
from workers.session.supply import PlannedCut

from .kill_log import who_killed
from .request import AgentRequest

WAIT_MS = 1000
"""The time for which one look at the journal waits on the device for the end of the run: nothing runs meanwhile."""
ENDED, GOES_ON = 0, 3
"""Exit statuses of `follow`, by what it says of the run."""
RECONNECT_S = 180.0
"""The time for which a device may be away in mid-run before the attempt is given up."""
START_S = 1800.0
"""The time for which an agent may wait for its turn and prepare, before the block's own deadline begins."""
GRACE_S = 15.0
"""The agent ends itself at its deadline; this much later the device is called sick."""


class AdbdRestarted(TransientError):
    """adbd was restarted in mid-run and took the agent with it: what adb started is in its control group."""

    cause = "adbd_restarted"

    def __init__(self, *, device: str) -> None:
        remedy = 'docs/howto/real-phones.md, "When adbd restarts"'
        super().__init__(
            "the phone restarted adbd during the run, and the agent ended with it", device=device, remedy=remedy
        )


@dataclass
class AgentRun:
    """The course of a run, as far as the journal tells."""

    events: list[Event] = field(default_factory=list)
    resumed: bool = False
    """The connection was lost and found again."""
    killed: bool = False
    """The process went away without a last word."""
    killed_by: str = ""
    """The phone's log on that."""
    evidence: tuple[str, ...] = ()
    read: Mapping[str, bytes] = field(default_factory=dict)
    """Files that were read right behind its start, by path: whole where it was over by then."""

    @property
    def error(self) -> Error | None:
        return next((event for event in self.events if isinstance(event, Error)), None)

    @property
    def suspended_s(self) -> float | None:
        return suspended_s(self.events)


def has_turn(event: Event) -> bool:
    """Return whether the agent has the engine for itself by now; without a slot to wait for, its device says so."""
    return isinstance(event, Device) or (isinstance(event, Setup) and event.step == "slot")


def preparing(request: AgentRequest) -> list[list[str]]:
    """Return the commands that run on the device before its agent."""
    return [["mkdir", "-p", request.folder, *filter(None, (request.cache,))], ADBD]


@dataclass(frozen=True)
class Started:
    """The facts of a run that has only begun."""

    adbd: str = ""
    """Process id of the adbd that started the agent; empty: not known."""
    journal: bytes = b""
    """The journal so far, as far as it was read."""
    read: Mapping[str, bytes] = field(default_factory=dict)
    """Files that were there already, by path."""
    lost: TransportLost | None = None
    """The reason why it is not known whether the agent started."""


def start_agent(
    member: Member, request: AgentRequest, files: Sequence[str] = (), then: Sequence[Sequence[str]] = ()
) -> Started:
    """Start detached; returns when the agent has said hello, and is over or lasts longer than a moment, or when the
    cable went away while it may have. `files` are read in the same trip, and where the run has its result by then, the
    commands `then` follow. Raises DeviceSick with what the agent printed where it did not start."""
    connection = member.connection
    made, whose = connection.shells(preparing(request))
    succeeded(connection, preparing(request)[0], made)
    adbd = parse_adbd(whose) if member.facts.kind == "phone" else ""
    environment = (*member.environment, *request.environment)
    prefix = ("env", *environment) if environment else ()
    try:
        run = [*prefix, member.agent, *request.argv()]
        asked = [run, *(["cat", path] for path in (request.journal, *files))]
        guarded = [result_command(request), *then] if then else []
        told = connection.shells([*asked, *guarded], deadline_s=60.0, guard=len(asked) if then else None)
        result, journal, *found = told[: len(asked)]
    except TransportLost as e:
        return Started(adbd, lost=e)  # whether it runs, its journal tells
    has_said = result.code == 1 and connection.shell(["ls", request.journal]).code == 0  # an error event says why
    if result.code != 0 and not has_said:
        output = (result.stderr or result.stdout).decode(errors="replace").strip()[-500:]
        raise DeviceSick(
            f"the agent did not start (exit status {result.code}): {output}",
            device=connection.serial,
            remedy=f"run it by hand: {member.agent} version",
        )
    read = {path: each.stdout for path, each in zip(files, found, strict=True) if each.code == 0}
    return Started(adbd, journal.stdout if journal.code == 0 else b"", read)


def result_command(request: AgentRequest) -> list[str]:
    """Succeeds where the run is over and went well. Within an event's text every quote has a backslash."""
    return ["grep", "-q", '"event":"result"', request.journal]


class Follower:
    """Reads one run's journal until its last event."""

    def __init__(
        self,
        member: Member,
        request: AgentRequest,
        check: Callable[[], None],
        on_event: Callable[[Event], None],
        cut: PlannedCut | None = None,
        started: Started = Started(),
    ) -> None:
        self._member = member
        self._connection = member.connection
        self._request = request
        self._check = check
        self._on_event = on_event
        self._cut = cut
        """The cut of the supply for the run: the device may be away on purpose."""
        self._adbd, self._first, self._lost = started.adbd, started.journal, started.lost
        self._journal = Journal(member.facts.serial)
        self._run = AgentRun(self._journal.events, read=started.read)
        self._ends_at = time.monotonic() + START_S

    def follow(self) -> AgentRun:
        """Follow the agent until the result, the error, or the end of the process.

        Raises Garbage, DeviceSick (no end by the deadline), TransportLost (gone too long, restarted, or lost before the
        agent had started), AdbdRestarted, and whatever `check` raises.
        """
        while True:
            self._check()
            over = False
            try:
                over = self._look()
            except TransportLost as e:
                self._await_return(e)
            if over:
                return self._begun()
            if time.monotonic() > self._ends_at:
                raise DeviceSick(
                    "the agent did not end by its own deadline",
                    device=self._connection.serial,
                    remedy="a driver may hang: restart the device",
                )

    def _look(self) -> bool:
        """Return whether the run is over."""
        content, ended = self._journal_from(self._journal.offset)
        for event in self._journal.feed(content):
            self._on_event(event)
            if has_turn(event):
                self._ends_at = time.monotonic() + self._request.deadline_s + GRACE_S
        if self._has_last_word() or not ended:
            return self._has_last_word()
        if self._adbd and read_adbd(self._connection) != self._adbd:
            raise AdbdRestarted(device=self._connection.serial)
        self._run.killed = True
        if self._journal.events:
            self._run.killed_by = self._who_killed()
            self._run.evidence = self._last_lines()
        return True

    def _begun(self) -> AgentRun:
        """The run that is over. A device is not to blame for one that never began because its cable, or the adb server,
        went away."""
        if self._journal.events:
            return self._run
        raise self._lost or DeviceSick("the agent left no journal", device=self._connection.serial, remedy="try again")

    def _journal_from(self, offset: int) -> tuple[bytes, bool]:
        """Return what is new, and whether the agent has ended; without a journal it never began."""
        if self._first:
            first, self._first = self._first, b""
            return first, False
        argv = [self._member.agent, "follow", "--journal", self._request.journal, "--wait-ms", str(WAIT_MS)]
        told = self._connection.shell([*argv, *(("--offset", str(offset)) if offset else ())])
        if told.code in (ENDED, GOES_ON):
            return told.stdout, told.code == ENDED
        if not self._journal.events and self._connection.shell(["ls", self._request.journal]).code != 0:
            return b"", True
        time.sleep(WAIT_MS / 1000)  # somebody ended the look, say, for want of memory
        return b"", False

    def _has_last_word(self) -> bool:
        events = self._journal.events
        return bool(events) and isinstance(events[-1], Result | Error)

    def _who_killed(self) -> str:
        hello = self._journal.events[0]
        if self._member.facts.kind != "phone" or not isinstance(hello, Hello):
            return ""
        return who_killed(self._connection, hello.pid)

    def _last_lines(self) -> tuple[str, ...]:
        if not self._journal.events:
            return ()
        last = self._journal.events[-1]
        return evidence([json.dumps(last.model_dump(mode="json")).encode()])

    def _await_return(self, lost: TransportLost) -> None:
        """Wait for the same device, not restarted. Raises TransportLost.

        One whose supply was cut on purpose may be away as long as its agent is expected to need; then it is restored.
        """
        on_purpose = self._cut is not None and self._cut.holds
        self._run.resumed = self._run.resumed or not (on_purpose or isinstance(lost, DeviceSlow))
        give_up_at = time.monotonic() + RECONNECT_S + (self._cut.left_s if self._cut else 0.0)
        while time.monotonic() < give_up_at:
            self._check()
            if self._cut and self._cut.holds and self._cut.left_s == 0.0:
                self._cut.end()
            if self._is_back(lost):
                return
            time.sleep(1.0)
        if isinstance(lost, DeviceSlow):
            raise lost
        raise TransportLost(
            f"the device did not come back within {RECONNECT_S:g} s: {lost.args[0]}",
            device=self._connection.serial,
            remedy="check cable, hub and phone",
        ) from lost

    def _is_back(self, lost: TransportLost) -> bool:
        """Return whether it answers. Raises TransportLost where it has restarted in between."""
        try:
            boot_id = read_boot_id(self._connection, deadline_s=5.0)
        except (TransportLost, DeviceSick):
            self._connection.reconnect()
            return False
        if self._member.facts.boot_id and boot_id != self._member.facts.boot_id:
            raise TransportLost("the device restarted during the run", device=self._connection.serial) from lost
        return True
