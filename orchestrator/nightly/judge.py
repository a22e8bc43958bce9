"""Say what came out of a night: the rows, who is missing, and whether it is whole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.ledger import JobRow, JobState
from orchestrator.model.device import Device, Health
from orchestrator.model.record import Outcome as BlockOutcome

from .night import Missing, Night, Outcome
from .table import Measured, repeated, table


@dataclass(frozen=True)
class Findings:
    """The facts from the ledger and the devices at the end of a night."""

    now: float
    measured: Sequence[Measured]
    jobs: Sequence[JobRow]
    """The jobs of all waves."""
    devices: Mapping[str, Device]
    """The devices as they are now, by serial."""


def judged(night: Night, found: Findings) -> Night:
    """The night with its rows, missing devices, problems and outcome."""
    rows = repeated(night, found.measured, [each.row for each in table(night, found.measured)])
    devices = tuple(sorted({device for device, _ in _good(found)}))
    missing = _missing(night, found)
    problems = (*night.problems, *_problems(night, found))
    outcome: Outcome = "not_run" if not devices else "partial" if missing or problems else "complete"
    update = {"rows": tuple(rows), "devices": devices, "missing": missing, "problems": problems, "outcome": outcome}
    return night.model_copy(update={**update, "warnings": tuple(_failed_canaries(found))})


def _good(found: Findings) -> set[tuple[str, str]]:
    """Device and cell of every block that went well."""
    blocks = (block for one in found.measured for block in one.blocks if block.role == "work")
    return {(block.serial, block.cell_id) for block in blocks if block.outcome is BlockOutcome.OK}


def _missing(night: Night, found: Findings) -> tuple[Missing, ...]:
    asked = {(row.job.candidates[0], row.job.cell.cell_id) for row in found.jobs if row.job.role == "work"}
    lacking = Counter(device for device, _ in asked - _good(found))
    absent = {serial: 0 for serial in night.expected if serial not in {device for device, _ in asked}}
    return tuple(
        Missing(device=serial, reason=_reason(serial, found), cells=cells)
        for serial, cells in sorted({**absent, **lacking}.items())
    )


def _reason(serial: str, found: Findings) -> str:
    device = found.devices.get(serial)
    if device is None:
        return "it is not connected"
    if device.state.health is not Health.READY:
        return ": ".join(filter(None, (device.state.health.value, device.state.reason)))
    own = [row for row in found.jobs if row.job.candidates[0] == serial and row.job.role == "work"]
    if not own:
        return "nothing of the suite can run on it, or it came too late"
    causes = Counter(_cause(row) for row in own if row.outcome != BlockOutcome.OK.value)
    return causes.most_common(1)[0][0] if causes else "no block of some configurations"


def _cause(row: JobRow) -> str:
    if row.state is JobState.CANCELLED:
        return "its blocks were cancelled"
    return ": ".join(filter(None, (row.outcome or row.state.value, row.cause)))


def _failed_canaries(found: Findings) -> Iterator[str]:
    """Canaries that told nothing, by device and cause."""
    canaries = [row for row in found.jobs if row.job.role == "canary" and row.state is JobState.DONE]
    failed = [row for row in canaries if row.outcome != BlockOutcome.OK.value]
    for (device, cause), count in sorted(Counter((row.job.candidates[0], _cause(row)) for row in failed).items()):
        total = sum(row.job.candidates[0] == device for row in canaries)
        yield (
            f"{count} of {total} canaries on {device} did not end well ({cause}): whether the device changed meanwhile "
            "is not known then"
        )


def _problems(night: Night, found: Findings) -> list[str]:
    refused = [f"{wave.part} ({wave.kind}): {wave.refused}" for wave in night.waves if wave.refused]
    cancelled = sum(row.state is JobState.CANCELLED for row in found.jobs)
    total = len(found.jobs)
    if cancelled and found.now >= night.ends_at:
        refused.append(
            f"its time of {night.suite.budget:g} s was over: {cancelled} of {total} blocks were not measured"
        )
    elif cancelled:
        refused.append(f"{cancelled} of {total} blocks were cancelled")
    return refused
