"""`Brief`: what a comparison needs of a block, in few words: tables of thousands of cells are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.model.base import like
from orchestrator.model.record import Outcome

from .block import BlockFigures, Value
from .one_block import first_result_ms, frames_per_s, is_short, total_setup_ms, uncertainty, void_of
from .quantities import QUANTITIES

BATTERY_CYCLES = "battery cycles"
_OK = Outcome.OK  # members of an enum are slow to look up


class Brief(NamedTuple):
    """One block of one cell on one device, in one attempt."""

    experiment_id: str
    job_id: str
    cell_id: str
    serial: str
    source: str
    outcome: str
    started_at: float
    token: int
    block: int
    role: str
    model: str
    ended_at: float
    cause: str
    median_ms: float | None
    """The median of the latency; None of a stream, and of a block that did not go well."""
    first_result_ms: float | None
    """The time from a fresh process to its first result; None where `median_ms` is."""
    whole_ms: bool
    relative_energy: bool
    values: dict[str, float]
    """The other figures, by metric and basis."""
    uncertainties: dict[str, list[float]]
    """Uncertainties of an energy: what repetition makes smaller, and what not. An energy that `values` lacks is
    void: its load was too short."""
    provenance: dict[str, str]


COLUMNS = Brief._fields[: Brief._fields.index("token")]
"""Fields that a row of figures has columns for."""


def brief_of(block: BlockFigures) -> Brief:
    good = block.outcome is _OK
    energies, void = (dict(_energies(block)), void_of(block)) if good else ({}, frozenset())
    timed = good and not block.stream and block.times is not None
    return like(
        Brief,
        block,
        source=str(block.source),
        outcome=str(block.outcome),
        median_ms=block.times.median_ms if timed and block.times else None,
        first_result_ms=first_result_ms(block) if timed else None,
        whole_ms=bool(block.times and block.times.whole),
        relative_energy=bool(block.energy and not block.energy.absolute),
        values={name: value for name, value in _values(block, energies) if name not in void} if good else {},
        uncertainties={name: list(uncertainty(*each)) for name, each in energies.items()} | {name: [] for name in void},
        provenance=_provenance(block),
    )


def _values(block: BlockFigures, energies: dict[str, tuple[Value, float]]) -> Iterator[tuple[str, float]]:
    if block.stream and (rate := frames_per_s(block)) is not None:
        yield "throughput", rate
    if block.setup_ns:
        yield f"setup/{'cached' if block.setup_cached else 'not cached'}", total_setup_ms(block)
    if (memory := block.memory) is not None:
        figures = {"device": memory.device_peak_bytes, "process": memory.vm_hwm_bytes, "pss": memory.pss_bytes}
        for basis, size_bytes in figures.items():
            if size_bytes:
                yield f"memory/{basis}", float(size_bytes)
    known = ((QUANTITIES.get(name), name, value) for name, value in block.values.items())
    yield from ((name, value) for of, name, value in known if of and of.margin is not None)  # other versions know more
    if block.energy is not None and not is_short(block.energy):
        yield from ((name, estimate.value) for name, (estimate, _) in energies.items())


def _energies(block: BlockFigures) -> Iterator[tuple[str, tuple[Value, float]]]:
    """Net, or where the block did not rest gross, with the uncertainty of its gain."""
    if (energy := block.energy) is None:
        return
    kind = f"{energy.source.value} {energy.scope.value} {energy.name}".strip()
    if (estimate := energy.per_inference_j) is not None:
        yield f"energy/net {kind}", (estimate, energy.gain_uncertainty)
    elif (estimate := energy.gross_per_inference_j) is not None:
        yield f"energy/gross {kind}", (estimate, energy.gain_uncertainty)
    for name, estimate in energy.per_token_j.items():
        yield f"{name}/net {kind}", (estimate, energy.gain_uncertainty)


def _provenance(block: BlockFigures) -> dict[str, str]:
    facts = block.runs_on.facts if block.runs_on else None
    of = block.provenance
    found = {
        "OS build": of.fingerprint or block.fingerprint,
        "driver": f"{facts.device_name} {facts.driver}".strip() if facts else "",
        "driver file": of.driver_file,
        "agent": f"{of.agent_version} {of.agent_sha256[:12]}".strip(),
        "farm": of.farm_version,
        "model file": of.model_sha256[:12],
        "plan": of.program_hash,
        BATTERY_CYCLES: "" if block.battery_cycles is None else str(block.battery_cycles),
    }
    return {name: text for name, text in found.items() if text}
