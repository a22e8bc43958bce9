"""The end of an experiment under way. Its blocks that are left are run in a simulation, many times, each with durations
drawn from those that were measured; the answer is the middle of the ends and the range of nine tenths of them."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.figures.block_times import BlockTimes, Drawn
from orchestrator.model.device import Device, Health
from orchestrator.model.live.usage import Account
from orchestrator.model.quantity import counted

from .remaining_run import run

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger, Outlook

RUNS = (5, 60)
"""Fewest and most simulations."""
BLOCKS = 60_000
"""Blocks that are simulated in all, about; where there are many the range is narrow."""
OUTSIDE = 0.05
"""The share of the ends below the range, and of those above it."""
NAMED = 3
DAY_S, SOON_S = 86400.0, 180.0


@dataclass(frozen=True)
class Ending:
    """The end of an experiment, by Unix time, or why that is unknown."""

    at: float = 0.0
    earliest: float = 0.0
    latest: float = 0.0
    unknown: str = ""
    """Empty where it is known."""
    assuming: tuple[str, ...] = ()

    @staticmethod
    def of(data: Mapping[str, Any]) -> Ending:
        """Return what `data` tells."""
        at, earliest, latest = (data[name] or 0.0 for name in ("at", "earliest", "latest"))
        return Ending(at, earliest, latest, data["unknown"], tuple(data["assuming"]))

    @property
    def text(self) -> str:
        """`ends at about 17:40, between 17:31 and 17:55`."""
        if self.unknown:
            return f"end unknown: {self.unknown}"
        at, earliest, latest = (self._clock(each) for each in (self.at, self.earliest, self.latest))
        assuming = f" ({'; '.join(self.assuming)})" if self.assuming else ""
        return f"ends at about {at}, between {earliest} and {latest}{assuming}"

    def _clock(self, unix_s: float) -> str:
        seconds = ":%S" if self.latest - self.earliest < SOON_S else ""
        is_near = self.latest < time.time() + DAY_S
        return time.strftime(f"{'' if is_near else '%Y-%m-%d '}%H:%M{seconds}", time.localtime(unix_s))

    @property
    def data(self) -> dict[str, Any]:
        """Return the ending for `--json`: times are null where they are unknown."""
        known = not self.unknown
        times = {name: getattr(self, name) if known else None for name in ("at", "earliest", "latest")}
        return {**times, "unknown": self.unknown, "assuming": list(self.assuming)}


def when_it_ends(ledger: Ledger, experiment_id: str, devices: Sequence[Device] | None) -> Ending:
    """Return the end of an experiment that is not over. `devices`: as placement sees them; None where no farm runs."""
    if devices is None:
        return Ending(unknown="no farm answers")
    return ending(ledger.outlook(experiment_id), _as_for(ledger, experiment_id, devices), time.time(), experiment_id)


def _as_for(ledger: Ledger, experiment_id: str, devices: Sequence[Device]) -> list[Device]:
    """Return the devices as they are for an experiment: what its people hold or reserved is free for it."""
    if not any(device.state.health is Health.HELD for device in devices):
        return list(devices)
    place, open_to = ledger.place_of(experiment_id), dict[str, bool]()
    for hold in ledger.standing.holds():
        admits = hold.admits(Account(place.project, place.owner))
        open_to[hold.serial] = open_to.get(hold.serial, True) and admits
    free = {"health": Health.READY, "ready_at": None}
    return [
        device.model_copy(update={"state": device.state.model_copy(update=free)})
        if device.state.health is Health.HELD and open_to.get(device.serial)
        else device
        for device in devices
    ]


def ending(outlook: Outlook, devices: Sequence[Device], now: float, seed: str) -> Ending:
    """The same, pure. `now`: Unix time."""
    times = BlockTimes(outlook.took_s, {device.serial: device.facts.model for device in devices})
    free_at_s = {each.serial: max(0.0, (each.state.ready_at or 0.0) - now) for each in devices if _comes_back(each)}
    if not times:
        return Ending(unknown="no block of it has ended")
    stuck = [each for each in outlook.work if not any(serial in free_at_s for serial in each.candidates)]
    if stuck:
        names = sorted({serial for each in stuck for serial in each.candidates})
        more = " ..." * (len(names) > NAMED)
        which = f"devices that get no work now: {', '.join(names[:NAMED])}{more}"
        return Ending(
            unknown=f"{counted(sum(each.blocks for each in stuck), 'block waits', 'blocks wait')} for {which}"
        )
    blocks = sum(each.blocks for each in outlook.work) + len(outlook.under_way)
    runs = min(RUNS[1], max(RUNS[0], BLOCKS // max(1, blocks)))
    chance = random.Random(seed)
    ends = sorted(now + _once(outlook, Drawn(times, chance), free_at_s, now) for _ in range(runs))
    outside = int(OUTSIDE * runs)
    return Ending(ends[runs // 2], ends[outside], ends[-1 - outside], assuming=_assuming(outlook, free_at_s))


def _comes_back(device: Device) -> bool:
    """It gets work, now or from a time that is known."""
    health, ready_at = device.state.health, device.state.ready_at
    return health is Health.READY or (health in (Health.HELD, Health.QUARANTINED) and ready_at is not None)


def _once(outlook: Outlook, drawn: Drawn, free_at_s: Mapping[str, float], now: float) -> float:
    """Seconds until the last block has ended, this time."""
    free, end_s = dict(free_at_s), 0.0
    for each in outlook.under_way:
        left_s = max(0.0, drawn.lasts_s(each.cell_id, each.serial, 1) - (now - each.started_at))
        free[each.serial] = max(free.get(each.serial, 0.0), left_s)
        end_s = max(end_s, left_s if each.is_own else 0.0)
    free = {serial: left_s for serial, left_s in free.items() if serial in free_at_s}

    def lasts(cell_id: str, serial: str, blocks: int) -> float:
        return drawn.lasts_s(cell_id, serial, blocks) * (1 + outlook.rivals.get(serial, 0))

    return max(end_s, run(outlook.work, free, lasts))


def _assuming(outlook: Outlook, free_at_s: Mapping[str, float]) -> tuple[str, ...]:
    wanted = {serial for each in outlook.work for serial in each.candidates if serial in free_at_s}
    rivals = max((outlook.rivals.get(serial, 0) for serial in wanted), default=0)
    found = []
    if rivals:
        others = "another experiment waits" if rivals == 1 else f"up to {rivals} other experiments wait"
        found.append(f"{others} for its devices and gets as much of them" if rivals == 1
                     else f"{others} for its devices, and each gets as much of them")  # fmt: skip
    if outlook.held:
        found.append("without jobs that may follow by results")
    return tuple(found)
