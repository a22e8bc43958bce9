"""Set-up, heat and throttling of a group of servers, from the blocks that its `learn` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.event import NOT_BEFORE_FIRST
from orchestrator.model.record import InvalidCode, Outcome, Record
from orchestrator.queueing.measured import records_of
from orchestrator.queueing.spec import Heat, QueueingSpec, ServerGroup

from .history import History, history_of
from .throttling import throttle_steps
from .warming import Warming, fit_warming

HOT = {InvalidCode.THROTTLED, InvalidCode.CLOCK_CAP, InvalidCode.THERMAL_STATUS}
"""A block that does not count because of its heat tells of heat."""
LEAST_RISE_C = 2.0
WIDEST = 2.0
"""The time constants that fit nearly as well lie within such a factor of each other."""
WORST_RMS_C = 1.0
UNSURE = 3.0
"""Temperatures may be off by so many times what the model misses of the blocks (rms): it misses neighbours alike."""
REMEDY = "run a block of sustained load (`sampling: {load: 20 min, idle: 5 min}`), or state `heat`"


@dataclass(frozen=True)
class Body:
    """The model learnt of a group's phones."""

    server: str
    experiment: str
    cell: str
    device: str
    source: str
    blocks: int
    setup_s: float | None
    """The time from a fresh process to its first inference: the median of the blocks. None: no block tells it."""
    heat: Heat | None
    """None: `why_no_heat` says why."""
    why_no_heat: str = ""
    rms_c: float | None = None
    """The model's error in the blocks' temperatures."""
    time_constants_s: tuple[float, float] | None = None
    """The time constants that fit nearly as well."""

    @property
    def text(self) -> str:
        """Return for people what was learnt, of how many blocks."""
        setup = "no set-up" if self.setup_s is None else f"set-up {self.setup_s:.3g} s"
        of = f"{self.blocks} blocks of {self.cell} on {self.device} ({self.source}), {self.experiment}"
        return f"{setup}; {self._heat_text}; {of}"

    @property
    def _heat_text(self) -> str:
        heat = self.heat
        if heat is None or self.time_constants_s is None:
            return f"no heat: {self.why_no_heat}"
        low_s, high_s = self.time_constants_s
        body = f"{heat.ambient:.1f} C at rest, {heat.rise_c:.1f} C more under load, time constant "
        body += f"{heat.time_constant:.0f} s ({low_s:.0f} to {high_s:.0f}), {self.rms_c:.2f} C missed (rms)"
        steps = ", ".join(f"{step.times:.2f} times as slow from {step.at:g} C" for step in heat.steps)
        return f"{body}; {steps or 'no throttling'} up to {heat.known_to:.1f} C, the hottest that was seen"


def fill_bodies(
    spec: QueueingSpec, ledger: Ledger, find: Callable[[str], ExperimentRow]
) -> tuple[QueueingSpec, list[Body]]:
    """The spec with what its groups learn; what a group states stays. `find` knows experiments by id or name.

    Raises NoData where the ledger has no such block, NotComparable where they are of several cells or devices.
    """
    bodies: list[Body] = []

    def filled(group: ServerGroup) -> ServerGroup:
        if group.learn is None:
            return group
        row = find(group.learn.experiment)
        records, cell = records_of(ledger, row.id, group.learn, f"server {group.name}", usable)
        body = learn_body(group.name, row.id, cell.workload.label, records)
        bodies.append(body)
        setup_s = group.setup if "setup" in group.model_fields_set else body.setup_s or 0.0
        return group.model_copy(update={"heat": group.heat or body.heat, "setup": setup_s})

    return spec.model_copy(update={"servers": tuple(filled(group) for group in spec.servers)}), bodies


def usable(record: Record) -> bool:
    """Blocks that count, and those that do not because of their heat."""
    hot = record.outcome == Outcome.INVALID and {each.code for each in record.invalid} <= HOT
    return (record.outcome == Outcome.OK or hot) and bool(record.samples)


def learn_body(server: str, experiment: str, cell: str, records: Sequence[Record]) -> Body:
    """Learn from blocks of one cell on one device, at least one."""
    setups = [total / 1e9 for record in records if (total := _setup_ns(record))]
    histories = [found for record in records if (found := history_of(record)) is not None]
    body = Body(
        server, experiment, cell, records[0].device.serial, str(records[0].source), len(records),
        median(setups) if setups else None, None,
    )  # fmt: skip
    if not histories:
        return replace(body, why_no_heat=f"no block tells its temperature over time; {REMEDY}")
    cool_s, steps = throttle_steps(histories)
    warming = fit_warming(histories, cool_s)
    if why := _why_not(histories, warming):
        return replace(body, why_no_heat=f"{why}; {REMEDY}")
    heat = Heat(
        ambient=round(warming.ambient_c, 2), rise_c=round(warming.rise_c, 2), steps=steps,
        time_constant=round(warming.time_constant_s, 1), slow_is_cooler=True, known_to=_hottest_c(histories),
        unsure_c=round(UNSURE * warming.rms_c, 2), time_constant_between=warming.between_s,
    )  # fmt: skip
    return replace(body, heat=heat, rms_c=warming.rms_c, time_constants_s=warming.between_s)


def _setup_ns(record: Record) -> int:
    return sum(step.duration_ns for step in record.setup if step.step not in NOT_BEFORE_FIRST)


def _hottest_c(histories: Sequence[History]) -> float:
    return max(float(each.temp_c.max()) for each in histories)


def _why_not(histories: Sequence[History], warming: Warming) -> str:
    """Return why the blocks do not suffice; empty: they do."""
    rise_c = max(float(each.temp_c.max() - each.temp_c.min()) for each in histories)
    longest_s = max(each.load_s for each in histories)
    low_s, high_s = warming.between_s
    if rise_c < LEAST_RISE_C:
        return f"the phone warmed by {rise_c:.1f} C in no more than {longest_s:.0f} s of load"
    if high_s > WIDEST * low_s or longest_s < warming.time_constant_s:
        return f"the longest load of {longest_s:.0f} s does not tell the time constant ({low_s:.0f} to {high_s:.0f} s)"
    if warming.rise_c <= 0 or warming.rms_c > WORST_RMS_C:
        return f"temperatures do not follow the load: a first-order model misses them by {warming.rms_c:.1f} C (rms)"
    return ""
