"""The ranking: which engine is fastest, by device and model, over many experiments; the newest figures count. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import isfinite

from orchestrator.analysis.statistics import EnergyPerInference, Latency, Summary, newest_attempts, summarise
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell

SKIPPED = ("wait",)
"""Workloads that compute nothing."""


class Ranked(Model):
    """The newest figure of one engine and version on one device, with one model, backend and precision."""

    device: str
    source: Source
    phone: str
    """The device's model."""
    model: str
    """The network, the ONNX file or the command that ran."""
    engine: str
    version: str
    backend: str
    precision: str
    configuration: str
    """The fastest of several configurations in the experiment, as results name it."""
    latency: Latency
    energy: EnergyPerInference | None
    verified: bool
    """True if the outputs of every block were compared with a reference, and agreed."""
    experiment_id: str
    experiment: str
    measured_at: float
    """Unix time of the start of its newest block."""

    @property
    def key(self) -> tuple[str, ...]:
        """Return what it is the figure of."""
        named = (self.model, self.device, self.source.value, self.engine, self.version, self.backend, self.precision)
        return tuple(map(str, named))

    @property
    def ms(self) -> float:
        """Return its latency, infinite where that is not resolved."""
        return float("inf") if self.latency.median_ms is None else self.latency.median_ms

    @property
    def joules(self) -> float:
        """Return its energy, infinite where none is told."""
        value = self.energy.figure_j.value if self.energy else None
        return float("inf") if value is None else value


def is_ranked(experiment: Experiment) -> bool:
    """Return whether an experiment times inferences one by one: no training, answers, cold start or sustained load."""
    of = experiment.workload
    return experiment.sampling.mode == "steady" and of.sample == "inference" and of.kind not in SKIPPED


def ranked_of(
    experiment_id: str, experiment: Experiment, cells: Mapping[str, Cell], blocks: Iterable[BlockFigures]
) -> list[Ranked]:
    """Return what one experiment adds to the ranking, the fastest configuration of each key."""
    if not is_ranked(experiment):
        return []
    newest = newest_attempts(blocks)
    began: dict[tuple[str, str, str], float] = {}
    for block in newest:
        place = block.serial, block.source.value, block.cell_id
        began[place] = max(began.get(place, 0.0), block.started_at)
    summaries = summarise(newest, cells, watched=experiment.sampling.is_watched)
    found = [
        _ranked(each, experiment_id, experiment.name, began[each.serial, each.source.value, each.cell_id])
        for each in summaries
        if each.latency
    ]
    return [min(own, key=lambda each: each.ms) for own in _by_key(found)]


def ranking(
    found: Iterable[Ranked], where: Mapping[str, str] | None = None, *, by_energy: bool = False
) -> list[Ranked]:
    """Return the newest of each key that is resolved, model by model, the fastest first; or that of the least energy.

    `where`: the value by name of field that rows must have.
    """
    newest = [max(own, key=lambda each: (isfinite(each.ms), each.measured_at)) for own in _by_key(found)]
    kept = [each for each in newest if all(str(getattr(each, name)) == text for name, text in (where or {}).items())]
    return sorted(kept, key=lambda each: (each.model, each.joules if by_energy else 0.0, each.ms, each.key))


def _by_key(found: Iterable[Ranked]) -> Iterable[list[Ranked]]:
    ordered = sorted(found, key=lambda each: each.key)
    return [list(own) for _, own in groupby(ordered, key=lambda each: each.key)]


def _ranked(of: Summary, experiment_id: str, experiment: str, at: float) -> Ranked:
    assert of.latency is not None
    return Ranked(
        device=of.serial,
        source=of.source,
        phone=of.model,
        model=of.workload,
        engine=of.engine,
        version=of.version,
        backend=of.backend,
        precision=of.precision,
        configuration=of.label,
        latency=of.latency,
        energy=of.energy_per_inference,
        verified=bool(of.engine) and of.source is not Source.IMPORT and not any(d.is_unchecked for d in of.doubts),
        experiment_id=experiment_id,
        experiment=experiment,
        measured_at=at,
    )
