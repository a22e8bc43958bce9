"""Reconcile the ledger's attempts with the leases in Redis, also after Redis was wiped.

For each attempt that the ledger holds as under way there are four cases:
- its lease lives: a claim is noted, a task that nobody answered is sent again;
- its lease has run out: the lease is reaped and the attempt is lost;
- its lease was released: its record is on the way, for which it is given time;
- Redis knows nothing of it: restored if its host says that it runs, lost after a while if nobody does.
An attempt in line has the lease of the one that is under way; where that was ended here, it is handed back at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.client import translated
from orchestrator.coordination.leases import Fence, Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.coordination.tasks.queue import Placed, task_id
from orchestrator.ledger import JobState, Ledger, RunningRow
from orchestrator.model.errors import Unreadable
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.model.live.lease import Lease
from orchestrator.model.record import Outcome

from .live_view import LiveView
from .queue_view import QueueView
from .set_aside import SetAside

log = logging.getLogger(__name__)

RESEND_S = 2.0
UNCLAIMED_S = 120.0
"""The time for which a host that is alive, and has room for another session, may leave a lease unclaimed."""
LATE = 1 / 3
"""Share of a lease's life: a turn that comes so long after the one before it is late, since holders renew as often."""
RECORD_GRACE_S = 60.0
"""The time for which a record may be on its way after its session has released the device."""
MARK_S = 0.5
"""The time between two notes in the ledger of what was claimed: most of a short job's life would be its commit."""
PUBLISH_S = 1.0
"""A Redis that was wiped knows after this what was cancelled."""
MISSING_GRACE_S = 3 * keys.ANNOUNCE_S
"""The time that a host has to announce what it runs after Redis has lost the leases."""


@dataclass
class Reconciled:
    """The result of one pass, and the leases as placement must see them."""

    leases: dict[str, Lease] = field(default_factory=dict)
    """Live leases, and one for each device whose session may still run although Redis has forgotten it."""
    restored: int = 0
    lost: int = 0
    resent: int = 0


