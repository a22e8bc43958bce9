"""Samples that somebody else measured -> an experiment of the ledger, with `source: import`.

Stored whole or not at all; the same content is the same experiment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.exchange.delimited_table import Table
from orchestrator.ledger import Imported, Ledger, Tried
from orchestrator.ledger.incoming.imports import Beside, Last
from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.event import Layer, Sample
from orchestrator.model.experiment import Conditions, Experiment, Matrix, Measure, Sampling, Workload, why_taken
from orchestrator.model.job import ForeignJob
from orchestrator.model.record import Doubt, DoubtCode, Record

from .columns import KNOWN, REQUIRED
from .rows import Attempt, Content, gather

HOST = "import"
TICK_S = 1e-5
"""The time between the blocks of an import, so that they keep their order."""


@dataclass(frozen=True)
class Import:
    """The result of an import."""

    experiment_id: str
    created: bool
    """False: the same content was there already, and nothing was changed."""
    rows: int
    samples: int
    layers: int
    blocks: int
    cells: int
    devices: tuple[str, ...]
    axes: tuple[str, ...]


def import_samples(
    ledger: Ledger, path: Path, name: str | None = None, note: Callable[[Import], Last] | None = None
) -> Import:
    """Read a table and store it. `note`: gives what is done in the transaction in which it comes to be.

    Raises TableError, and then nothing is stored; ValueError for an impossible name.
    """
    content = gather(Table(path))
    known = next((row.id for row in ledger.experiments() if _is_same(row.id, row.experiment, content, name)), None)
    if known is not None:
        return _import(known, content, created=False)
    experiment = _experiment(path, content, name)
    experiment_id = f"{experiment.name}-{content.digest[:8]}"
    beside = Beside(last=note(_import(experiment_id, content, created=True)) if note is not None else None)
    created = ledger.adopt(experiment_id, experiment, _blocks(experiment_id, content, time.time()), beside)
    return _import(experiment_id, content, created=created)


def _is_same(experiment_id: str, experiment: Experiment, content: Content, name: str | None) -> bool:
    """The content decides; a name only where one is asked for."""
    same = experiment_id == f"{experiment.name}-{content.digest[:8]}" and content.digest in experiment.description
    return same and name in (None, experiment.name)


def _experiment(path: Path, content: Content, name: str | None) -> Experiment:
    networks = tuple(dict.fromkeys(cell.workload.label for cell in content.cells.values()))
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem)[:60].strip("-.") or "import"
    if why_taken(plain):
        plain = f"import-{plain}"
    return Experiment(
        name=name or plain,
        description=f"Imported: {content.rows} rows of {path.name}, SHA-256 of their values {content.digest}",
        workload=Workload(network=networks[0]),
        matrix=Matrix(network=networks if len(networks) > 1 else None),
    )


def _blocks(experiment_id: str, content: Content, now: float) -> Iterator[Imported]:
    """Jobs with their records, in the order of the table."""
    for index, (key, attempts) in enumerate(content.blocks.items()):
        job = ForeignJob(
            experiment_id=experiment_id,
            cell=content.cells[key.cell_id],
            block=key.block,
            candidates=(key.device,),
            sampling=Sampling(),
            conditions=Conditions(),
            measure=Measure(),
            role=key.role,
        )
        at, numbered = now + index * TICK_S, sorted(attempts.items())
        yield Imported(job, tuple(Tried.of(_record(job, number, attempt, at)) for number, attempt in numbered))


def _record(job: ForeignJob, number: int, attempt: Attempt, at: float) -> Record:
    """The ledger gives it its token."""
    (serial,) = job.candidates
    unreal = attempt.source in (Source.VIRTUAL, Source.REPLAY)
    before = ", ".join(filter(None, (attempt.source, attempt.origin and f"experiment {attempt.origin}")))
    return Record(
        experiment_id=job.experiment_id,
        job_id=job.job_id,
        cell_id=job.cell.cell_id,
        block=job.block,
        attempt=number,
        token=0,
        worker=HOST,
        device=DeviceFacts(serial=serial, host=HOST, kind="unknown", source=Source.IMPORT),
        source=Source.IMPORT,
        outcome=attempt.outcome,
        cause=attempt.cause,
        started_at=at,
        ended_at=at,
        samples=tuple(_samples(attempt, job.cell.inferences)),
        layers=tuple(_layers(attempt)),
        role=job.role,
        doubts=(Doubt(code=DoubtCode.VIRTUAL_DEVICE, detail=f"before its import: {before}"),) if unreal else (),
        evidence=(f"before its import: {before}"[:500],) if before else (),
    )


def _samples(attempt: Attempt, inferences: int) -> Iterator[Sample]:
    for seq, (number, warmup, start_ns, duration_ns) in enumerate(attempt.samples):
        yield Sample(
            seq=seq,
            t_ns=start_ns + duration_ns,
            index=number,
            phase="warmup" if warmup else "timed",
            start_ns=start_ns,
            duration_ns=duration_ns,
            inferences=inferences,
        )


def _layers(attempt: Attempt) -> Iterator[Layer]:
    for seq, (number, layer, program, repeat, duration_ns) in enumerate(attempt.layers):
        yield Layer(seq=seq, t_ns=0, index=number, layer=layer, program=program, repeat=repeat, duration_ns=duration_ns)


def _import(experiment_id: str, content: Content, *, created: bool) -> Import:
    attempts = [attempt for block in content.blocks.values() for attempt in block.values()]
    return Import(
        experiment_id=experiment_id,
        created=created,
        rows=content.rows,
        samples=sum(len(attempt.samples) for attempt in attempts),
        layers=sum(len(attempt.layers) for attempt in attempts),
        blocks=len(content.blocks),
        cells=len(content.cells),
        devices=tuple(dict.fromkeys(key.device for key in content.blocks)),
        axes=tuple(content.columns.axes),
    )


__all__ = ["KNOWN", "REQUIRED", "Import", "import_samples"]
