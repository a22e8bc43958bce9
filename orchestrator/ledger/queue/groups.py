"""The waiting jobs in groups: of one experiment and choice of devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from sqlalchemy import Connection, select

from orchestrator.ledger.database import parts
from orchestrator.ledger.queue.lanes import choices_of
from orchestrator.ledger.queue.tallies import Place, Tally, having, places, tallies
from orchestrator.ledger.rows import JobState, WaitingGroup
from orchestrator.ledger.tables import EXPERIMENTS, LANES


def waiting_groups(
    connection: Connection, looked_at: Iterable[str], experiment_id: str | None = None
) -> list[WaitingGroup]:
    """Return one experiment's groups or all, by priority and submission; with those of `looked_at` that still wait."""
    found, waiting = members(connection, looked_at), _waiting(connection, experiment_id)
    first = dict[int, tuple[int, int, int]]()
    for each in waiting:
        place = (-each.priority, each.experiment, each.sequence)
        first[each.lane] = min(place, first.get(each.lane, place))
    jobs, named = _by_lane(waiting), _named(connection, first)
    ordered = [lane for lane in sorted(first, key=first.__getitem__) if lane in named]
    return [WaitingGroup(*named[lane], jobs[lane], tuple(found.get(lane, ()))) for lane in ordered]


def waiting_in_brief(connection: Connection, looked_at: Iterable[str]) -> list[WaitingGroup]:
    """The same of all experiments, at a cost that grows with `looked_at` and not with the groups: one by one are those
    in which such jobs wait, and the rest of each experiment is one group without devices."""
    found = members(connection, looked_at)
    named = _named(connection, found)
    waiting = _waiting(connection)
    jobs = _by_lane(waiting)
    groups = [WaitingGroup(*named[lane], jobs[lane], tuple(of)) for lane, of in found.items() if lane in named]
    told: Counter[str] = Counter()
    for group in groups:
        told[group.experiment_id] += group.jobs
    rest = [(each, total - told[each]) for each, total in _of_experiments(connection, waiting)]
    return [*groups, *(WaitingGroup(each, (), left, ()) for each, left in rest if left)]


def members(connection: Connection, looked_at: Iterable[str]) -> dict[int, list[str]]:
    """Lane -> which of these jobs wait in it; both in order of priority and submission, but those last that were never
    tried: they wait as the lane does."""
    found: dict[int, list[Place]] = defaultdict(list)
    for each in sorted(places(connection, set(looked_at))):
        if each.state == JobState.WAITING:
            found[each.lane].append(each)
    return {lane: [each.job for each in sorted(of, key=lambda each: not each.tried)] for lane, of in found.items()}


def _waiting(connection: Connection, experiment_id: str | None = None) -> list[Tally]:
    number = select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.id == experiment_id)
    of = having(connection, JobState.WAITING) if experiment_id is None else list(connection.scalars(number))
    return [each for each in tallies(connection, of) if each.state is JobState.WAITING]


def _by_lane(waiting: Iterable[Tally]) -> Counter[int]:
    """Lane -> jobs that wait in it."""
    found = Counter[int]()
    for each in waiting:
        found[each.lane] += each.jobs
    return found


def _of_experiments(connection: Connection, waiting: Iterable[Tally]) -> list[tuple[str, int]]:
    """Experiment and its jobs that wait, in order of submission."""
    jobs = Counter[int]()
    for each in waiting:
        jobs[each.experiment] += each.jobs
    named = select(EXPERIMENTS.c.sequence, EXPERIMENTS.c.id)
    rows = [row for part in parts(jobs) for row in connection.execute(named.where(EXPERIMENTS.c.sequence.in_(part)))]
    return [(name, jobs[number]) for number, name in sorted({(row.sequence, row.id) for row in rows})]


def _named(connection: Connection, lanes: Iterable[int]) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Lane -> experiment and devices."""
    named = select(LANES.c.id, LANES.c.choice_id, EXPERIMENTS.c.id.label("experiment_id"))
    of_experiment = named.join(EXPERIMENTS, EXPERIMENTS.c.sequence == LANES.c.experiment)
    rows = [row for part in parts(lanes) for row in connection.execute(of_experiment.where(LANES.c.id.in_(part)))]
    choices = choices_of(connection, {row.choice_id for row in rows})
    return {row.id: (row.experiment_id, choices[row.choice_id]) for row in rows}
