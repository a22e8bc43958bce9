"""Results as time series: the latest figures of each result (device, network, backend, precision, options) in each
experiment.

The ledger's new records are followed by their keys; where a cell of an experiment has news on a device, the figures of
its blocks are read again and summarised by the function that the report uses
(`orchestrator.analysis.statistics.summarise`).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from prometheus_client.core import Metric

from orchestrator.analysis.statistics import Summary, summarise
from orchestrator.ledger import figures, queries
from orchestrator.ledger.aggregates import results as stored
from orchestrator.ledger.aggregates.queue import name_in
from orchestrator.ledger.database import Transaction
from orchestrator.ledger.packed import readable
from orchestrator.model.record import Outcome

from .result_families import ResultLabels, agents_family, labels_of, result_families

log = logging.getLogger(__name__)

MAX_RESULTS = 1000
"""Series are kept for the results that were measured last."""
MAX_EXPERIMENTS = 5
"""The experiments that measured a result last have series of it: where a script names each experiment anew, these
must not take the places of other results."""
MAX_RECORDS = 5000
"""Newest records that a starting exporter looks at."""
MAX_BLOCKS = 200
"""Newest records of one cell on one device that are summarised."""
OVERLAP_S = 60.0
"""Records are looked at again for this long: transactions may commit out of order."""
BUDGET_S = 3.0
"""Summarising takes no longer in one scrape; what is left over comes with the next one, the newest first."""


class Key(NamedTuple):
    """A cell of an experiment on a device."""

    experiment_id: str
    serial: str
    cell_id: str
    source: str


@dataclass(frozen=True)
class _Latest:
    """Figures with the time at which the ledger got the newest record behind them."""

    kept_at: float
    measured_at: float
    agent: str
    """The agent that measured the newest block; empty: the record does not say."""
    summary: Summary


class Results:
    """The newest figures of each result; `update` reads what is new in the ledger."""

    def __init__(self) -> None:
        self._latest: dict[ResultLabels, _Latest] = {}
        self._due: dict[Key, float] = {}
        self._seen: dict[tuple[str, int], float] = {}
        self._kept_at = float("-inf")
        self._newest = 0
        """The newest experiment of the last call."""
        self._families: list[Metric] | None = None

    @property
    def due(self) -> int:
        """Cells on devices that have news which the figures do not hold yet."""
        return len(self._due)

    def update(self, connection: Transaction) -> None:
        """Take in what the good records say that the ledger has kept since the last call, as far as time allows."""
        self._follow(connection)
        end = time.monotonic() + BUDGET_S
        while self._due and time.monotonic() < end:
            key = max(self._due, key=lambda key: self._due[key])
            self._renew(connection, key, self._due.pop(key))
        self._forget()

    def _forget(self) -> None:
        """Keep what was measured last, within both bounds."""
        room, experiments = MAX_RESULTS, Counter[tuple[str, ...]]()
        for labels in sorted(self._latest, key=lambda each: self._latest[each].kept_at, reverse=True):
            experiments[labels[:-1]] += 1
            if room and experiments[labels[:-1]] <= MAX_EXPERIMENTS:
                room -= 1
            else:
                del self._latest[labels]
                self._families = None

    def _follow(self, connection: Transaction) -> None:
        newest, before = stored.newest_experiment(connection), self._newest
        self._newest, after = newest, before if newest > before else None
        fresh = stored.good_since(connection, self._kept_at - OVERLAP_S, after, MAX_RECORDS)
        for job_id, attempt, kept_at, *key in fresh:
            if (job_id, attempt) not in self._seen:
                self._due[Key(*key)] = max(kept_at, self._due.get(Key(*key), kept_at))
            self._seen[job_id, attempt] = kept_at
            self._kept_at = max(self._kept_at, kept_at)
        horizon = self._kept_at - OVERLAP_S
        self._seen = {key: at for key, at in self._seen.items() if at >= horizon}

    def _renew(self, connection: Transaction, key: Key, kept_at: float) -> None:
        """Summarise a cell on a device, unless something newer is known of the same result."""
        blocks = list(figures.read(connection, key._asdict(), most=MAX_BLOCKS))
        work = [block for block in blocks if block.role == "work" and block.outcome is Outcome.OK]
        if not work:
            return  # a canary is no result
        job = readable(f"job {work[0].job_id}", lambda: queries.job(connection, work[0].job_id))
        spec = partial(stored.spec_of, connection, key.experiment_id)
        name = readable(f"experiment {key.experiment_id}", lambda: name_in(spec()))
        if job is None or name is None:
            return
        mode, watched = job.sampling.mode, job.sampling.is_watched
        (summary,) = summarise(blocks, {key.cell_id: job.cell}, mode=mode, watched=watched)
        labels = labels_of(summary, job.cell, mode, name)
        known = self._latest.get(labels)
        if known is None or known.kept_at <= kept_at:
            kept = summary.model_copy(update={"layers": (), "planned": (), "conditions": (), "reasons": ()})
            self._families = None
            newest = max(work, key=lambda block: block.ended_at)
            by = f"{newest.provenance.agent_version} {newest.provenance.agent_sha256[:12]}".strip()
            self._latest[labels] = _Latest(kept_at, newest.ended_at, by, kept)

    def families(self) -> list[Metric]:
        """The newest figures as metrics, made anew where there is news: most scrapes find none."""
        if self._families is None:
            latest = {each: (found.summary, found.measured_at) for each, found in self._latest.items()}
            self._families = [*result_families(latest), agents_family(each.agent for each in self._latest.values())]
        return self._families
