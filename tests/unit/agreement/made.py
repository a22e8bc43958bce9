"""Experiments with a set, and records with predictions for it, made to order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.analysis.agreement import Agreement, agreements
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Dataset, DeviceChoice, Experiment, Matrix, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Outcome, Predictions, Record
from orchestrator.spec.expansion.expand import Expansion, expand
from tests.unit.orchestrator import make
from tests.unit.report.records import Whole, built, figures

SHARD = 10
PRECISIONS = (Precision.FP32, Precision.FP16)


def experiment(size: int = 25, count: Any = "all", labels_sha256: str | None = None, **axes: Any) -> Experiment:
    dataset = Dataset(inputs="x.npy", shard=SHARD, size=size, inputs_sha256="0" * 64, labels_sha256=labels_sha256)
    return make.experiment(
        name="set",
        workload=Workload(network="lenet", dataset=dataset),
        devices=DeviceChoice(count=count),
        matrix=Matrix(**{"backend": (Api.CPU,), "precision": (Precision.FP16, Precision.FP32), **axes}),
        sampling=Sampling(blocks=-(-size // SHARD), samples=1, warmup=0),
    )


def expanded(of: Experiment, *serials: str, name: str = "set-1") -> Expansion:
    apis = (make.api(Api.CPU, *PRECISIONS), make.api(Api.OPENCL, *PRECISIONS))
    return expand(of, name, [make.device(serial, *apis) for serial in serials or ("A",)])


def predictions(job: Job, classes: Sequence[int], margins: Sequence[float] = ()) -> Predictions:
    """`classes`, `margins`: of the whole set; the five best classes follow each other."""
    examples = job.examples or range(0)
    return Predictions(
        first=examples.start,
        top=tuple(tuple((classes[place] + rank) % 1000 for rank in range(5)) for place in examples),
        margins=tuple(margins[place] if margins else 1.0 for place in examples),
    )


def record(job: Job, classes: Sequence[int], *, attempt: int = 1, token: int = 1, **more: Any) -> Record:
    margins = more.pop("margins", ())
    told = predictions(job, classes, margins) if more.get("outcome", Outcome.OK) is Outcome.OK else None
    serial = more.pop("serial", job.candidates[0])
    return make.record(job, attempt=attempt, token=token, serial=serial, predictions=told, **more)


def records(jobs: Sequence[Job], classes: dict[Precision, Sequence[int]]) -> list[Record]:
    """Every block went well, with these predictions by precision."""
    return [record(job, classes[job.cell.precision]) for job in jobs]


def cells(jobs: Sequence[Job]) -> dict[str, Cell]:
    return {job.cell.cell_id: job.cell for job in jobs}


def content(size: int = 300) -> Whole:
    """A report's content: two phones, on which half precision changes predictions with a small margin."""
    of = experiment(size)
    jobs = expanded(of, "galaxy-s7-1", "galaxy-s7-2").jobs
    margins = [0.01 * (1 + place % 50) for place in range(size)]
    classes = {
        precision: [place + (precision is Precision.FP16 and margins[place] < 0.03) for place in range(size)]
        for precision in PRECISIONS
    }
    found = [record(job, classes[job.cell.precision], margins=margins) for job in jobs]
    return built("set-1", of, cells=cells(jobs), records=found, outcomes={}, labels=classes[Precision.FP32], now=1e9)


def agreement(
    of: Experiment, jobs: Sequence[Job], found: Sequence[Record], labels: Sequence[int] | None = None, base: str = ""
) -> Agreement:
    (one,) = agreements(figures(found, cells(jobs)), cells(jobs), of, labels, base)
    return one
