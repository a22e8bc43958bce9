"""Measure what sampling costs: blocks of a small network with and without it, in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from statistics import fmean, median, stdev

from orchestrator.model.device import Api
from orchestrator.model.enrolment import SamplerCost
from orchestrator.model.event import Event, Sample
from orchestrator.model.event import Sampler as SamplerEvent
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from orchestrator.model.power import Estimate
from workers.devices.fleet import Member
from workers.engines.agent import raise_for
from workers.engines.pocketfarm.measure import Block, measure
from workers.engines.pocketfarm.plans.plan_store import Plans

NETWORK = "lenet"
PAIRS = (4, 12)
"""Fewest and most pairs of blocks with and without sampling."""
BUDGET_S = 4.0
"""No more pairs than the fewest are begun after this."""
RESOLVED = 0.01
"""Half-width of the interval at which more pairs are not needed."""
BLOCK_S = 0.25
SAMPLES = (20, 400)
"""Fewest and most inferences of a block."""


def measure_cost(member: Member, plans: Plans, period_ms: int, check: Callable[[], None]) -> SamplerCost:
    """Measure with and without sampling at this period: off, on, on, off ... so that a drift cancels.

    The caller holds the device's lock. Raises what measuring raises.
    """
    samples = SAMPLES[0]
    first_ns = _median_ns(_block(member, plans, 0, samples, check))
    samples = round(min(SAMPLES[1], max(samples, BLOCK_S * 1e9 / first_ns)))
    pairs: list[tuple[float, float]] = []
    samplers: list[SamplerEvent] = []
    ends_at = time.monotonic() + BUDGET_S
    while not _is_enough(pairs, ends_at):
        medians = {}
        for on in (False, True) if len(pairs) % 2 == 0 else (True, False):
            events = _block(member, plans, period_ms if on else 0, samples, check)
            medians[on] = _median_ns(events)
            samplers += [event for event in events if on and isinstance(event, SamplerEvent)]
        pairs.append((medians[False], medians[True]))
    return SamplerCost(period_ns=period_ms * 1_000_000, latency_share=change_of(pairs), cpu_share=cpu_share(samplers))


def _is_enough(pairs: Sequence[tuple[float, float]], ends_at: float) -> bool:
    fewest, most = PAIRS
    if len(pairs) < fewest:
        return False
    change = change_of(pairs)
    return len(pairs) >= most or (change.high - change.low) / 2 <= RESOLVED or time.monotonic() > ends_at


def change_of(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """Mean change from the first of each pair to the second, as a share of the first, with its 95 % interval."""
    from scipy.special import stdtrit

    shares = [after / before - 1.0 for before, after in pairs]
    value, error = fmean(shares), stdev(shares) / math.sqrt(len(shares))
    half = float(stdtrit(len(shares) - 1, 0.975)) * error
    return Estimate(value=value, low=value - half, high=value + half, std=error)


def cpu_share(samplers: Sequence[SamplerEvent]) -> float:
    """Processor time of the sampler's thread over the time that it sampled."""
    wall_ns = sum((each.readings + each.missed) * each.period_ns for each in samplers)
    return sum(each.cpu_ns for each in samplers) / wall_ns if wall_ns else 0.0


def _block(member: Member, plans: Plans, period_ms: int, samples: int, check: Callable[[], None]) -> list[Event]:
    cell = Cell(
        workload=Workload(network=NETWORK), backend=Api.CPU if member.facts.api(Api.CPU) else member.facts.apis[0].api
    )
    block = Block("enrol/sampler", warmup=3, samples=samples, deadline_s=60.0, power_period_ms=period_ms)
    measured = measure(
        member, plans.plan(cell, member.facts), plans.models.inputs(cell.workload), block, check, lambda *_: None
    )
    raise_for(measured.run, member.facts.serial)
    return measured.run.events


def _median_ns(events: Sequence[Event]) -> float:
    return median(event.duration_ns for event in events if isinstance(event, Sample) and event.phase == "timed")
