"""The queue as the scheduler follows it: lanes with the jobs whose turn is next, and the attempts under way.

The ledger says what changed; the view can be built anew at any moment, and is when a scheduler starts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.ledger import Ledger, RunningRow, WaitingLane
from orchestrator.ledger.queue.histories import Served
from orchestrator.model.live.queue_view import Share, WaitingJob
from orchestrator.model.live.usage import Account

from .fair_use import UnderWay

MOST = 1000
"""Experiments of which nothing waits whose latest attempt is remembered: more jobs of theirs may follow."""
NEWEST = 0.2
"""Weight of the newest block in what an experiment's blocks take."""
_NEVER = Served(0.0, "")


class QueueView:
    """`refresh`, then read the rest."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._number: int | None = None
        self._lanes: dict[int, WaitingLane] = {}
        self._of_choice: dict[int, set[int]] = defaultdict(set)
        """Choice -> lanes in which jobs wait."""
        self._of_device: dict[str, set[int]] = defaultdict(set)
        """Serial -> choices that have it."""
        self._known: set[int] = set()
        """Choices that are in the index above."""
        self._alone: set[int] = set()
        """Lanes with jobs that run alone on their host."""
        self._waits: Counter[str] = Counter()
        """Experiment -> lanes in which its jobs wait."""
        self._served: dict[str, Served] = {}
        """The services of these at least."""
        self._count: Counter[str] = Counter()
        """Experiment -> attempts under way."""
        self._began: Counter[str] = Counter()
        """Experiment -> sum of the Unix times, in ms, at which those began."""
        self._accounts: dict[str, Account] = {}
        """The accounts of all these at least."""
        self._took_s: dict[str, float] = {}
        """Experiment -> duration of its blocks, the newest counted most."""
        self.running: dict[int, RunningRow] = {}
        """The attempts by token."""
        self.token_of: dict[str, set[int]] = defaultdict(set)
        """Serial -> tokens of the attempts under way there."""
        self.version = 0
        """One more whenever anything changed."""
        self.changed: set[int] = set()
        """Tokens of attempts that changed; whoever has seen to them clears it."""
        self.ended = False
        """True if an attempt ended, or a lane ran dry; the same."""

    def refresh(self) -> bool:
        """Read what changed; whether anything did. Raises ServiceDown."""
        news = self._ledger.news(self._number)
        if news is None:
            return False
        for number, lane in news.lanes.items():
            self._note_lane(number, lane)
        for token, row in news.attempts.items():
            self._note_attempt(token, row)
        self._follow_served(news.served)
        self._learn(news.took_s)
        self._number = news.number
        self.ended = self.ended or None in news.lanes.values() or None in news.attempts.values()
        self.version += 1
        return True

    def _follow_served(self, served: Mapping[str, Served]) -> None:
        self._served |= served
        if lacking := self._waits.keys() - self._served.keys():
            self._served |= dict.fromkeys(lacking, _NEVER) | self._ledger.served(lacking)  # one may be pruned by now
        if len(self._served) > 2 * len(self._waits) + MOST:
            self._served = {each: self._served[each] for each in self._waits}

    def _learn(self, took_s: Mapping[str, Sequence[float]]) -> None:
        for experiment_id, durations in took_s.items():
            for duration in durations:
                before = self._took_s.pop(experiment_id, duration)
                self._took_s[experiment_id] = before + NEWEST * (duration - before)
        while len(self._took_s) > MOST + len(self._waits):
            del self._took_s[next(iter(self._took_s))]
        if len(self._accounts) > 2 * (len(self._waits) + len(self._count)) + MOST:
            self._accounts = {each: self._accounts[each] for each in (*self._waits, *self._count)}

    def _note_lane(self, number: int, lane: WaitingLane | None) -> None:
        before = self._lanes.pop(number, None)
        if before is not None:
            self._of_choice[before.choice].discard(number)
            _count_down(self._waits, before.experiment_id)
        self._alone.discard(number)
        if lane is None:
            return
        self._lanes[number] = lane
        self._of_choice[lane.choice].add(number)
        self._waits[lane.experiment_id] += 1
        self._accounts[lane.experiment_id] = lane.account
        if any(job.alone for job in lane.tried):
            self._alone.add(number)
        if lane.choice not in self._known:
            self._known.add(lane.choice)
            for serial in next(iter(lane.groups))[0].candidates:
                self._of_device[serial].add(lane.choice)

    def _note_attempt(self, token: int, row: RunningRow | None) -> None:
        self.changed.add(token)
        before = self.running.pop(token, None)
        if before is not None:
            _count_down(self._count, before.experiment_id)
            self._began[before.experiment_id] -= _ms(before.started_at)
            if before.experiment_id not in self._count:
                del self._began[before.experiment_id]
            self.token_of[before.serial].discard(token)
        if row is not None:
            self.running[token] = row
            self._count[row.experiment_id] += 1
            self._began[row.experiment_id] += _ms(row.started_at)
            self._accounts[row.experiment_id] = row.account
            self.token_of[row.serial].add(token)

    @property
    def shares(self) -> dict[str, Share]:
        """Return what each experiment whose jobs wait has of the farm."""
        return {e: Share(self._count[e], self._served[e].at, self._served[e].serial) for e in self._waits}

    @property
    def accounts(self) -> set[Account]:
        """Return those for whose experiments jobs wait."""
        return {self._accounts[e] for e in self._waits}

    @property
    def took_s(self) -> Mapping[str, float]:
        """Return how long blocks of experiments take, as far as they were seen to end."""
        return self._took_s

    def under_way(self, now: float) -> dict[Account, UnderWay]:
        """Return the attempts under way by account at a Unix time. Those in line count as if they were at work."""
        found = dict[Account, UnderWay]()
        for e, count in self._count.items():
            before, elapsed_s = found.get(self._accounts[e], UnderWay()), count * now - self._began[e] / 1000
            more = (count, elapsed_s, max(elapsed_s, count * self._took_s.get(e, 0.0)))
            found[self._accounts[e]] = UnderWay(*(old + new for old, new in zip(before, more, strict=True)))
        return found

    @property
    def is_empty(self) -> bool:
        """No job waits."""
        return not self._lanes

    def is_wanted_beside(self, serial: str, experiment_id: str) -> bool:
        """Return whether jobs of another experiment wait that this device may run."""
        lanes = (lane for choice in self._of_device.get(serial, ()) for lane in self._of_choice.get(choice, ()))
        return any(self._lanes[lane].experiment_id != experiment_id for lane in lanes)

    def groups(self, free: Iterable[str] | None = None) -> list[Sequence[WaitingJob]]:
        """Alike jobs together: those that one of the free devices may run and those that run alone, or all."""
        if free is None:
            lanes: Iterable[int] = self._lanes
        else:
            choices = {choice for serial in free for choice in self._of_device.get(serial, ())}
            lanes = {lane for choice in choices for lane in self._of_choice.get(choice, ())} | self._alone
        return [group for lane in lanes for group in self._lanes[lane].groups]


def _ms(unix_s: float) -> int:
    return round(unix_s * 1000)


def _count_down(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
