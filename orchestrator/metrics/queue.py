"""The queue by the ledger's count: experiments, jobs, attempts, records, quarantine. Aggregates only, read-only."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from sqlalchemy import Connection, func, select

from orchestrator.answers import Wait, explain
from orchestrator.ledger.attempts import counted
from orchestrator.ledger.database import padded
from orchestrator.ledger.queue.groups import waiting_in_brief
from orchestrator.ledger.rows import OPEN, JobState, readable_rows
from orchestrator.ledger.tables import (
    ATTEMPTS,
    CHOICE_DEVICES,
    DEAD_RECORDS,
    DEVICE_HEALTH,
    EXPERIMENTS,
    HOLDS,
    HOST_HEALTH,
    JOBS,
    LANES,
    RECORDS,
)
from orchestrator.model.waiting import WaitKind, WaitReason

MAX_EXPERIMENTS = 50
"""Experiments that get series of their own: so many of the newest ones, and of those under way."""
NIGHTLY, NIGHTLY_S, MAX_NIGHTLY = "nightly", 30 * 86_400.0, 200
"""Further ones, with this word in their name (alerts watch them), submitted so long ago at most, the newest."""


def queue_families(connection: Connection, reasons: Mapping[str, WaitReason] | None) -> Iterator[Metric]:
    """Yield what waits and why, runs and is done. `reasons`: what the scheduler says; None where it says nothing."""
    yield _jobs(connection)
    yield _waiting(explain(waiting_in_brief(connection, reasons or ()), reasons))
    yield _oldest_waiting(connection)
    yield _of_devices(connection)
    yield from _attempts(connection)
    yield _records(connection)
    yield _dead_records(connection)
    yield from _quarantined(connection)
    yield _held(connection)
    yield from _experiments(connection)


def _jobs(connection: Connection) -> Metric:
    family = GaugeMetricFamily(
        "farm_jobs", "Jobs by state; those that are done also by outcome.", labels=("state", "outcome")
    )
    grouped = select(JOBS.c.state, JOBS.c.outcome, func.count()).group_by(JOBS.c.state, JOBS.c.outcome)
    counts = {(state.value, ""): 0 for state in OPEN}
    counts |= {(state, outcome): count for state, outcome, count in connection.execute(grouped)}
    for (state, outcome), count in sorted(counts.items(), key=str):
        family.add_metric([state, outcome], count)
    return family


def _waiting(waits: Iterable[Wait]) -> Metric:
    """The same answer as that of `farm status`, by kind of reason; every kind always, so that a rule can watch it."""
    family = GaugeMetricFamily("farm_jobs_waiting", "Jobs that wait, by what they wait for.", labels=("reason",))
    counted = Counter(dict.fromkeys(WaitKind, 0))
    for wait in waits:
        counted[wait.reason.kind] += wait.jobs
    for kind, count in counted.items():
        family.add_metric([kind], count)
    return family


def _oldest_waiting(connection: Connection) -> Metric:
    """Alert on its age: a queue may be long and well."""
    family = GaugeMetricFamily(
        "farm_jobs_oldest_waiting_timestamp_seconds", "When the oldest job that waits was submitted."
    )
    waiting = select(JOBS.c.experiment).where(JOBS.c.state == JobState.WAITING)
    oldest = connection.scalar(select(func.min(EXPERIMENTS.c.submitted_at)).where(EXPERIMENTS.c.sequence.in_(waiting)))
    if oldest is not None:
        family.add_metric([], oldest)
    return family


def _of_devices(connection: Connection) -> Metric:
    """A device that has no job to do or to expect has no series."""
    family = GaugeMetricFamily(
        "farm_device_jobs",
        "Jobs that a device works on (placed, running), and those that it may be given (waiting).",
        labels=("serial", "state"),
    )
    open_ = (ATTEMPTS.c.ended_at.is_(None), JOBS.c.state.in_((JobState.PLACED, JobState.RUNNING)))
    at_work = select(ATTEMPTS.c.serial, JOBS.c.state, func.count()).join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
    counts = {
        row[:2]: row[2] for row in connection.execute(at_work.where(*open_).group_by(ATTEMPTS.c.serial, JOBS.c.state))
    }
    of_lane = select(LANES.c.choice_id, func.count().label("jobs")).join(JOBS, JOBS.c.lane_id == LANES.c.id)
    chosen = of_lane.where(JOBS.c.state == JobState.WAITING).group_by(LANES.c.choice_id).subquery()
    waiting = select(CHOICE_DEVICES.c.serial, func.sum(chosen.c.jobs))
    joined = waiting.join(chosen, chosen.c.choice_id == CHOICE_DEVICES.c.choice_id)
    for serial, jobs in connection.execute(joined.group_by(CHOICE_DEVICES.c.serial)):
        counts[serial, JobState.WAITING] = int(jobs)
    for serial in sorted({serial for serial, _ in counts}):
        for state in (JobState.WAITING, JobState.PLACED, JobState.RUNNING):
            family.add_metric([serial, state], counts.get((serial, state), 0))
    return family


def _attempts(connection: Connection) -> Iterator[Metric]:
    counts = counted.count(connection, "attempts")
    yield CounterMetricFamily("farm_attempts_started", "Attempts that began.", value=counts.total())
    ended = CounterMetricFamily(
        "farm_attempts",
        "Attempts that ended, by outcome and cause (an error's bounded word).",
        labels=("outcome", "cause"),
    )
    for (outcome, cause), count in sorted(counts.items(), key=str):
        if outcome:
            ended.add_metric([outcome, cause], count)
    yield ended


def _records(connection: Connection) -> Metric:
    family = CounterMetricFamily(
        "farm_records", "Records that the ledger took in, by outcome and source.", labels=("outcome", "source")
    )
    for (outcome, source), count in sorted(counted.count(connection, "records").items(), key=str):
        family.add_metric([outcome, source], count)
    return family


def _dead_records(connection: Connection) -> Metric:
    return GaugeMetricFamily(
        "farm_dead_letters",
        "Records that could not be stored and wait to be replayed or dropped.",
        value=connection.scalar(select(func.count()).select_from(DEAD_RECORDS)) or 0,
    )


def _quarantined(connection: Connection) -> Iterator[Metric]:
    for what, label, name in (
        ("device", "serial", DEVICE_HEALTH.c.serial),
        ("host", "host", HOST_HEALTH.c.host),
    ):
        family = GaugeMetricFamily(
            f"farm_{what}_quarantined_timestamp_seconds",
            f"Since when a {what} is in quarantine; absent where it is not.",
            labels=(label,),
        )
        since = name.table.c.quarantined_at
        for each, at in connection.execute(select(name, since).where(since.is_not(None))):
            family.add_metric([each], at)
        yield family


def _held(connection: Connection) -> Metric:
    family = GaugeMetricFamily(
        "farm_device_held_timestamp_seconds",
        "Since when a person holds a device; absent where nobody does.",
        labels=("serial",),
    )
    lasting = HOLDS.c.until.is_(None) | (HOLDS.c.until > time.time())
    for serial, since in connection.execute(select(HOLDS.c.serial, HOLDS.c.since).where(lasting)):
        family.add_metric([serial], since)
    return family


def _experiments(connection: Connection) -> Iterator[Metric]:
    """Progress and latest good result of the newest experiments, by name: runs of one name are one series."""
    columns = (EXPERIMENTS.c.id, EXPERIMENTS.c.spec, EXPERIMENTS.c.submitted_at, EXPERIMENTS.c.sequence)
    newest = select(*columns).order_by(EXPERIMENTS.c.sequence.desc())
    nightly = EXPERIMENTS.c.spec.contains(NIGHTLY) & (EXPERIMENTS.c.submitted_at > time.time() - NIGHTLY_S)
    open_job = select(JOBS.c.id).where(JOBS.c.experiment == EXPERIMENTS.c.sequence, JOBS.c.state.in_(OPEN))
    every = [*connection.execute(newest.limit(MAX_EXPERIMENTS)),
             *connection.execute(newest.where(open_job.exists()).limit(MAX_EXPERIMENTS))]  # fmt: skip
    further = connection.execute(newest.where(nightly).limit(MAX_NIGHTLY)).all()
    first = {row.id for row in every}
    rows = {row.id: row for row in sorted((*every, *further), key=lambda row: -row.sequence)}
    found = readable_rows("experiment", rows.values(), lambda row: (row.id, name_in(row.spec)))
    names = {each: name for each, name in found if each in first or NIGHTLY in name}
    states = _states(connection, names)
    yield _progress(states, names)
    begun = {name: rows[experiment_id] for experiment_id, name in reversed(names.items())}
    yield _of_experiments("submitted", "When the newest experiment of a name was submitted.",
                          {name: row.submitted_at for name, row in begun.items()})  # fmt: skip
    yield _of_experiments("ended", "When the last job of the newest experiment of a name ended; absent before.",
                          _ended(states, {row.id: name for name, row in begun.items()}))  # fmt: skip
    yield _latest_results(connection, names)


def name_in(spec: str) -> str:
    """Return the name in an experiment's stored specification."""
    return str(json.loads(spec)["name"])


