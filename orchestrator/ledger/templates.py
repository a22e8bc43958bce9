"""Take jobs apart, and put them together: a row holds numbers, of its template, its lane and its block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, insert, select

from orchestrator.model.job import ANY_CELL, ANY_JOB, AnyJob, Cell, Job

from .database import padded, parts
from .packed import pack_json, read_row, readable, readable_rows, unpack
from .queue import changes, lanes
from .rows import AnyRow, JobState, label
from .tables import JOBS, TEMPLATES, number_of

ORDINARY: TypeAdapter[Job] = TypeAdapter(Job)

_BODIES = select(TEMPLATES.c.id, TEMPLATES.c.body).where(TEMPLATES.c.id.in_(bindparam("these", expanding=True)))
_TEMPLATES_OF = select(JOBS.c.id, JOBS.c.template_id).where(JOBS.c.id.in_(bindparam("these", expanding=True)))
JOB_PARTS = (JOBS.c.id, JOBS.c.template_id, JOBS.c.lane_id, JOBS.c.block)
"""The columns that `JobReader` asks for."""


@dataclass
class NewJobs:
    """Jobs that are to be stored, packed before the transaction, which others wait for."""

    templates: list[dict[str, Any]] = field(default_factory=list)
    choices: list[tuple[str, ...]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Columns; `template_id` and `lane_id` are places in the lists above until they are stored."""


def prepare(groups: Iterable[tuple[Sequence[Job], JobState]], first: int = 0) -> NewJobs:
    """Jobs in their order, numbered from `first`, each group in its state."""
    made, templates, choices = NewJobs(), dict[tuple[Any, ...], int](), dict[int, int]()
    for jobs, state in groups:
        for job in jobs:
            parts = (job.cell, job.sampling, job.conditions, job.measure)
            content = (*map(id, parts), job.priority, job.role)
            if content not in templates:
                templates[content] = len(made.templates)
                made.templates.append(_columns(job))
            if id(job.candidates) not in choices:
                choices[id(job.candidates)] = len(made.choices)
                made.choices.append(job.candidates)
            made.rows.append(
                {
                    "id": job.job_id,
                    "sequence": first + len(made.rows),
                    "template_id": templates[content],
                    "lane_id": choices[id(job.candidates)],
                    "block": job.block,
                    "priority": job.priority,
                    "state": state,
                }
            )
    return made


def _columns(job: Job) -> dict[str, Any]:
    text = job.model_dump_json(exclude={"block", "candidates"}).encode()
    digest = hashlib.sha256(text).hexdigest()
    return {"digest": digest, "cell_id": job.cell.cell_id, "label": label(job), "body": pack_json(text)}


def store(connection: Connection, experiment: int, new: NewJobs, **columns: Any) -> None:
    """Store jobs of an experiment, with the templates and lanes that they need. `columns`: of all of them."""
    if not new.rows:
        return
    templates = _numbers(connection, experiment, new.templates)
    lane_ids = lanes.numbers_of(connection, experiment, new.choices)
    rows = [
        {**row, "template_id": templates[row["template_id"]], "lane_id": lane_ids[row["lane_id"]]} for row in new.rows
    ]
    connection.execute(insert(JOBS).values(experiment=experiment, **columns), rows)
    changes.note_lanes(connection, lane_ids)


def _numbers(connection: Connection, experiment: int, templates: Sequence[dict[str, Any]]) -> list[int]:
    known = select(TEMPLATES.c.digest, TEMPLATES.c.id).where(TEMPLATES.c.experiment == experiment)
    numbers: dict[str, int] = {row.digest: row.id for row in connection.execute(known)}
    new = {each["digest"]: each for each in templates if each["digest"] not in numbers}
    if new:
        made = insert(TEMPLATES).values(experiment=experiment).returning(TEMPLATES.c.digest, TEMPLATES.c.id)
        numbers |= {row.digest: row.id for row in connection.execute(made, list(new.values()))}
    return [numbers[each["digest"]] for each in templates]


class JobReader:
    """Puts jobs together in one transaction; reads each template and each choice of devices once."""

    def __init__(self, connection: Connection, rows: Collection[AnyRow], kind: TypeAdapter[Any] = ANY_JOB) -> None:
        """`rows`: those that will be read, with `JOB_PARTS`."""
        self._kind = kind
        self._bodies = _bodies(connection, {row.template_id for row in rows})
        self._devices = lanes.devices_of(connection, {row.lane_id for row in rows})
        self._jobs: dict[tuple[int, int], AnyJob] = {}

    def read(self, row: AnyRow) -> AnyJob:
        """The job of a row. Raises Unreadable, which names it."""
        return read_row(f"job {row.id}", lambda: self._read(row))

    def _read(self, row: AnyRow) -> AnyJob:
        key = (row.template_id, row.lane_id)
        if key not in self._jobs:
            content = json.loads(unpack(self._bodies[row.template_id]))
            if not isinstance(content, dict):
                raise ValueError("its template is no object")
            content |= {"block": row.block, "candidates": self._devices[row.lane_id]}
            self._jobs[key] = self._kind.validate_python(content)
        return self._jobs[key].with_block(row.block, row.id)


class Measured(NamedTuple):
    """The part of a job that tells what its figures mean."""

    cell: Cell
    mode: str


def measured(connection: Connection, wanted: Collection[int]) -> dict[int, Measured]:
    """Return what these templates measure; one that cannot be read is logged and left out."""
    found = _bodies(connection, wanted)
    read = {number: readable(f"template {number}", partial(_measured, body)) for number, body in found.items()}
    return {number: each for number, each in read.items() if each is not None}


def measured_of(connection: Connection, job_ids: Collection[str]) -> dict[str, Measured | None]:
    """Return what these jobs measure; None where that cannot be read, and without those that are not there."""
    if not job_ids:
        return {}
    numbers = {row.id: row.template_id for row in connection.execute(_TEMPLATES_OF, {"these": padded(job_ids)})}
    found = measured(connection, set(numbers.values()))
    return {job_id: found.get(number) for job_id, number in numbers.items()}


def _measured(body: bytes) -> Measured:
    content = json.loads(unpack(body))
    return Measured(ANY_CELL.validate_python(content["cell"]), str(content["sampling"]["mode"]))


def cells_of(connection: Connection, experiment_id: str) -> dict[str, Cell]:
    """The cells of an experiment, canaries too, by their ids; one that cannot be read is logged and left out."""
    mine = TEMPLATES.c.experiment == number_of(experiment_id)
    found = connection.execute(select(TEMPLATES.c.id, TEMPLATES.c.body).where(mine))
    return {cell.cell_id: cell for cell in readable_rows("template", found, lambda row: _cell(row.body))}


def _cell(body: bytes) -> Cell:
    return ANY_CELL.validate_python(json.loads(unpack(body))["cell"])


def _bodies(connection: Connection, templates: Collection[int]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for part in parts(templates):
        rows = connection.execute(_BODIES, {"these": part})
        found |= {row.id: row.body for row in rows}
    return found
