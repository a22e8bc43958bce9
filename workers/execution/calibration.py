"""Calibrate a phone's gauge within a session, without its supply where that can be cut."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.model.enrolment import Enrolment
from orchestrator.system.config import Settings
from workers.enrolment import ensure_calibrated
from workers.session.session import Session
from workers.session.supply import DISCHARGING_S, Switch, await_discharging

DATA_STAYS = ("root", "virtual", "wireless")
"""Ways to cut a supply that leave the phone connected; of a hub or a command nobody knows."""


def calibrated(
    known: Enrolment | None, held: Session, switch: Switch | None, settings: Settings, check: Callable[[], None]
) -> Enrolment:
    """The profile with its calibration. A gauge tells nothing while the phone charges: the supply is cut for it too,
    where the phone stays connected without it."""
    member = held.member
    if switch is None or switch.way not in DATA_STAYS or (known and known.calibrated):
        return ensure_calibrated(member, settings, check)
    try:
        held.supply.cut(switch)
        await_discharging(member.connection, check, DISCHARGING_S["cut"])
        return ensure_calibrated(member, settings, check)
    finally:
        held.supply.restore(member.connection)
