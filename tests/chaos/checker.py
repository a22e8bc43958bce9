"""Judge whether a history keeps the farm's promises: a pure function, in the manner of Jepsen.

Each phone is the register: it wrote down itself what ran on it.

Every rule returns sentences, one for each violation; none where it holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from orchestrator.ledger.blame import NOT_THE_JOB

from .history import Attempt, History, Hit

RESULTS = ("ok", "invalid", "killed")
"""Outcomes that are an answer. A busy machine may make a block invalid; a phone that ends an agent is a result."""
PHONE_FAULTS = ("unplug", "reboot", "hang", "offline", "storage_full", "kill_agent", "restart_adbd")
"""Faults that may rightly count against a job: the phone did it."""
SLACK_S = 15.0
"""The time after a phone's fault in which an attempt on it may still fail of it."""


def violations(history: History) -> list[str]:
    """Every violation, in words."""
    rules = (
        accepted_jobs_are_there,
        jobs_end_in_one_result,
        attempts_do_not_overlap,
        tokens_grow,
        sessions_do_not_overlap,
        losses_have_a_culprit,
        settings_are_as_before,
        nothing_is_left,
        people_are_answered,
    )
    return list(chain.from_iterable(rule(history) for rule in rules))


def accepted_jobs_are_there(history: History) -> Iterator[str]:
    """An experiment that a client was told is accepted is in the ledger, once, with all its jobs."""
    found = Counter(job.experiment for job in history.jobs)
    for experiment, jobs in history.accepted.items():
        if found[experiment] != jobs:
            yield f"{experiment}: {jobs} jobs were accepted, the ledger has {found[experiment]}"
    for experiment in found.keys() - history.accepted.keys():
        yield f"{experiment}: the ledger has {found[experiment]} jobs that nobody was told of"


def jobs_end_in_one_result(history: History) -> Iterator[str]:
    """Each job is done with one result, whole, of its newest token; only phones may use its budget up."""
    records = defaultdict(list)
    for record in history.records:
        records[record.job].append(record)
    newest = {job: max(attempt.token for attempt in found) for job, found in _by_job(history.attempts).items()}
    for job in history.jobs:
        if job.state != "done":
            yield f"job {job.id} is {job.state} at the end"
            continue
        results = [record for record in records[job.id] if record.outcome in RESULTS]
        if job.outcome not in RESULTS:
            yield from _excused(history, job.id, f"job {job.id} ended {job.outcome} ({job.cause})")
        elif len(results) != 1:
            yield f"job {job.id} is {job.outcome} and has {len(results)} results"
        elif results[0].token != newest[job.id]:
            yield f"job {job.id}: its result has token {results[0].token}, the newest is {newest[job.id]}"
        elif results[0].outcome != "killed" and results[0].timed != history.samples:
            yield f"job {job.id}: its result has {results[0].timed} of {history.samples} samples"


def _excused(history: History, job: str, charge: str) -> Iterator[str]:
    """A job may be lost where each loss that counted was a phone's doing."""
    counted = [a for a in history.attempts if a.job == job and a.outcome == "lost" and a.cause not in NOT_THE_JOB]
    if not counted or not all(_by_its_phone(attempt, history.hits) for attempt in counted):
        yield charge


def losses_have_a_culprit(history: History) -> Iterator[str]:
    """A loss that counts against a job happened on a phone that was at fault then."""
    for attempt in history.attempts:
        counts = attempt.outcome in ("lost", "failed") and attempt.cause not in NOT_THE_JOB
        if counts and not _by_its_phone(attempt, history.hits):
            charge = f"job {attempt.job} pays for attempt {attempt.number} ({attempt.cause})"
            last = max(
                (hit for hit in history.hits if hit.at <= attempt.began + 1), key=lambda hit: hit.at, default=None
            )
            yield f"{charge}, and {attempt.serial} was well; the latest fault: {last}"


def _by_its_phone(attempt: Attempt, hits: Iterable[Hit]) -> bool:
    ended = attempt.ended if attempt.ended is not None else float("inf")
    return any(
        hit.fault in PHONE_FAULTS
        and hit.target == attempt.serial
        and hit.at <= ended
        and hit.until + SLACK_S >= attempt.began
        for hit in hits
    )


def attempts_do_not_overlap(history: History) -> Iterator[str]:
    """A job has one attempt at a time by the ledger's clock. (A phone is free before its record is taken in.)"""
    for job, found in _by_job(history.attempts).items():
        for one, next_one in pairwise(sorted(found, key=lambda attempt: attempt.began)):
            if one.ended is None or next_one.began < one.ended:
                yield f"job {job}: attempts with tokens {one.token} and {next_one.token} overlap"


def tokens_grow(history: History) -> Iterator[str]:
    """A job's later attempt has a newer token, and no token was handed out twice."""
    for token, times in Counter(attempt.token for attempt in history.attempts).items():
        if times > 1:
            yield f"token {token} was handed out {times} times"
    for job, found in _by_job(history.attempts).items():
        tokens = [attempt.token for attempt in sorted(found, key=lambda attempt: attempt.number)]
        if tokens != sorted(tokens):
            yield f"job {job}: tokens {tokens} do not grow"


def sessions_do_not_overlap(history: History) -> Iterator[str]:
    """No agent began on a phone while one of another attempt was alive there, and none came too late."""
    for run in history.runs:
        for other in run.beside:
            if _attempt_of(other) != _attempt_of(run.marker):
                yield f"phone {run.phone}: {run.marker} began while {other} ran"
    tokens = {(a.job, a.number): a.token for a in history.attempts}
    newest: dict[str, int] = {}
    for run in sorted(history.runs, key=lambda run: run.at):
        token = tokens.get(_attempt_of(run.marker))
        if token is None:
            yield f"phone {run.phone}: {run.marker} ran, and the ledger has no such attempt"
        elif token < newest.get(run.phone, 0):
            yield f"phone {run.phone}: {run.marker} with token {token} began after token {newest[run.phone]}"
        else:
            newest[run.phone] = token


def settings_are_as_before(history: History) -> Iterator[str]:
    for phone, (before, after) in history.settings.items():
        if before != after:
            yield f"phone {phone} was left changed: {before} became {after}"


def nothing_is_left(history: History) -> Iterator[str]:
    for what, count in history.left.items():
        if count:
            yield f"{count} {what} are left"


def people_are_answered(history: History) -> Iterator[str]:
    """People are told what is so, and hear of no fault of the farm but that a part is away."""
    yield from history.wrong
    for answer, count in history.answers.items():
        _, route, status = answer.split()
        fine = {"200", "409", *["503"] * bool(history.hits)}
        fine |= {"acts/submit": {"422"}, "experiments/ID": {"404"}}.get(route, set())
        if status not in fine:
            yield f"people were answered {answer} {count} times"


def _by_job(attempts: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        found[attempt.job].append(attempt)
    return found


def _attempt_of(marker: str) -> tuple[str, int]:
    """`SERIAL/JOB/ATTEMPT[/...]` -> job and attempt; what is marked otherwise belongs to no attempt of a job."""
    _, job, number, *_ = (*marker.split("/"), "", "")
    return (job, int(number)) if number.isdecimal() else (marker, 0)
