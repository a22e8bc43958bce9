"""One summary per cell and device: what was measured, how precisely, and what casts a doubt on it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from pydantic import Field

from orchestrator.figures import QUANTITIES, BlockFigures, LayerTime, Times, times_of
from orchestrator.figures.brief import Brief
from orchestrator.figures.one_block import version_of
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.job import Cell, labels_of
from orchestrator.model.record import ConditionProof, Doubt, LayerMemory, Outcome, Record, RunsOn

from .effect import Effect, detectable
from .energies import EnergyPerInference, EnergyUse, energy_doubts, energy_uses, reported_energy
from .latency import Latency, latency
from .modes import ColdStart, Mode, Throttling, block_value_ms, cold_start, throttling
from .resources import (
    MemoryUse,
    Other,
    device_ms,
    layer_medians,
    memory_medians,
    other_medians,
    planned_memory,
)
from .same_plan import same_plan_doubts
from .serial import alike_doubt
from .setup import SetupUse, setup_uses
from .spread import Spread, sessions_doubt, spread
from .stability import Stability, stability
from .throughput import Throughput, throughput

Attempt = TypeVar("Attempt", Record, BlockFigures, Brief)


class InvalidReason(Model):
    """A reason why blocks of a cell do not count."""

    code: str
    blocks: int
    detail: str
    """The detail of the first of them."""


class Summary(Model):
    """One cell on one device."""

    serial: str
    model: str
    profile: str
    """The profile of a virtual phone; empty elsewhere."""
    source: Source
    cell_id: str
    label: str
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """Further axes of the cell, by name."""
    workload: str
    sample: str = "inference"
    """The noun of what is timed: `inference`, `answer` where tokens are told, `epoch`."""
    engine: str
    """The engine that ran it; empty: somebody else measured, and did not say."""
    version: str = ""
    """The engine's version, or its build, in the newest block that went well; empty where none did."""
    backend: str
    precision: str
    runs_on: RunsOn | None
    """Driver and device that really ran; None where no block got that far."""
    outcomes: dict[Outcome, int]
    """The outcomes of each block's attempt that counts: the one with the newest token."""
    blocks: int
    """Blocks with a record."""
    latency: Latency | None
    """None where no block went well, and of streams, whose samples are no latencies."""
    throughput: Throughput | None = None
    """The throughput, where a sample has several frames."""
    setup: tuple[SetupUse, ...] = ()
    """Apart for each kind of start that its blocks had."""
    layers: tuple[LayerTime, ...] = ()
    device_ms: float | None = None
    """Median over blocks of a whole profiled pass, which is not the sum of the layers' medians."""
    memory: MemoryUse | None = None
    others: dict[str, Other] = Field(default_factory=dict)
    """The quantities without figures of their own, by name."""
    planned: tuple[LayerMemory, ...] = ()
    """Memory while each layer runs, by the plan (not measured)."""
    stability: Stability | None = None
    spread: Spread | None = None
    """The spread of the figure by samples, blocks and sessions, and which of them to repeat."""
    detectable: Effect | None = None
    """Difference in ms from this cell that another, as noisy and with as many blocks, must have to be told apart."""
    energy: tuple[EnergyUse, ...] = ()
    """One per source of power, that of most blocks first; they are never compared with each other."""
    energy_per_inference: EnergyPerInference | None = None
    """The energy of the first source, net or gross as it says: the figure that every table and chart shows."""
    cold: ColdStart | None = None
    """The cold start, in mode `cold`."""
    throttling: Throttling | None = None
    """The slow-down under load, in mode `sustained`."""
    conditions: tuple[ConditionProof, ...] = ()
    """The proof of each condition by the block that proved it least."""
    invalid: tuple[InvalidReason, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    """Every doubt of any block, once."""
    reasons: tuple[str, ...] = ()
    """The reasons why blocks did not go well, each once."""


def summarise(
    blocks: Iterable[BlockFigures], cells: Mapping[str, Cell], mode: Mode = "steady", *, watched: bool = False
) -> list[Summary]:
    """One summary per device, source and cell, ordered by device, workload, backend and precision; no canaries.

    `cells`: the experiment's cells by id. Of several attempts at a block the newest counts. `watched`: whether blocks
    were added until intervals were narrow. The same blocks give the same numbers, in whatever order they come.
    """
    work = [block for block in newest_attempts(blocks) if block.role == "work"]
    keyed = sorted(work, key=lambda r: (*_group(r), r.block, r.token))
    same, labels = same_plan_doubts(work, cells), labels_of(cells)
    summaries = [
        _summary(list(group), cells[key[2]], labels[key[2]], mode, same.get(key), watched=watched)
        for key, group in groupby(keyed, key=_group)
    ]
    return sorted(
        summaries,
        key=lambda s: (s.serial, s.source, _natural(s.workload), s.backend, s.precision, _order(cells[s.cell_id])),
    )


def _order(cell: Cell) -> list[tuple[str, int]]:
    """Key that sorts cells by the values of their options: sizes by their bytes, not as a label words them."""
    return _natural(" ".join(f"{name}={value}" for name, value in sorted(cell.options.items())))


def _natural(label: str) -> list[tuple[str, int]]:
    """Key that sorts `granularity=4` before `granularity=12`, and `matmul_64` before `matmul_256`."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", label)]


def _group(block: BlockFigures) -> tuple[str, str, str]:
    return block.serial, block.source.value, block.cell_id


def newest_attempts(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempt with the newest token of each job."""
    newest: dict[str, Attempt] = {}
    for attempt in attempts:
        known = newest.get(attempt.job_id)
        if known is None or attempt.token > known.token:
            newest[attempt.job_id] = attempt
    return list(newest.values())


def _summary(
    blocks: Sequence[BlockFigures], cell: Cell, label: str, mode: Mode, same_plan: Doubt | None, *, watched: bool
) -> Summary:
    first = blocks[0]
    good = [block for block in blocks if block.outcome is Outcome.OK]
    in_time = sorted(good, key=lambda block: (block.started_at, block.token))
    times = [block.times for block in in_time if block.times]
    values = [value for block in in_time if (value := block_value_ms(block, mode)) is not None]
    found = spread(in_time, lambda block: block_value_ms(block, mode))
    of_cell = [doubt for doubt in (same_plan, alike_doubt(values), sessions_doubt(found)) if doubt is not None]
    all_doubts = [doubt for block in blocks for doubt in block.doubts] + of_cell
    energy, others = energy_uses(in_time, watched=watched), other_medians(in_time, watched=watched)
    answers = any(QUANTITIES[name].table == "tokens" for name in others)
    return Summary(
        serial=first.serial,
        model=first.model,
        profile=first.profile,
        source=first.source,
        cell_id=first.cell_id,
        label=label,
        options=dict(cell.options),
        workload=cell.workload.label,
        sample="answer" if answers else cell.workload.sample,
        engine=cell.engine,
        version=version_of(in_time[-1]) if in_time else "",
        backend=str(cell.backend),
        precision=str(cell.precision),
        runs_on=next((block.runs_on for block in (*good, *blocks) if block.runs_on), None),
        outcomes=dict(Counter(block.outcome for block in blocks)),
        blocks=len(blocks),
        latency=None if any(block.stream for block in good) else latency(times, watched=watched),
        throughput=throughput(in_time, cell, watched=watched),
        setup=setup_uses(good, cell, cold=mode == "cold"),
        layers=layer_medians(good),
        device_ms=device_ms(good),
        memory=memory_medians(good),
        others=others,
        planned=planned_memory(blocks),
        stability=stability(times if mode == "steady" else _alone(values)) if good else None,
        spread=found,
        detectable=detectable(values, values),
        energy=energy,
        energy_per_inference=reported_energy(energy),
        cold=cold_start(in_time, watched=watched) if mode == "cold" else None,
        throttling=throttling(good) if mode == "sustained" else None,
        conditions=_least_proven(blocks),
        invalid=_invalid_reasons(blocks),
        doubts=tuple({(d.code, d.detail): d for d in (*all_doubts, *energy_doubts(good))}.values()),
        reasons=tuple(dict.fromkeys(reason for block in blocks for reason in block.reasons)),
    )


def _alone(values: Sequence[float]) -> list[Times]:
    """Return times of blocks that are told by one value each."""
    return [times for value in values if (times := times_of([value])) is not None]


def _least_proven(blocks: Iterable[BlockFigures]) -> tuple[ConditionProof, ...]:
    """Return one proof of each condition: of a block that lacks it, or did not put it back, where there is one."""
    found: dict[str, ConditionProof] = {}
    for block in blocks:
        for proof in block.conditions:
            known = found.get(proof.name)
            if known is None or _rank(proof) < _rank(known):
                found[proof.name] = proof
    return tuple(found.values())


def _rank(proof: ConditionProof) -> tuple[bool, bool]:
    return proof.proven, proof.restored is not False


def _invalid_reasons(blocks: Iterable[BlockFigures]) -> tuple[InvalidReason, ...]:
    """Codes of the blocks that do not count, the most frequent first."""
    found: dict[str, list[str]] = {}
    for block in blocks:
        if block.outcome is Outcome.INVALID:
            for code, detail in {i.code.value: i.detail for i in block.invalid}.items() or ((block.cause, ""),):
                found.setdefault(code, []).append(detail)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(InvalidReason(code=code, blocks=len(details), detail=details[0]) for code, details in ordered)
