"""A run as it is kept, and what is asked of it: the list, and one run with its figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from orchestrator.ledger import Ledger, QueueRun
from orchestrator.ledger.packed import readable_rows
from orchestrator.model.base import Model
from orchestrator.model.device import DeviceFacts, DeviceState
from orchestrator.model.errors import Unreadable
from orchestrator.model.record import ConditionProof
from orchestrator.model.telemetry import Reading
from orchestrator.queueing.experiment import as_data
from orchestrator.queueing.measures import measure
from orchestrator.queueing.requests import Course, Requests, Run
from orchestrator.queueing.spec import QueueingSpec

from .columns import plain_parquet, unpack_readings, unpack_requests

OVERHEAD_PARTS = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}


class KeptServer(Model):
    """The device that played a server, as it was found and left."""

    server: str
    """Its name in the spec's order, e.g. `phone-2`."""
    device: DeviceFacts
    agent_sha256: str
    plans: dict[str, str] = Field(default_factory=dict)
    """Network -> hash of its plan."""
    expected_s: dict[str, float] = Field(default_factory=dict)
    """Network -> mean time of an inference before the run."""
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    conditions: tuple[ConditionProof, ...] = ()
    ended_by: str = ""
    """The reason that ended it before its time; empty: nothing."""


class KeptCourse(Model):
    """One replication: all of it but its requests."""

    began_at: float
    """Unix time."""
    duration_s: float
    waited_s: float
    at: tuple[float, ...]
    waiting: tuple[int, ...]
    waiting_s: tuple[float, ...]
    busy_s: tuple[tuple[float, ...], ...]
    temp_c: tuple[tuple[float | None, ...], ...]
    energy_j: tuple[float, ...] = ()
    overhead_s: dict[str, float] = Field(default_factory=dict)
    """The overhead of the dispatcher for a request: mean and quantiles."""
    doubts: tuple[str, ...] = ()

    def run(self, requests: Requests) -> Run:
        course = Course(
            list(self.at), list(self.waiting), list(self.waiting_s), [list(each) for each in self.busy_s],
            [list(each) for each in self.temp_c], list(self.energy_j),
        )  # fmt: skip
        return Run(requests, course, self.duration_s, self.waited_s, 0, None, self.doubts)


class KeptRun(Model):
    """The kept part of a run beside its requests and readings."""

    schema_version: int = 1
    spec: QueueingSpec
    servers: tuple[KeptServer, ...]
    runs: tuple[KeptCourse, ...]


@dataclass(frozen=True)
class Read:
    """A run as it was read: `runs` can be measured like those that have just ended."""

    row: QueueRun
    kept: KeptRun
    runs: list[Run]
    readings: list[tuple[int, Reading]]
    """Server and reading."""


def list_runs(ledger: Ledger, name: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """The answer of `farm queue list`: the newest first."""
    return readable_rows("queueing run", ledger.queue_runs.listed(name, limit), _listed)


def _listed(row: QueueRun) -> dict[str, Any]:
    own = {"id": row.id, "name": row.name, "began_at": row.began_at, "source": row.source, "requests": row.requests}
    return own | dict(json.loads(row.summary))


def read_run(ledger: Ledger, name: str) -> Read:
    """Return a run by id, experiment's name or `latest`. Raises UnknownName, Unreadable."""
    row = ledger.queue_runs.find(name)
    body = ledger.queue_runs.body(row.id)
    try:
        kept = KeptRun.model_validate_json(body.about)
        tables = unpack_requests(body.requests, len(kept.runs))
        readings = unpack_readings(body.readings)
        runs = [course.run(Requests(rows)) for course, rows in zip(kept.runs, tables, strict=True)]
    except (ValueError, KeyError, TypeError, OSError) as e:
        raise Unreadable(
            f"queueing run {row.id} cannot be read: {e}", remedy="`farm ledger check` tells more; restore a copy"
        ) from e
    return Read(row, kept, runs, readings)


def data_of(read: Read) -> dict[str, Any]:
    """The answer of `farm queue show`: figures measured anew from the requests."""
    kept = read.kept
    return {
        "id": read.row.id,
        "began_at": read.row.began_at,
        **as_data(kept.spec, measure(kept.spec, read.runs), source=read.row.source),
        "servers": [each.model_dump(mode="json") for each in kept.servers],
        "dispatcher_overhead_s": [each.overhead_s for each in kept.runs],
        "travel_s": _parts(np.concatenate([each.requests.done.column("travel_s") for each in read.runs])),
    }


def as_parquet(read: Read) -> bytes:
    """All requests of a run, for other programs."""
    servers, classes = [each.server for each in read.kept.servers], [each.name for each in read.kept.spec.classes]
    return plain_parquet([each.requests.rows for each in read.runs], servers, classes)


def overhead_of(run: Run) -> dict[str, float]:
    return _parts(run.overhead_s) if run.overhead_s is not None else {}


def _parts(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    if not len(values):
        return {}
    return {"mean": float(values.mean())} | {
        name: float(np.quantile(values, share)) for name, share in OVERHEAD_PARTS.items()
    }