class _State(NamedTuple):
    """Jobs of one experiment in one state."""

    experiment_id: str
    state: str
    jobs: int
    ended_at: float | None


def _states(connection: Connection, names: dict[str, str]) -> list[_State]:
    of_experiment = JOBS.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
    columns = (EXPERIMENTS.c.id, JOBS.c.state, func.count(), func.max(JOBS.c.ended_at))
    named = select(*columns).select_from(of_experiment).where(EXPERIMENTS.c.id.in_(padded(names)))
    return [_State(*row) for row in connection.execute(named.group_by(EXPERIMENTS.c.id, JOBS.c.state))]


def _ended(states: list[_State], names: dict[str, str]) -> dict[str, float]:
    """Return end times by name, of experiments without an open job."""
    ended: dict[str, float] = {}
    for each in states:
        if (name := names.get(each.experiment_id)) is not None and each.ended_at is not None:
            ended[name] = max(each.ended_at, ended.get(name, each.ended_at))
    under_way = {names.get(each.experiment_id) for each in states if each.state in OPEN}
    return {name: at for name, at in ended.items() if name not in under_way}


def _of_experiments(what: str, text: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"farm_experiment_{what}_timestamp_seconds", text, labels=("experiment",))
    for name, at in sorted(values.items()):
        family.add_metric([name], at)
    return family


