"""Run load steps on a phone without a charger, as long as its gauge needs, and calibrate the gauge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Event, Phase, Power
from orchestrator.model.power import GaugeCalibration
from orchestrator.spec.wiring_file import load_wiring
from orchestrator.system.config import Settings
from workers.devices.fleet import Member
from workers.devices.probe import read_state
from workers.session.supply import PlannedCut, SupplyJournal, Switch, find_switch

from .burn import SLACK_S, burn
from .calibrate import CannotCalibrate, TooShort, calibrate, not_discharging

STEPS = (0, 2, 0, 2)
"""Busy threads: two heat no phone in these seconds, and every phone has two cores."""
FIRST_STEP_MS = 1750
LONGEST_STEP_MS = 30_000
ATTEMPTS = 3
SETTLE_MS = 10_000
"""Rest before the steps where the supply was cut: status and current of some gauges are behind by seconds."""

Say = Callable[[str, float], None]
"""A listener: what is being done, and which share of the whole is done."""


@dataclass(frozen=True)
class _Cut:
    """The way to cut the supply for each series of steps; `switch` is None where nothing powers the phone."""

    member: Member
    settings: Settings
    switch: Switch | None

    def planned(self, length_ms: int) -> PlannedCut | None:
        if self.switch is None:
            return None
        journal = SupplyJournal(self.settings.state, self.member.facts.serial)
        return PlannedCut(self.switch, journal, self.member.connection, length_ms / 1000 + SLACK_S / 3)

    def lead(self, step_ms: int) -> tuple[int, ...]:
        """Steps at rest before the first that counts."""
        return (0,) * math.ceil(SETTLE_MS / step_ms) if self.switch else ()


def calibrate_gauge(member: Member, settings: Settings, check: Callable[[], None], say: Say) -> GaugeCalibration:
    """Load steps, longer ones for a slow gauge; a supply that can be cut is cut meanwhile.

    The caller holds the device's lock. Raises CannotCalibrate, the transient errors, and what `check` raises.
    """
    cut = find_cut(member, settings)
    step_ms, attempt = FIRST_STEP_MS, 1
    while True:
        say(f"load steps of {step_ms / 1000:.1f} s", 0.15 * attempt)
        lead = cut.lead(step_ms)
        steps = (*lead, *STEPS)
        events = burn(member, steps, step_ms, check, cut.planned(len(steps) * step_ms))
        try:
            return calibrate(*_counting(events, len(lead)))
        except TooShort as e:
            needed_ms = (e.needed_ns or 0) // 1_000_000
            step_ms = max(needed_ms, 2 * step_ms) if needed_ms else 4 * step_ms
            attempt += 1
            if attempt > ATTEMPTS or step_ms > LONGEST_STEP_MS:
                raise


def find_cut(member: Member, settings: Settings) -> _Cut:
    """Find a way to supply the phone by its battery alone. Raises CannotCalibrate if it is powered and nothing can."""
    if not read_state(member.connection, "phone").charging:
        return _Cut(member, settings, None)
    try:
        wired = load_wiring(settings.wiring_file).device(member.facts.serial)
        return _Cut(member, settings, find_switch(member, wired, settings.state))
    except Unsupported as e:
        raise not_discharging("a charger is connected") from e


def _counting(events: Sequence[Event], lead: int) -> tuple[list[Power], list[Phase]]:
    """Readings and phases without those of the lead."""
    phases = [event for event in events if isinstance(event, Phase)]
    power = [event for event in events if isinstance(event, Power)]
    if len(phases) <= lead:
        raise CannotCalibrate("the agent did not finish its steps", remedy="run `farm enrol` again")
    first_ns = phases[lead].start_ns
    return [reading for reading in power if reading.t_ns >= first_ns], phases[lead:]
