"""Keep the phone awake during a session: screen on, no time-out, plugged in or not.

A shell without root holds no wake lock (docs/architecture/session.md), so the screen has to. A
screen lock sets a time-out of its own: then the proof fails, and the agent's clocks tell whether the phone slept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from orchestrator.model.errors import FarmError
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from workers.connection.base import DeviceConnection, ShellResult
from workers.devices.dumpsys import Wakefulness, parse_power

from .android_settings import reading, told, writing
from .base import Held

NAME = "awake"
NEVER_MS = 2147483647
"""The longest time-out that the setting takes: 24 days."""
KEPT = {"screen_off_timeout": ("system", str(NEVER_MS)), "stay_on_while_plugged_in": ("global", "7")}
"""Setting -> where it is, and its value for a session. The second overrides a screen lock's time-out, on any supply."""
AWAKE = "Awake"
POWER = ["dumpsys", "power"]
SAVED = [POWER, *(reading(space, name) for name, (space, _) in KEPT.items())]
"""The commands that ask for the values before."""
WAKE_S = 5.0
"""The time that a phone may take to wake up."""


class Awake:
    permission = ""

    def wanted(self, conditions: Conditions) -> str:  # noqa: ARG002 (every session)
        return "awake, no time-out"

    def check(self, connection: DeviceConnection) -> None:
        """A phone that cannot be kept awake is measured all the same; its record says whether it slept."""

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        power, *values = connection.shells(SAVED, deadline_s=30.0)
        return {"wakefulness": _power(power).wakefulness, **dict(zip(KEPT, map(told, values), strict=True))}

    def prepare(self, connection: DeviceConnection) -> Held:
        *_, power = connection.shells(SWITCHING, deadline_s=60.0)
        held, end = _held(power), time.monotonic() + WAKE_S
        while held.value and not held.proven and time.monotonic() < end:
            time.sleep(0.2)
            held = look(connection)
        return held

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        asleep = saved.get("wakefulness", AWAKE) not in (AWAKE, "")
        connection.shells([*_written(saved), *([["input", "keyevent", "KEYCODE_SLEEP"]] if asleep else [])])


def _written(values: Mapping[str, str]) -> list[list[str]]:
    """Commands that write those of these values that are known."""
    return [command for name, (space, _) in KEPT.items() for command in writing(space, name, values.get(name, ""))]


SWITCHING = [
    *_written({name: value for name, (_, value) in KEPT.items()}),
    ["input", "keyevent", "KEYCODE_WAKEUP"],
    ["wm", "dismiss-keyguard"],
    POWER,
]
"""The commands that keep it awake."""


def look(connection: DeviceConnection) -> Held:
    """Return whether it is awake and stays so, as its power service says."""
    return _held(connection.shell(POWER, deadline_s=30.0))


def _held(answer: ShellResult) -> Held:
    power = _power(answer)
    stays = power.stays_on or (power.off_after_ms or 0) >= NEVER_MS
    after = (
        "no time-out" if stays else "" if power.off_after_ms is None else f"off after {power.off_after_ms / 1e3:g} s"
    )
    return Held(", ".join(filter(None, (power.wakefulness, after))), proven=power.wakefulness == AWAKE and stays)


def at_end(connection: DeviceConnection, proof: ConditionProof) -> ConditionProof:
    """The proof with what the power service says at the end of the block; unproven where the phone is away by then."""
    try:
        found = look(connection)
    except FarmError:
        found = Held("", proven=False)
    held = f"{proof.held or 'not told'}; at the end {found.value or 'not told'}"
    return proof.model_copy(update={"held": held, "proven": proof.proven and found.proven})


def _power(answer: ShellResult) -> Wakefulness:
    return parse_power(answer.stdout.decode(errors="replace") if answer.code == 0 else "")