def _progress(states: list[_State], names: dict[str, str]) -> Metric:
    family = GaugeMetricFamily(
        "farm_experiment_jobs", "Jobs of an experiment that is not over, by state.", labels=("experiment", "state")
    )
    counted: Counter[tuple[str, str]] = Counter()
    for each in states:
        counted[names[each.experiment_id], each.state] += each.jobs
    active = {name for name, state in counted if state in OPEN}
    for (name, state), count in sorted(counted.items(), key=str):
        if name in active:
            family.add_metric([name, state], count)
    return family


def _latest_results(connection: Connection, names: dict[str, str]) -> Metric:
    family = GaugeMetricFamily(
        "farm_experiment_last_result_timestamp_seconds",
        "When the latest block of an experiment that went well was measured.",
        labels=("experiment",),
    )
    good = select(RECORDS.c.experiment_id, func.max(RECORDS.c.started_at)).where(
        RECORDS.c.experiment_id.in_(padded(names)), RECORDS.c.outcome == "ok"
    )
    latest: dict[str, float] = {}
    for experiment_id, at in connection.execute(good.group_by(RECORDS.c.experiment_id)):
        name = names[experiment_id]
        latest[name] = max(at, latest.get(name, at))
    for name, at in sorted(latest.items()):
        family.add_metric([name], at)
    return family
