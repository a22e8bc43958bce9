"""The limits of a device that a search found: the largest value that ran, the smallest that did not, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.experiment import Experiment, LimitSearch, Workload
from orchestrator.model.job import Cell

from .ended import Ended, ended
from .search import stand


class Probe(Model):
    """One value that was tried."""

    value: int
    ended: Ended
    cause: str = ""
    reason: str = ""
    """A reason for people: which limit, by how much; of a kill what the device's log says."""
    median_ms: float | None = None
    """The median of an inference, or of an epoch of each stage of a training; None where it did not run."""
    weights: int | None = None
    """Weights and biases of the network; of a built-in one."""


class Limit(Model):
    """The answer for one cell on one device."""

    serial: str
    source: Source
    label: str
    """The label of the cell, without the dimension."""
    dimension: str
    largest: Probe | None
    """The largest value that ran, below all that did not; None: nothing ran."""
    smallest: Probe | None
    """The smallest value that did not run; None: everything did, up to the most that is tried."""
    probes: tuple[Probe, ...]
    """The probes by value."""
    over: bool
    """True if the search has ended with an answer as near as was asked for."""
    stopped: bool = False
    """True if it has ended without an answer."""
    consistent: bool
    """False: a value ran that is larger than one that did not, as where something else took the memory."""


def limits(experiment: Experiment, blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> tuple[Limit, ...]:
    """The answers of a search, as far as they are known. `blocks`: of each job the attempt that counts."""
    choice = experiment.strategy
    if choice is None or choice.limit_search is None:
        return ()
    search = choice.limit_search
    series: dict[tuple[str, str], list[BlockFigures]] = {}
    for block in blocks:
        if block.role == "work":
            series.setdefault((block.serial, cells[block.cell_id].at(search.dimension, 1).cell_id), []).append(block)
    return tuple(_limit(search, own, cells) for _, own in sorted(series.items()))


def _limit(search: LimitSearch, blocks: list[BlockFigures], cells: Mapping[str, Cell]) -> Limit:
    ends: dict[int, list[Ended]] = {}
    probes = sorted(
        (_probe(block, cells[block.cell_id], search.dimension) for block in blocks), key=lambda one: one.value
    )
    for probe in probes:
        ends.setdefault(probe.value, []).append(probe.ended)
    stands = stand(search, ends)
    high = min(stands.not_run, default=None)
    low = max((value for value in stands.ran if high is None or value < high), default=None)
    ran = {probe.value: probe for probe in probes if probe.ended == "ran"}
    others = {probe.value: probe for probe in probes if probe.ended in ("refused", "killed")}
    cell = cells[blocks[0].cell_id]
    return Limit(
        serial=blocks[0].serial,
        source=blocks[0].source,
        label=_without(cell, search.dimension.partition(".")[0]),
        dimension=search.dimension,
        largest=None if low is None else _weighed(ran[low], cell, search.dimension),
        smallest=None if high is None else _weighed(others[high], cell, search.dimension),
        probes=tuple(probe for probe in probes if probe.ended not in ("lost", "cancelled")),
        over=stands.found,
        stopped=stands.stopped_at is not None,
        consistent=high is None or max(stands.ran, default=0) < high,
    )


def _without(cell: Cell, name: str) -> str:
    """Its label without an axis, or without a parameter of its network."""
    sizes = {each: value for each, value in cell.workload.parameters.items() if each != name}
    options = {each: value for each, value in cell.options.items() if each != name}
    workload = cell.workload.model_copy(update={"parameters": sizes})
    return cell.model_copy(update={"workload": workload, "options": options}).label


def _probe(block: BlockFigures, cell: Cell, dimension: str) -> Probe:
    how, whole = ended(block.outcome, block.cause), block.trained and block.trained.whole
    ms = whole.epoch_ms if whole else block.times.median_ms if block.times else None
    return Probe(
        value=cell.value(dimension),
        ended=how,
        cause=block.cause,
        reason=next(iter(block.reasons), ""),
        median_ms=ms if how == "ran" else None,
    )


def _weighed(probe: Probe, cell: Cell, dimension: str) -> Probe:
    return probe.model_copy(update={"weights": weights_of(cell.at(dimension, probe.value).workload)})


def weights_of(workload: Workload) -> int | None:
    """Weights and biases of a built-in network. Of 784-N-250-10: 785 N + (N + 1) 250 + 251 10, study A's formula."""
    from kernels.frontend.load import load_workload

    if workload.network is None:
        return None
    graph = load_workload(network=workload.network, onnx=None, seed=None, sizes=workload.parameters)
    return sum(prod(array.shape) for array in graph.constants.values())
