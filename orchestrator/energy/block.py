"""Energy of one block from its record: gross, net of the idle power, per inference, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field

from orchestrator.errors import NotComparable, StableError
from orchestrator.model.base import Model
from orchestrator.model.power import Estimate, PowerSource, Scope
from orchestrator.model.record import Doubt, Record

from .charge import ChargeCheck, charge_check
from .doubts import find_energy_doubts
from .sources import Origin, Wanted, calibration, origins
from .trace import Trace
from .uncertainty import estimate
from .windows import Integral, Window, inferences_in, integral, phase_window


class BlockEnergy(Model):
    """Energy of the load phase. Intervals are 95 % and contain the gain's uncertainty, `within` ones do not."""

    source: PowerSource
    scope: Scope
    name: str
    """Which gauge, meter, rail or counter."""
    absolute: bool
    """Whether the gain is known; otherwise figures compare only on this device."""
    gain_uncertainty: float = Field(ge=0)
    """Standard uncertainty of the gain, as a share: common to all blocks of the device."""
    load_s: float
    inferences: int = Field(ge=0)
    """That ran inside the load phase."""
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
    """At the time of the load."""
    idle_change_w: float | None
    """Idle power after less before; None without both rests."""
    charge: ChargeCheck | None = None
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle power at the time of the load."""

    mean_w: float
    random_w: float
    change_w: float | None
    """Rest after less rest before; None where there is one only."""
    change_random_w: float = 0.0


def block_energy(record: Record, source: Wanted = "auto") -> BlockEnergy | None:
    """Energy of a block by one source; None where the record lacks the source, or the source the load phase."""
    load = phase_window(record, "load")
    for origin in origins(record, source) if load else ():
        try:
            return _block(record, origin, load) if load else None
        except StableError:
            continue
    return None


def check_comparable(energies: Iterable[BlockEnergy]) -> tuple[PowerSource, Scope] | None:
    """Source and scope that all have in common; None of none. Raises NotComparable where they differ."""
    kinds = {(energy.source, energy.scope) for energy in energies}
    if len(kinds) > 1:
        text = " and ".join(sorted(f"{source} ({scope})" for source, scope in kinds))
        raise NotComparable(
            f"power figures of different sources do not compare: {text}",
            remedy="set measure.power_source to a source that all of them have, and measure again",
        )
    return next(iter(kinds), None)


def idle_at(record: Record, trace: Trace, at_s: float) -> Idle | None:
    """Idle power at a time, by a line through the centres of the rests before and after the load.

    Uncertain by both rests and by what is not a line: a change evenly spread between the two adds change / sqrt(12).
    """
    found = [_rest(trace, window) for name in ("idle_before", "idle_after") if (window := phase_window(record, name))]
    rests = [rest for rest in found if rest is not None]
    if not rests:
        return None
    if len(rests) == 1:
        return Idle(rests[0][1].mean_w, rests[0][1].mean_random_w, None)
    (before_s, before), (after_s, after) = rests
    share = (at_s - before_s) / (after_s - before_s)
    change_w = after.mean_w - before.mean_w
    noise_w = math.hypot((1 - share) * before.mean_random_w, share * after.mean_random_w)
    change_random_w = math.hypot(before.mean_random_w, after.mean_random_w)
    real_w = math.sqrt(max(0.0, change_w**2 - change_random_w**2))
    random_w = math.hypot(noise_w, real_w / math.sqrt(12))
    return Idle(before.mean_w + share * change_w, random_w, change_w, change_random_w)


def _rest(trace: Trace, window: Window) -> tuple[float, Integral] | None:
    try:
        return window.centre_s, integral(trace, window)
    except StableError:
        return None


def _block(record: Record, origin: Origin, load: Window) -> BlockEnergy:
    gain, gross = origin.trace.gain_uncertainty, integral(origin.trace, load)
    idle, count = idle_at(record, origin.trace, load.centre_s), inferences_in(record, load)
    net_j = None if idle is None else gross.value_j - idle.mean_w * load.length_s
    net_random_j = 0.0 if idle is None else math.hypot(gross.random_j, idle.random_w * load.length_s)
    checked = charge_check(record) if origin.source is PowerSource.GAUGE else None
    return BlockEnergy(
        source=origin.source,
        scope=origin.scope,
        name=origin.name,
        absolute=origin.source is not PowerSource.GAUGE or calibration(record).absolute,
        gain_uncertainty=gain,
        load_s=load.length_s,
        inferences=count,
        gross_j=_share(gross.value_j, gross.random_j, gain, 1),
        net_j=None if net_j is None else _share(net_j, net_random_j, gain, 1),
        per_inference_j=None if net_j is None or not count else _share(net_j, net_random_j, gain, count),
        within_per_inference_j=None if net_j is None or not count else _share(net_j, net_random_j, 0.0, count),
        gross_per_inference_j=_share(gross.value_j, gross.random_j, gain, count) if count else None,
        load_power_w=_share(gross.value_j, gross.random_j, gain, load.length_s),
        idle_power_w=None if idle is None else _share(idle.mean_w, idle.random_w, gain, 1),
        idle_change_w=None if idle is None else idle.change_w,
        charge=checked,
        doubts=find_energy_doubts(record, origin, load, checked),
    )


def _share(value: float, random: float, gain: float, parts: float) -> Estimate:
    return estimate(value / parts, math.hypot(random, value * gain) / parts)
