"""The queue by the ledger's count: experiments, jobs, attempts, records, quarantine. Aggregates only, read-only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from orchestrator.answers import Wait, explain
from orchestrator.ledger.aggregates import queue
from orchestrator.ledger.attempts import counted
from orchestrator.ledger.database import Transaction
from orchestrator.ledger.queue.groups import waiting_in_brief
from orchestrator.ledger.rows import OPEN, JobState
from orchestrator.model.live.waiting import WaitKind, WaitReason

from .family import counter, gauge

MAX_EXPERIMENTS = 50
"""Experiments that get series of their own: so many of the newest ones, and of those under way."""
NIGHTLY, NIGHTLY_S, MAX_NIGHTLY = "nightly", 30 * 86_400.0, 200
"""Further ones, with this word in their name (alerts watch them), submitted so long ago at most, the newest."""


def queue_families(connection: Transaction, reasons: Mapping[str, WaitReason] | None) -> Iterator[Metric]:
    """Yield what waits and why, runs and is done. `reasons`: what the scheduler says; None where it says nothing."""
    yield _jobs(connection)
    yield _waiting(explain(waiting_in_brief(connection, reasons or ()), reasons))
    yield _oldest_waiting(connection)
    yield _of_devices(connection)
    yield from _attempts(connection)
    yield _records(connection)
    yield GaugeMetricFamily(
        "farm_dead_letters",
        "Records that could not be stored and wait to be replayed or dropped.",
        value=queue.dead_records(connection),
    )
    yield from _quarantined(connection)
    yield _held(connection)
    yield from _experiments(connection)


def _jobs(connection: Transaction) -> Metric:
    counts = {(state.value, ""): 0 for state in OPEN} | queue.job_counts(connection)
    text = "Jobs by state; those that are done also by outcome."
    return gauge("farm_jobs", text, ("state", "outcome"), sorted(counts.items(), key=str))


def _waiting(waits: Iterable[Wait]) -> Metric:
    """The same answer as that of `farm status`, by kind of reason; every kind always, so that a rule can watch it."""
    counted = Counter(dict.fromkeys(WaitKind, 0))
    for wait in waits:
        counted[wait.reason.kind] += wait.jobs
    return gauge("farm_jobs_waiting", "Jobs that wait, by what they wait for.", "reason", counted.items())


def _oldest_waiting(connection: Transaction) -> Metric:
    """Alert on its age: a queue may be long and well."""
    text = "When the oldest job that waits was submitted."
    return gauge("farm_jobs_oldest_waiting_timestamp_seconds", text, (), [((), queue.oldest_waiting(connection))])


def _of_devices(connection: Transaction) -> Metric:
    """A device that has no job to do or to expect has no series."""
    counts = queue.device_jobs(connection)
    serials, states = sorted({serial for serial, _ in counts}), (JobState.WAITING, JobState.PLACED, JobState.RUNNING)
    samples = [((serial, state), counts.get((serial, state), 0)) for serial in serials for state in states]
    text = "Jobs that a device works on (placed, running), and those that it may be given (waiting)."
    return gauge("farm_device_jobs", text, ("serial", "state"), samples)


def _attempts(connection: Transaction) -> Iterator[Metric]:
    counts = counted.count(connection, "attempts")
    yield CounterMetricFamily("farm_attempts_started", "Attempts that began.", value=counts.total())
    ended = [(key, count) for key, count in sorted(counts.items(), key=str) if key[0]]
    text = "Attempts that ended, by outcome and cause (an error's bounded word)."
    yield counter("farm_attempts", text, ("outcome", "cause"), ended)


def _records(connection: Transaction) -> Metric:
    counts = sorted(counted.count(connection, "records").items(), key=str)
    return counter(
        "farm_records", "Records that the ledger took in, by outcome and source.", ("outcome", "source"), counts
    )


def _quarantined(connection: Transaction) -> Iterator[Metric]:
    for what, label in (("device", "serial"), ("host", "host")):
        text = f"Since when a {what} is in quarantine; absent where it is not."
        name = f"farm_{what}_quarantined_timestamp_seconds"
        yield gauge(name, text, label, queue.quarantined_since(connection, what))


def _held(connection: Transaction) -> Metric:
    text = "Since when a person holds a device; absent where nobody does."
    return gauge("farm_device_held_timestamp_seconds", text, "serial", queue.held_since(connection))


def _experiments(connection: Transaction) -> Iterator[Metric]:
    """Progress and latest good result of the newest experiments, by name: runs of one name are one series."""
    found = queue.watched(connection, MAX_EXPERIMENTS, NIGHTLY, time.time() - NIGHTLY_S, MAX_NIGHTLY)
    names = {each.id: each.name for each in found}
    states = queue.states_of(connection, names)
    yield _progress(states, names)
    begun = {each.name: each for each in reversed(found)}
    yield _of_experiments("submitted", "When the newest experiment of a name was submitted.",
                          {name: each.submitted_at for name, each in begun.items()})  # fmt: skip
    yield _of_experiments("ended", "When the last job of the newest experiment of a name ended; absent before.",
                          _ended(states, {each.id: name for name, each in begun.items()}))  # fmt: skip
    yield _of_experiments("last_result", "When the latest block of an experiment that went well was measured.",
                          _latest_results(connection, names))  # fmt: skip


def _ended(states: list[queue.StateCount], names: dict[str, str]) -> dict[str, float]:
    """Return end times by name, of experiments without an open job."""
    ended: dict[str, float] = {}
    for each in states:
        if (name := names.get(each.experiment_id)) is not None and each.ended_at is not None:
            ended[name] = max(each.ended_at, ended.get(name, each.ended_at))
    under_way = {names.get(each.experiment_id) for each in states if each.state in OPEN}
    return {name: at for name, at in ended.items() if name not in under_way}


def _of_experiments(what: str, text: str, values: dict[str, float]) -> Metric:
    return gauge(f"farm_experiment_{what}_timestamp_seconds", text, "experiment", sorted(values.items()))


def _progress(states: list[queue.StateCount], names: dict[str, str]) -> Metric:
    counted: Counter[tuple[str, str]] = Counter()
    for each in states:
        counted[names[each.experiment_id], each.state] += each.jobs
    active = {name for name, state in counted if state in OPEN}
    samples = [(key, count) for key, count in sorted(counted.items(), key=str) if key[0] in active]
    text = "Jobs of an experiment that is not over, by state."
    return gauge("farm_experiment_jobs", text, ("experiment", "state"), samples)


def _latest_results(connection: Transaction, names: dict[str, str]) -> dict[str, float]:
    latest: dict[str, float] = {}
    for experiment_id, at in queue.latest_good(connection, names).items():
        name = names[experiment_id]
        latest[name] = max(at, latest.get(name, at))
    return latest