class Reconciler:
    """Remembers since when something is missing, and when the task of a lease was last sent."""

    def __init__(
        self,
        ledger: Ledger,
        redis: Redis,
        send: Callable[[str, Placed], None],
        revoke: Callable[[Collection[str]], None],
        *,
        clock: Callable[[], float],
        ttl_s: float = 15.0,
    ) -> None:
        self._ledger, self._redis, self._leases = ledger, redis, Leases(redis)
        self._send, self._revoke, self._clock, self._late_s = send, revoke, clock, LATE * ttl_s
        self._missing_since: dict[int, float] = {}
        self._sent: dict[int, tuple[float, int]] = {}
        """Token -> when its task was sent last, and how often."""
        self._unclaimed_since: dict[int, float] = {}
        self._patient_until = 0.0
        self._turned_at = (clock(), 0.0)
        self._spared: dict[int, float] = {}
        """Token of a lease that had run out when a late turn found it -> until when it is not reaped."""
        self._is_late = False
        self._seen: tuple[int, int] | None = None
        """Versions of queue and leases of which the next two are."""
        self._cancelled: set[str] = set()
        """Jobs under way that were cancelled."""
        self._recalled: set[str] = set()
        """Devices on which no further attempt of a line is to begin."""
        self._leftovers: list[str] = []
        """Serials of leases whose attempt is over."""
        self._claimed: dict[int, str] = {}
        """Token -> job, of attempts that were claimed, which the ledger does not know yet."""
        self._mark_at = float("-inf")
        self._published: Mapping[str, set[str]] = {}
        self._publish_at = float("-inf")
        """The time when what is published is compared again with what should be, though nothing changed."""
        self._over: set[int] = set()
        """Tokens of attempts whose session is known to be over, and that wait for their record."""
        self._fences: dict[str, Fence] = {}
        """The fences of devices, as far as they were asked for in this pass."""
        self._unsettled: set[int] = set()
        """Tokens of attempts that are looked at in the next pass."""
        self._aside = SetAside[int | str]("attempt")

    def redis_was_away(self, ttl_s: float) -> None:
        """Holders could not renew: give them one life of a lease before any is reaped."""
        self._patient_until = self._clock() + ttl_s

    def _note_turn(self, redis_now: float) -> None:
        """Whoever kept this process from its turn (the machine slept, all of it starved), or set Redis' clock forward,
        may have kept the holders from renewing as well. A machine's sleep is seen by Redis' clock alone."""
        now, (clock, redis_clock) = self._clock(), self._turned_at
        gap_s = max(now - clock, redis_now - redis_clock if redis_clock else 0.0)
        self._turned_at, self._is_late = (now, redis_now), gap_s > self._late_s
        if self._is_late:
            log.warning("event=late_turn gap_s=%.1f", gap_s)

    def recall(self, serials: Collection[str]) -> None:
        """Begin no further attempt of a line on these devices from now on. Raises ServiceDown."""
        if (wanted := {keys.recall(serial) for serial in serials}) != self._recalled:
            self._recalled = wanted
            self._publish({keys.CANCELLED: self._cancelled | self._recalled})

    def note_sent(self, token: int) -> None:
        self._sent[token] = (self._clock(), self._sent.get(token, (0.0, 0))[1] + 1)

    def _is_due_again(self, row: RunningRow) -> bool:
        """Ever later, as far as the lease allows: a host with much to do is not to read the same again and again."""
        sent_at, times = self._sent.get(row.token, (float("-inf"), 0))
        pause_s = min(RESEND_S * 2.0 ** min(max(0, times - 1), 20), max(RESEND_S, row.ttl_s / 3))
        return self._clock() >= sent_at + pause_s

    def run(self, hosts: Sequence[HostAnnouncement], queue: QueueView, live: LiveView) -> Reconciled:
        """One pass over the attempts that are not settled: those that changed, whose lease changed or ran out, or that
        wait for something. Raises ServiceDown where Redis or the ledger is away."""
        alive = {h.host: h for h in hosts}
        leases, rows, now = live.leases, queue.running, live.now
        self._note_turn(now)
        done = Reconciled(leases=dict(leases))
        self._note_versions(queue, live)
        ended = {str(t) for h in hosts for *_, t in h.running if t not in rows}
        over = {keys.CANCELLED: self._cancelled | self._recalled, keys.ENDED: ended}
        if over != self._published or self._clock() >= self._publish_at:
            self._publish(over)
        self._unsettled |= queue.changed | {t for serial in live.changed for t in queue.token_of.get(serial, ())}
        self._unsettled &= rows.keys()
        queue.changed.clear()
        live.changed.clear()
        self._free_leftovers(live, queue, done)
        due = [rows[token] for token in sorted(self._unsettled) if self._aside.is_due(token)]
        self._ask_fences([row for row in due if row.token not in self._over], done)
        for row in due:
            with self._aside.trying(row.token):
                self._settle(row, hosts, alive, now, done)
        self._mark_running(rows.keys())
        return done

    def _settle(
        self,
        row: RunningRow,
        hosts: Sequence[HostAnnouncement],
        alive: Mapping[str, HostAnnouncement],
        now: float,
        done: Reconciled,
    ) -> None:
        lease = done.leases.get(row.serial)
        if lease is None or not lease.covers(row.token):
            self._without_lease(row, hosts, done)
        elif lease.expires_at > now:
            self._spared.pop(row.token, None)
            if row.token != lease.token:  # in line: looked at again when the lease is another one
                self._unsettled.discard(row.token)
            elif lease.holder:
                if row.state is JobState.PLACED:
                    self._claimed[row.token] = row.job_id
                self._unsettled.discard(row.token)
            else:
                self._unclaimed(row, alive, done)
        elif row.token == lease.token:
            self._expired(row, lease, alive, done)

    def _ask_fences(self, rows: Iterable[RunningRow], done: Reconciled) -> None:
        """Ask in one trip for those whose lease is gone, or further in its line: many after a burst. A lease that is
        there and that its index has lost is found by its name."""
        leases = done.leases
        gone = [row for row in rows if row.serial not in leases or not leases[row.serial].covers(row.token)]
        found = self._leases.some(f"{row.host}:{row.serial}" for row in gone if row.serial not in leases)
        leases |= {lease.serial: lease for lease in found.values() if lease is not None}
        self._fences = self._leases.fences({row.serial for row in gone})

    def _fence(self, serial: str) -> Fence:
        if serial not in self._fences:
            self._fences |= self._leases.fences([serial])
        return self._fences[serial]

    def _mark_running(self, under_way: Collection[int]) -> None:
        """Note those that were claimed and are not over already; seldom, all together."""
        self._claimed = {token: job for token, job in self._claimed.items() if token in under_way}
        if self._claimed and self._clock() >= self._mark_at:
            self._ledger.mark_running(self._claimed.values())
            self._claimed, self._mark_at = {}, self._clock() + MARK_S

    def _note_versions(self, queue: QueueView, live: LiveView) -> None:
        """Look through all attempts and leases where any of them changed."""
        rows, seen = queue.running, (queue.version, live.lease_version)
        if seen != self._seen:
            self._seen = seen
            cancelled = {row.job_id: row for row in rows.values() if row.state is JobState.CANCELLED}
            if new := cancelled.keys() - self._cancelled:
                self._revoke([task_id(job, cancelled[job].attempt) for job in new])
            self._cancelled = set(cancelled)
            self._leftovers = [serial for serial, lease in live.leases.items() if lease.token not in rows]
            self._forget(rows.keys())

    def _expired(self, row: RunningRow, lease: Lease, alive: Mapping[str, HostAnnouncement], done: Reconciled) -> None:
        if self._is_late:  # once: a farm that is always late must reap too
            self._spared.setdefault(row.token, self._clock() + row.ttl_s)
        spared_until = max(self._patient_until, self._spared.get(row.token, 0.0))
        if self._clock() < spared_until or not self._leases.reap(row.serial, row.token):
            return
        done.leases.pop(row.serial, None)
        if not lease.holder:
            self._lose(row, "not_claimed", done)
        elif row.host in alive and alive[row.host].worker != lease.holder:
            self._lose(row, "worker_died", done)
        else:
            self._lose(row, "lease_expired", done)

    def _unclaimed(self, row: RunningRow, alive: Mapping[str, HostAnnouncement], done: Reconciled) -> None:
        """Nobody has answered the task yet: send another; a host that is alive keeps the lease for its turn."""
        if row.state is JobState.CANCELLED:
            if self._leases.withdraw(row.serial, row.token):
                done.leases.pop(row.serial, None)
                self._lose(row, "cancelled", done)
            return
        host = alive.get(row.host)
        if host is None or (host.sessions and len(host.running) >= host.sessions):
            self._unclaimed_since.pop(row.token, None)  # away, or full: it is not stuck
        elif self._clock() - self._unclaimed_since.setdefault(row.token, self._clock()) > UNCLAIMED_S:
            if self._leases.withdraw(row.serial, row.token):
                done.leases.pop(row.serial, None)
                self._lose(row, "claim_overdue", done)
            return
        if not self._is_due_again(row):
            return
        if host is not None:
            self._leases.renew(row.serial, row.token, "", row.ttl_s)
        self.note_sent(row.token)
        in_line = max(0, done.leases[row.serial].last - row.token)  # tokens of a line are consecutive
        self._send(row.host, Placed(row.job_id, row.attempt, row.serial, row.token, in_line))
        done.resent += 1

    def _without_lease(self, row: RunningRow, hosts: Sequence[HostAnnouncement], done: Reconciled) -> None:
        missing_s = self._clock() - self._missing_since.setdefault(row.token, self._clock())
        running = (row.serial, row.job_id, row.attempt, row.token)
        host = next((h for h in hosts if running in h.running), None)
        is_overdue = missing_s > RECORD_GRACE_S or (
            missing_s > MISSING_GRACE_S and host is None and self._has_no_record(row, hosts)
        )
        if row.token in self._over:
            if is_overdue:
                self._lose(row, "record_missing", done)
            return
        fence = self._fence(row.serial)
        if fence.floor >= row.token:  # released, and perhaps leased anew since
            self._over.add(row.token)
            if 0 < fence.reached < row.token:
                self._lose(row, "handed_back", done)
            elif is_overdue:
                self._lose(row, "record_missing", done)
        elif host is not None:
            try:
                assignment = self._ledger.assignment(row)
            except Unreadable as e:
                log.error("event=unreadable error=%s", str(e).replace("\n", " "))
                self._lose(row, e.cause, done)
                return
            if self._leases.restore(assignment, host.worker):
                log.warning("event=restored job=%s serial=%s token=%d", row.job_id, row.serial, row.token)
                self._missing_since.pop(row.token, None)
                done.restored += 1
            done.leases[row.serial] = _assumed(row)
        elif missing_s > MISSING_GRACE_S:
            self._lose(row, "lease_missing", done)
        else:
            done.leases[row.serial] = _assumed(row)

    def _has_no_record(self, row: RunningRow, hosts: Sequence[HostAnnouncement]) -> bool:
        """Return whether its host is there, and says that nothing of it is on its way: its session was cut off."""
        says = next((host for host in hosts if host.host == row.host), None)
        name = f"{row.job_id}:{row.attempt}"
        return says is not None and not says.spooled and not RecordStream(self._redis, row.host).holds(name)

    def _free_leftovers(self, live: LiveView, queue: QueueView, done: Reconciled) -> None:
        """Leases whose attempt is over: freed once they run out, or at once where nobody has claimed them. What is in
        line behind it is seen to in the same pass, before the device is leased anew."""
        for serial, lease in [(serial, live.leases[serial]) for serial in self._leftovers if serial in live.leases]:
            with self._aside.trying(serial):
                unclaimed = not lease.holder and self._leases.withdraw(serial, lease.token)
                if unclaimed or (lease.expires_at <= live.now and self._leases.reap(serial, lease.token)):
                    done.leases.pop(serial, None)
                    self._unsettled |= queue.token_of.get(serial, set())

    def _lose(self, row: RunningRow, cause: str, done: Reconciled) -> None:
        outcome = Outcome.CANCELLED if row.state is JobState.CANCELLED else Outcome.LOST
        state = self._ledger.end_attempt(row.job_id, row.attempt, outcome, cause)
        log.warning(
            "event=attempt_lost job=%s attempt=%d serial=%s cause=%s job_state=%s",
            row.job_id, row.attempt, row.serial, cause, state,
        )  # fmt: skip
        done.lost += 1

    @translated
    def _publish(self, sets: Mapping[str, set[str]]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for key in sets:
                pipe.smembers(key)
            found = pipe.execute()
        for (key, wanted), published in zip(sets.items(), map(set, found), strict=True):
            if wanted - published:
                self._redis.sadd(key, *(wanted - published))
            if published - wanted:
                self._redis.srem(key, *(published - wanted))
        self._published, self._publish_at = sets, self._clock() + PUBLISH_S

    def _forget(self, tokens: Collection[int]) -> None:
        self._missing_since = {t: since for t, since in self._missing_since.items() if t in tokens}
        self._over &= set(tokens)
        self._spared = {t: until for t, until in self._spared.items() if t in tokens}
        self._unclaimed_since = {t: since for t, since in self._unclaimed_since.items() if t in tokens}
        self._sent = {t: known for t, known in self._sent.items() if t in tokens}


def _assumed(row: RunningRow) -> Lease:
    """Stands for a lease that Redis has forgotten, until it is known whether the session still runs."""
    return Lease(
        serial=row.serial, job_id=row.job_id, attempt=row.attempt, token=row.token, expires_at=time.time() + row.ttl_s
    )
