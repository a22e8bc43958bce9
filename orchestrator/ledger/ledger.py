"""The class `Ledger`: each method is one transaction; `reads` and `writes` name what it does there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select
from sqlalchemy.exc import DataError, IntegrityError

from orchestrator.figures import BlockFigures
from orchestrator.figures.brief import Brief
from orchestrator.model.errors import Unreadable, Unstorable
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.people import COMMON
from orchestrator.model.record import Outcome, Record

from . import attempts, experiments, figures, queries, records, templates
from .attempts import Note, Prepared, Start
from .database import Database, jump, reads, writes
from .figures import Apart, Renewed, Selector
from .guard import unseen
from .incoming import imports
from .incoming.dead_records import DeadRecords
from .incoming.imports import Beside, Imported
from .people.audit import Audit
from .queue import extension
from .queue.groups import waiting_groups, waiting_in_brief
from .queue.histories import served
from .queue.listed import Listed
from .queue.news import News, NewsReader
from .queue.outlook import outlook
from .rows import (
    JobState,
    KeepResult,
)
from .runs.nights import Nights
from .runs.queueing import QueueRuns
from .said.standing import Standing
from .tables import JOBS, LANES, number_of

if TYPE_CHECKING:
    from .people.people import People

LOOK_S = 5.0
"""The time between two looks for jobs that nobody sees."""


class Ledger:
    """`url` is a SQLAlchemy URL. Raises SetupError where it cannot be used, ServiceDown where the database is away.

    `retries` is the number of counted losses after which a job is lost for good, `quarantine_after` the number of
    consecutive losses that put a device (and of faults that put a host) into quarantine; after each a device rests
    `rest_s` longer. The first quarantine lasts `quarantine_s`, each following one twice as long.
    """

    def __init__(
        self,
        url: str,
        *,
        retries: int = 3,
        quarantine_after: int = 3,
        rest_s: float = 5.0,
        quarantine_s: float = 60.0,
    ) -> None:
        self._database = Database(url)
        self._retries, self._quarantine_after = retries, quarantine_after
        self._left_out, self._look_at = -1, 0.0
        self._reader = NewsReader(self._spec, self._fail_choice)
        self.nights, self.queue_runs = Nights(self._database), QueueRuns(self._database)
        self.listed, self.audit = Listed(self._database), Audit(self._database)
        self.standing = Standing(self._database, quarantine_after, quarantine_s, rest_s)
        self.dead = DeadRecords(self._database, self.offer, self._fail)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def together(self) -> AbstractContextManager[None]:
        """Make one transaction of all calls of this thread meanwhile, from the first that writes: all or nothing."""
        return self._database.together()

    @cached_property
    def people(self) -> People:
        """The people who may use the farm; read where somebody asks, since most commands do not."""
        from .people.people import People

        return People(self._database)

    # experiments

    experiment_names = reads(experiments.names)
    experiment = reads(experiments.one)
    place_of = reads(experiments.place_of)
    device_counts = reads(queries.device_counts)
    cancel = writes(experiments.cancel)
    retry = writes(experiments.retry)

    def submit(
        self,
        experiment_id: str,
        experiment: Experiment,
        jobs: Sequence[Job],
        exclusions: Iterable[Exclusion] = (),
        reserve: Sequence[Job] = (),
        *,
        by: str | None = None,
        project: str = COMMON,
    ) -> bool:
        """Store an experiment with its jobs, all or nothing; False where it is there already (nothing is changed).

        A device runs its jobs in this order. `reserve`: jobs that are held until `extend` decides about them. `by`: who
        submits it; None: the user of this process. `project`: whose it is.
        """
        rows = experiments.rows_of(jobs, reserve)
        with self._database.write() as connection:
            return experiments.submit(connection, experiment_id, experiment, rows, exclusions, by, project)

    def counts(self, experiment_id: str | None = None) -> dict[str, int]:
        """Number of jobs by state (held, waiting, placed, running, cancelled) or, where done, by outcome."""
        with self._database.read() as connection:
            found = queries.counts(connection, experiment_id)
        return dict(sum(map(Counter, found.values()), Counter[str]()))

    experiments = reads(experiments.every)

    # jobs and attempts

    jobs = reads(queries.jobs)
    cells = reads(templates.cells_of)
    served = reads(served)
    waiting_groups = reads(waiting_groups)
    waiting_in_brief = reads(waiting_in_brief)
    outlook = reads(outlook)
    undecided = reads(extension.undecided)
    extend = writes(extension.extend)
    stopped = reads(extension.stopped_of)
    lane_jobs = reads(extension.jobs)
    running = reads(queries.running)
    assignment = reads(queries.assignment)

    def news(self, since: int | None = None) -> News | None:
        """Return what changed in the queue after the change of this number, or everything; None where nothing did."""
        with self._database.read() as connection:
            return self._reader.read(connection, since)

    def waiting(self) -> list[WaitingJob]:
        """The jobs whose turn is next in each lane, in order of priority and submission."""
        lanes = (lane for lane in news.lanes.values() if lane is not None) if (news := self.news()) is not None else ()
        jobs = [job for lane in lanes for group in lane.groups for job in group]
        return sorted(jobs, key=lambda job: (-job.priority, job.order))

    def begin_attempts(self, starts: Sequence[Start], ttl_s: float) -> list[Assignment]:
        """Begin attempts with their lines, each under a new token; without those whose job does not wait any more."""
        try:
            with self._database.write() as connection:
                return attempts.begin(connection, starts, ttl_s)
        except IntegrityError:  # a damaged row holds a token that was to come
            self.skip_tokens()
        with self._database.write() as connection:
            return attempts.begin(connection, starts, ttl_s)

    def skip_tokens(self, beyond: int = 0) -> None:
        """Give no token any more that a row holds already, or that is not beyond this one."""
        with self._database.write() as connection:
            jump(connection, "token", beyond)

    def begin_attempt(self, job_id: str, serial: str, host: str, ttl_s: float) -> Assignment | None:
        """Begin one; None where the job does not wait any more."""
        return next(iter(self.begin_attempts([Start(job_id, serial, host)], ttl_s)), None)

    def mark_running(self, job_ids: Iterable[str]) -> None:
        """These placed jobs were claimed by a worker."""
        if ids := list(job_ids):
            with self._database.write() as connection:
                attempts.mark_running(connection, ids)

    def end_attempt(self, job_id: str, attempt: int, outcome: Outcome, cause: str) -> JobState | None:
        """End an attempt that left no record; the job waits again within its budget.

        Returns the job's state after it; None where the attempt had ended already.
        """
        with self._database.write() as connection:
            return attempts.end(connection, job_id, attempt, outcome, cause, self._retries, self._quarantine_after)

    # records

    replace = writes(attempts.replace_all)
    pruned = reads(queries.pruned)
    restored = reads(queries.restored)

    def keep(self, record: Record, body: bytes | None = None, host: str | None = None) -> KeepResult:
        """Keep a record once per (job, attempt), from the job's newest token only, and conclude its attempt.

        `body`: its JSON as it came, with what a newer version has put in; `host`: who sends it, None where nobody does.
        Raises Unstorable where this ledger can never keep it (Forged: the attempt is another host's), ServiceDown where
        the store cannot now.
        """
        sent = attempts.Sent(record, body if body is not None else record.model_dump_json().encode(), host)
        try:
            with self._database.read() as connection:
                prepared = attempts.prepare(connection, [sent])
            with self.keeping(prepared) as (result,):
                return result
        except (DataError, OverflowError) as e:  # no column can hold it
            raise Unstorable(f"a value of the record does not fit into the ledger: {e}") from e

    def offer(self, body: bytes, host: str | None = None) -> KeepResult:
        """Keep a record as `host` sent it: JSON of this version or a newer one. Raises as `keep` does."""
        return self.keep(records.parsed(body), body, host)

    def prepare(self, sent: Sequence[tuple[bytes, str]], note: Note = lambda _: lambda: None) -> list[Prepared]:
        """Make records, with their hosts, into what is kept; nothing is locked meanwhile. Raises as `keep` does."""
        found = (attempts.Sent(records.parsed(body), body, host) for body, host in sent)
        jobs = {attempts.seeming_job(body) for body, _ in sent}
        with self._database.read() as connection:
            return attempts.prepare(connection, found, jobs=jobs, note=note)

    @contextmanager
    def keeping(self, prepared: Sequence[Prepared]) -> Iterator[list[KeepResult]]:
        """Keep records in one transaction, all or none. They are kept when it is left, which another thread may do."""
        with self._database.write() as connection:
            yield attempts.keep_all(connection, prepared, self._retries, self._quarantine_after)

    def _fail(self, connection: Connection, job_id: str, attempt: int) -> None:
        """End an attempt whose record can never be stored."""
        cause = Unstorable.cause
        attempts.end(connection, job_id, attempt, Outcome.FAILED, cause, self._retries, self._quarantine_after)

    def records(
        self, experiment_id: str, *, outcomes: Iterable[str] | None = None, serial: str | None = None
    ) -> Iterator[Record]:
        """Records of an experiment in order of their start, read in batches."""
        with self._database.read() as connection:
            keys = records.keys(connection, experiment_id, outcomes, serial)
        for start in range(0, len(keys), records.BATCH):
            with self._database.read() as connection:
                found = records.packed(connection, keys[start : start + records.BATCH])
            yield from records.unpacked(found)

    def records_of(self, job_ids: Iterable[str]) -> Iterator[Record]:
        """All records of these jobs, read in batches."""
        for part in records.batches(job_ids):
            with self._database.read() as connection:
                found = records.packed_of(connection, part)
            yield from records.unpacked(found)

    # figures

    energies = reads(figures.energies)

    def figures(self, experiment_id: str, apart: Collection[Apart] = ()) -> list[BlockFigures]:
        """Return the figures of an experiment's records, in no order; missing rows of this version are made first.
        Those of a cell that cannot be read are left out.

        `apart`: which of the fields that rows hold apart are read; the others are None.
        """
        known = self.cells(experiment_id)
        return [one for one in self._figures({"experiment_id": experiment_id}, apart) if one.cell_id in known]

    def figures_of(self, job_ids: Iterable[str]) -> list[BlockFigures]:
        """Return the figures of all attempts at these jobs, as `figures` does."""
        parts = records.batches(job_ids)
        return [found for part in parts for found in self._figures({"job_id": part})]

    def briefs(self, experiment_id: str) -> list[Brief]:
        """The same rows as `figures` has, in few words: a tenth of the time."""
        of = {"experiment_id": experiment_id}
        for _ in self._renewed(of):
            pass
        known = self.cells(experiment_id)
        with self._database.read() as connection:
            return [one for one in figures.briefs(connection, of) if one.cell_id in known]

    def _figures(self, of: Selector, apart: Collection[Apart] = ()) -> list[BlockFigures]:
        for _ in self._renewed(of):
            pass
        with self._database.read() as connection:
            return list(figures.read(connection, of, apart=apart))

    def renew_figures(
        self, experiment_id: str, *, everything: bool = False, faulty: bool = False, dry: bool = False
    ) -> Iterator[Renewed]:
        """Make rows of figures anew from the records, a batch a transaction: those that are missing or of another
        version; with `faulty` those that could not be made too; or `everything`. `dry`: only count them."""
        return self._renewed({"experiment_id": experiment_id}, everything=everything, faulty=faulty, dry=dry)

    def _renewed(
        self, of: Selector, *, everything: bool = False, faulty: bool = False, dry: bool = False
    ) -> Iterator[Renewed]:
        with self._database.read() as connection:
            wanted = figures.keys(connection, of) if everything else figures.lacking(connection, of, faulty=faulty)
        if dry:
            yield Renewed(len(wanted))
            return
        for start in range(0, len(wanted), figures.BATCH):
            with self._database.write() as connection:
                found = figures.renew(connection, wanted[start : start + figures.BATCH])
            yield found

    def adopt(
        self, experiment_id: str, experiment: Experiment, found: Iterable[Imported], beside: Beside | None = None
    ) -> bool:
        """Store what somebody else measured, all or nothing; False where the experiment is there already."""
        return imports.adopt(self._database, experiment_id, experiment, found, beside or Beside())

    def end_unseen(self) -> None:
        """End open jobs of which a row cannot be read, where rows were left out since it was asked last."""
        found, now = self._database.unreadable, time.monotonic()
        if found == self._left_out or now < self._look_at:
            return
        self._left_out, self._look_at = found, now + LOOK_S
        with self._database.read() as connection:
            ids = unseen.unseen(connection)
        with self._database.write() as connection:
            unseen.end(connection, ids)

    def _fail_choice(self, choice: int) -> None:
        with self._database.write() as connection:
            lanes = select(LANES.c.id).where(LANES.c.choice_id == choice)
            attempts.fail(connection, JOBS.c.lane_id.in_(lanes), Unreadable.cause)

    def _spec(self, experiment_id: str) -> Experiment | None:
        """An experiment; None where it cannot be read: its jobs then end as failed, and the others go on."""
        with self._database.read() as connection:
            found = experiments.spec(connection, experiment_id)
        if found is None:
            with self._database.write() as connection:
                attempts.fail(connection, JOBS.c.experiment == number_of(experiment_id), Unreadable.cause)
        return found
