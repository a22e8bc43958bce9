"""Energy of one block from its record: gross, net of the idle power, per inference, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.errors import StableError
from orchestrator.model.power import Estimate, PowerSource, Scope
from orchestrator.model.record import Doubt, Record

from .aliasing import aliased_share
from .charge import ChargeCheck, charge_check
from .doubts import Seen, find_energy_doubts
from .gauge_readings import gauge_readings
from .idle import Idle, idle_under
from .lag import in_time, settle_s
from .phases import PhaseEnergy, phase_energies
from .sources import Origin, Wanted, calibration, origins
from .step import find_step
from .trace import Trace
from .uncertainty import estimate
from .windows import (
    StageWindow,
    Window,
    active_window,
    inferences_in,
    integral,
    measured_window,
    rest_windows,
    stage_windows,
)


class StageEnergy(Model):
    """Energy of the epochs of one stage of a training, with what lies between them."""

    name: str
    epochs: int = Field(ge=1)
    length_s: float
    net_j: float | None
    """None without a rest, or where the trace does not cover the stage."""


class BlockEnergy(Model):
    """Energy of the load phase, of a training of its last stage. Intervals are 95 % and contain the gain's uncertainty,
    `within` ones do not."""

    source: PowerSource
    scope: Scope
    name: str
    """The name of the gauge, meter, rail or counter."""
    absolute: bool
    """True if the gain is known; otherwise figures compare only on this device."""
    gain_uncertainty: float = Field(ge=0)
    """Standard uncertainty of the gain, as a share: common to all blocks of the device."""
    load_s: float
    inferences: int = Field(ge=0)
    """The inferences that ran inside the load phase."""
    gross_j: Estimate
    net_j: Estimate | None
    """Gross less the idle power, interpolated in time between the rests before and after; None without a rest."""
    per_inference_j: Estimate | None
    """Net; None without a rest or an inference."""
    within_per_inference_j: Estimate | None
    """The same with the interval for comparisons on this device: without the gain's uncertainty."""
    gross_per_inference_j: Estimate | None
    load_power_w: Estimate
    idle_power_w: Estimate | None
    """The idle power at the time of the load."""
    idle_change_w: float | None
    """Idle power after less before; None without both rests."""
    stages: tuple[StageEnergy, ...] = ()
    """The stages of a training."""
    phases: tuple[PhaseEnergy, ...] = ()
    """Prompt and generation of a language model's answers, where the readings tell them apart."""
    charge: ChargeCheck | None = None
    doubts: tuple[Doubt, ...] = ()


def block_energy(record: Record, source: Wanted = "auto") -> BlockEnergy | None:
    """Energy of a block by one source; None where the record lacks the source, or the source the load phase."""
    load = measured_window(record)
    for origin in origins(record, source) if load else ():
        try:
            return _block(record, origin, load) if load else None
        except StableError:
            continue
    return None


def why_no_energy(record: Record, source: Wanted = "auto") -> str:
    """Return why `block_energy` has none."""
    if lost := next((series.lost for series in record.series if series.lost), ""):
        return lost
    if (load := measured_window(record)) is None:
        return "the block has no load phase"
    for origin in origins(record, source):
        try:
            _block(record, origin, load)
        except StableError as e:
            return f"{origin.name}: {e}"
    left_out = gauge_readings(record.power, calibration(record)).left_out
    return f"battery gauge: {left_out.text}" if left_out.count else f"the block has no readings of {source}"


@dataclass(frozen=True, slots=True)
class _Parts:
    """A value with its standard uncertainties: of this block, and what is the same in every block, without the gain."""

    value: float
    random: float
    systematic: float

    def over(self, parts: float, gain: float) -> Estimate:
        value, systematic = self.value / parts, self.systematic / parts
        return estimate(value, math.hypot(self.random / parts, systematic, value * gain), systematic)


def _block(record: Record, origin: Origin, load: Window) -> BlockEnergy:
    active = active_window(record) or load
    origin, late_s = _on_time(origin, active)
    trace, rests = origin.trace, rest_windows(record)
    settled_s = settle_s(trace, load, next((rest for rest in rests if rest.start_s >= load.end_s), None))
    gain, whole = trace.gain_uncertainty, integral(trace, load, settled_s)
    aliased = aliased_share(record, trace, active, load)
    gross = _Parts(whole.value_j, math.hypot(whole.budget.noise_j, aliased * whole.value_j), whole.budget.systematic_j)
    idle = idle_under(trace, rests, load, whole.mean_w, settled_s)
    net, count = _net(gross, idle, load), inferences_in(record, load)
    checked = charge_check(record) if origin.source is PowerSource.GAUGE else None
    stages = tuple(_stage(trace, rests, each, settled_s) for each in stage_windows(record))
    phases = phase_energies(record, trace, load, idle)
    step = None if stages or phases else find_step(trace, load, settled_s)  # phases of answers are steps themselves
    seen = Seen(whole.mean_w, aliased, late_s, None if idle is None else idle.mean_w, step)
    return BlockEnergy(
        source=origin.source,
        scope=origin.scope,
        name=origin.name,
        absolute=origin.source is not PowerSource.GAUGE or calibration(record).absolute,
        gain_uncertainty=gain,
        load_s=load.length_s,
        inferences=count,
        gross_j=gross.over(1, gain),
        net_j=None if net is None else net.over(1, gain),
        per_inference_j=None if net is None or not count else net.over(count, gain),
        within_per_inference_j=None if net is None or not count else net.over(count, 0.0),
        gross_per_inference_j=gross.over(count, gain) if count else None,
        load_power_w=gross.over(load.length_s, gain),
        idle_power_w=None if idle is None else _Parts(idle.mean_w, idle.random_w, idle.systematic_w).over(1, gain),
        idle_change_w=None if idle is None else idle.change_w,
        stages=stages,
        phases=phases,
        charge=checked,
        doubts=find_energy_doubts(record, origin, load, checked, seen),
    )


def _stage(trace: Trace, rests: Sequence[Window], stage: StageWindow, settled_s: float) -> StageEnergy:
    net_j, length_s = None, stage.window.length_s
    with suppress(StableError):
        whole = integral(trace, stage.window, settled_s)
        idle = idle_under(trace, rests, stage.window, whole.mean_w, settled_s)
        net_j = None if idle is None else whole.value_j - idle.mean_w * length_s
    return StageEnergy(name=stage.name, epochs=stage.epochs, length_s=length_s, net_j=net_j)


def _net(gross: _Parts, idle: Idle | None, load: Window) -> _Parts | None:
    if idle is None:
        return None
    random = math.hypot(gross.random, idle.random_w * load.length_s)
    systematic = math.hypot(gross.systematic, idle.systematic_w * load.length_s)
    return _Parts(gross.value - idle.mean_w * load.length_s, random, systematic)


def _on_time(origin: Origin, active: Window) -> tuple[Origin, float]:
    """A meter's trace by the edges of what was active, and how late it was."""
    if origin.source is not PowerSource.METER:
        return origin, 0.0
    trace, late_s = in_time(origin.trace, active)
    return replace(origin, trace=trace), late_s
