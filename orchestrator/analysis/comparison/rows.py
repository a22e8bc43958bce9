"""`SideRow`: one block as a comparison sees it, and as a saved baseline keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field, FiniteFloat

from orchestrator.analysis.figures import BlockFigures
from orchestrator.analysis.statistics import Mode, block_value_ms, newest_attempts, total_setup_ms
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome

NIGHT_GAP_S = 4 * 3600.0
"""A device that rests for longer begins another night."""

Value = int | float | str | bool


class SideRow(Model):
    """One block of one cell on one device."""

    device: str
    """What sides are matched by: the serial, or the name of both where devices tell the sides apart."""
    serial: str = ""
    """Of the phone; empty in an old baseline."""
    model: str = ""
    source: Source
    network: str
    backend: str
    precision: str
    options: dict[str, Value] = Field(default_factory=dict)
    night: str
    """Experiment, device, and number of the night: blocks of one share a boot, heat and the hour of the day."""
    round: int
    started_at: float
    ended_at: float
    problem: str = ""
    """Why the block does not count; then it has no values."""
    values: dict[str, FiniteFloat] = Field(default_factory=dict)
    """By metric, or `metric/basis` where figures of one metric do not compare: `energy/gauge device net`."""
    whole_ms: bool = False
    """Whether all times are whole milliseconds, so that they were rounded."""
    relative_energy: bool = False
    """The gain of the gauge is not known: energies compare on this device only."""
    first_example: int = 0
    right: str = ""
    """Of each example of the block's shard, `1` where the prediction is right; empty without labels."""
    provenance: dict[str, str] = Field(default_factory=dict)
    look: int = 0
    """Which judgement of the same cell in one night this is, from 1: each may spend a share of the errors only; 0: the
    only one."""


def rows_of(
    blocks: Iterable[BlockFigures],
    cells: Mapping[str, Cell],
    mode: Mode = "steady",
    labels: Sequence[int] | None = None,
) -> list[SideRow]:
    """Of each job the newest attempt. `labels`: the right class of each example, where the workload has a set."""
    work = [block for block in newest_attempts(blocks) if block.role == "work"]
    ordered = sorted(work, key=lambda block: (block.experiment_id, block.serial, block.started_at, block.token))
    nights = nights_of(ordered)
    return [
        _row(block, cells[block.cell_id], mode, labels, night) for block, night in zip(ordered, nights, strict=True)
    ]


def nights_of(ordered: Iterable[BlockFigures]) -> Iterator[str]:
    """The night of each block, of blocks in the order of experiments, devices and time."""
    number, device, free_at = 0, ("", ""), 0.0
    for block in ordered:
        here = block.experiment_id, block.serial
        number = 0 if here != device else number + (block.started_at - free_at > NIGHT_GAP_S)
        free_at = block.ended_at if here != device else max(free_at, block.ended_at)
        device = here
        yield f"{block.experiment_id}/{block.serial}/{number}"


def _row(block: BlockFigures, cell: Cell, mode: Mode, labels: Sequence[int] | None, night: str) -> SideRow:
    good = block.outcome is Outcome.OK
    return SideRow(
        device=block.serial,
        serial=block.serial,
        model=block.model,
        source=block.source,
        network=cell.workload.label,
        backend=str(cell.backend),
        precision=str(cell.precision),
        options=dict(cell.options),
        night=night,
        round=block.block,
        started_at=block.started_at,
        ended_at=block.ended_at,
        problem="" if good else ": ".join(filter(None, (block.outcome.value, block.cause))),
        values=dict(_values(block, mode)) if good else {},
        whole_ms=bool(block.times and block.times.whole),
        relative_energy=bool(block.energy and not block.energy.absolute),
        **(_answers(block, labels) if good and labels is not None else {}),
        provenance=_provenance(block),
    )


def _values(block: BlockFigures, mode: Mode) -> Iterator[tuple[str, float]]:
    if block.stream:
        if block.rate is not None:
            yield "throughput", block.rate.median_per_s
    elif (value := block_value_ms(block, mode)) is not None:
        yield "latency", value
    if block.setup_ns:
        yield f"setup/{'cached' if block.setup_cached else 'not cached'}", total_setup_ms(block)
    if (memory := block.memory) is not None:
        figures = {"device": memory.device_peak_bytes, "process": memory.vm_hwm_bytes, "pss": memory.pss_bytes}
        for basis, size_bytes in figures.items():
            if size_bytes:
                yield f"memory/{basis}", float(size_bytes)
    if (energy := block.energy) is not None:
        kind = f"{energy.source.value} {energy.scope.value} {energy.name}".strip()
        estimates = {"net": energy.per_inference_j, "gross": energy.gross_per_inference_j}
        told = next(((basis, each) for basis, each in estimates.items() if each is not None), None)
        if told is not None:
            yield f"energy/{told[0]} {kind}", told[1].value


def _answers(block: BlockFigures, labels: Sequence[int]) -> dict[str, int | str]:
    told = block.predictions
    if told is None:
        return {}
    right = "".join("01"[labels[told.first + place] == top[0]] for place, top in enumerate(told.top))
    return {"first_example": told.first, "right": right}


def _provenance(block: BlockFigures) -> dict[str, str]:
    facts = block.runs_on.facts if block.runs_on else None
    of = block.provenance
    found = {
        "OS build": of.fingerprint or block.fingerprint,
        "driver": f"{facts.device_name} {facts.driver}".strip() if facts else "",
        "agent": f"{of.agent_version} {of.agent_sha256[:12]}".strip(),
        "farm": of.farm_version,
        "model file": of.model_sha256[:12],
        "plan": of.plan_hash,
    }
    return {name: text for name, text in found.items() if text}
