"""`SideRow`: one block as a comparison sees it, and as a saved baseline keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from pydantic import FiniteFloat

from orchestrator.analysis.statistics import Mode, newest_attempts
from orchestrator.analysis.statistics.setup import start_kind
from orchestrator.figures import BlockFigures
from orchestrator.figures.brief import Brief
from orchestrator.model.base import STRICT
from orchestrator.model.device import Source
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome

NIGHT_GAP_S = 4 * 3600.0
"""A device that rests for longer begins another night."""

LATENCY_BASIS: Mapping[Mode, str] = {"steady": "", "cold": "cold start", "sustained": "sustained load"}
"""The basis that tells latencies of blocks of different modes apart."""


def time_of(mode: Mode, *, trains: bool) -> str:
    """Name of a block's time: modes answer different questions, and an epoch of a training is no inference."""
    return "/".join(filter(None, ("latency", "epoch" if trains else LATENCY_BASIS[mode])))


Value = int | float | str | bool


@dataclass(slots=True, kw_only=True)
class SideRow:
    """One block of one cell on one device. No model, and not frozen, because a comparison makes a hundred thousand of
    them, and a frozen one takes more than twice as long; nobody changes one. Those of a file are checked like a model.
    """

    __pydantic_config__ = STRICT

    device: str
    """The key by which sides are matched: the serial, or the name of both where devices tell the sides apart."""
    serial: str = ""
    """The phone's serial; empty in an old baseline."""
    model: str = ""
    source: Source
    network: str
    backend: str
    precision: str
    options: dict[str, Value] = field(default_factory=dict)
    night: str
    """Experiment, device, and number of the night: blocks of one share a boot, heat and the hour of the day."""
    round: int
    started_at: float
    ended_at: float
    problem: str = ""
    """The reason why the block does not count; then it has no values."""
    excluded: str = ""
    """The reason why there is no block: the cell was excluded from this device beforehand."""
    values: dict[str, FiniteFloat] = field(default_factory=dict)
    """Figures by metric, or `metric/basis` where figures of one metric do not compare: `energy/gauge device net`."""
    uncertainties: dict[str, list[FiniteFloat]] = field(default_factory=dict)
    """Uncertainties of an energy: what repetition makes smaller, and what not. An energy that `values` lacks is
    void: its load was too short."""
    watched: bool = False
    """True if blocks were added until intervals were narrow."""
    time: str = "latency"
    """Name among `values` of what it times, with its mode; in a baseline of an older version always this."""
    whole_ms: bool = False
    """True if all times are whole milliseconds, so that they were rounded."""
    relative_energy: bool = False
    """The gain of the gauge is not known: energies compare on this device only."""
    first_example: int = 0
    right: str = ""
    """A character for each example of the block's shard, `1` where the prediction is right; empty without labels."""
    provenance: dict[str, str] = field(default_factory=dict)
    canaries_ms: dict[str, FiniteFloat] = field(default_factory=dict)
    """Median time of the canaries of its night on its device, by their cell: what the phone itself did."""
    look: int = 0
    """The number of this judgement of the same cell in one night, from 1: each may spend a share of the errors only;
    0: the only one."""

    def figures(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        """Its fields that hold figures, with those of these names alone."""
        held: dict[str, dict[str, Any]] = {"values": self.values, "uncertainties": self.uncertainties}
        return {field: {name: of for name, of in own.items() if wanted(name)} for field, own in held.items()}


class Answers(NamedTuple):
    """The answers of a block to a set of examples, as a row tells them."""

    first_example: int
    right: str


def rows_of(
    blocks: Iterable[Brief],
    cells: Mapping[str, Cell],
    mode: Mode = "steady",
    answers: Mapping[int, Answers] | None = None,
    *,
    watched: bool = False,
) -> list[SideRow]:
    """Return a row for each job's newest attempt. `answers`: by token, where the workload has a set with labels.
    `watched`: whether blocks were added until intervals were narrow."""
    newest = newest_attempts(blocks)
    ordered = sorted(newest, key=lambda block: (block.experiment_id, block.serial, block.started_at, block.token))
    placed = list(zip(ordered, nights_of(ordered), strict=True))
    known, canaries = {cell_id: _CellText.of(cell, mode) for cell_id, cell in cells.items()}, _canaries_ms(placed)
    rows = [
        _row(block, known[block.cell_id], mode, (answers or {}).get(block.token), night)
        for block, night in placed
        if block.role == "work"
    ]
    for row in rows:
        row.canaries_ms, row.watched = canaries.get(row.night, {}), watched
    return rows


def _canaries_ms(placed: Iterable[tuple[Brief, str]]) -> dict[str, dict[str, float]]:
    """Return the median times of canaries, by night and cell."""
    found: dict[str, dict[str, list[float]]] = {}
    for block, night in placed:
        if block.role == "canary" and block.outcome == Outcome.OK and block.median_ms is not None:
            found.setdefault(night, {}).setdefault(block.cell_id, []).append(block.median_ms)
    return {night: {cell: median(times) for cell, times in own.items()} for night, own in found.items()}


def excluded_rows(exclusions: Iterable[Exclusion], rows: Sequence[SideRow]) -> list[SideRow]:
    """A row without values for each cell that was excluded beforehand from a device that these rows know."""
    known = {row.device: row for row in rows}
    return [
        SideRow(
            device=each.serial, serial=each.serial, model=of.model, source=of.source, network=each.workload,
            backend=each.backend, precision=each.precision, options=each.options, night="", round=0, started_at=0.0,
            ended_at=0.0, excluded=each.reason, time=of.time,
        )
        for each in exclusions
        if each.workload and (of := known.get(each.serial)) is not None
    ]  # fmt: skip


def answers_of(blocks: Iterable[BlockFigures], labels: Sequence[int]) -> dict[int, Answers]:
    """Return the answers of blocks read with their predictions, by token. `labels`: the right class of each example."""
    told = {block.token: block.predictions for block in blocks if block.predictions is not None}
    return {
        token: Answers(
            each.first,
            "".join("01"[labels[each.first + place] == top[0]] for place, top in enumerate(each.top)),
        )
        for token, each in told.items()
    }


def nights_of(ordered: Iterable[Brief | BlockFigures]) -> Iterator[str]:
    """The night of each block, of blocks in the order of experiments, devices and time."""
    number, device, free_at = 0, ("", ""), 0.0
    for block in ordered:
        here = block.experiment_id, block.serial
        number = 0 if here != device else number + (block.started_at - free_at > NIGHT_GAP_S)
        free_at = block.ended_at if here != device else max(free_at, block.ended_at)
        device = here
        yield f"{block.experiment_id}/{block.serial}/{number}"


class _CellText(NamedTuple):
    network: str
    backend: str
    precision: str
    options: dict[str, Value]
    latency: str
    starts: dict[str, str]
    """Names of set-ups: a block knows whether it found kept programs, its cell what it is without."""

    @staticmethod
    def of(cell: Cell, mode: Mode) -> _CellText:
        latency = time_of(mode, trains=cell.workload.training is not None)
        found = {False: "setup/not cached", True: "setup/cached"}
        starts = {name: f"setup/{start_kind(cell, cold=mode == 'cold', cached=has)}" for has, name in found.items()}
        return _CellText(
            cell.workload.label, str(cell.backend), str(cell.precision), dict(cell.options), latency, starts
        )


def _row(block: Brief, cell: _CellText, mode: Mode, answers: Answers | None, night: str) -> SideRow:
    good = block.outcome == Outcome.OK
    latency = block.first_result_ms if mode == "cold" else block.median_ms
    values = {cell.starts.get(name, name): value for name, value in block.values.items()}
    return SideRow(
        device=block.serial,
        serial=block.serial,
        model=block.model,
        source=Source(block.source),
        network=cell.network,
        backend=cell.backend,
        precision=cell.precision,
        options=cell.options,
        night=night,
        round=block.block,
        started_at=block.started_at,
        ended_at=block.ended_at,
        problem="" if good else ": ".join(filter(None, (block.outcome, block.cause))),
        values=values if latency is None else {cell.latency: latency, **values},
        uncertainties=block.uncertainties,
        time=cell.latency,
        whole_ms=block.whole_ms,
        relative_energy=block.relative_energy,
        first_example=answers.first_example if answers and good else 0,
        right=answers.right if answers and good else "",
        provenance=block.provenance,
    )
