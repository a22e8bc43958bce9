"""Load steps on a device: the agent rests and keeps cores busy in turn, and reads the gauge all the while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.model.errors import DeviceSick, FarmError, LeaseLost
from orchestrator.model.event import Event
from workers.devices.fleet import Member, stop_agents
from workers.devices.install import run
from workers.engines.agent import (
    AgentRequest,
    AgentRun,
    Follower,
    Started,
    raise_for,
    raise_if_slept,
    start_agent,
    words,
)
from workers.session.supply import PlannedCut

FLOOR_PERIOD_MS = 20
"""Shortest period of the agent's sampler."""
SLACK_S = 30.0


@dataclass(frozen=True, kw_only=True)
class BurnRequest(AgentRequest):
    """The options of `pocketfarm-agent burn`."""

    steps: tuple[int, ...] = ()
    """Threads that are busy in each step."""
    step_ms: int = 0

    def argv(self) -> list[str]:
        steps = {"--steps": ",".join(map(str, self.steps)), "--step-ms": self.step_ms}
        return ["burn", *words(steps | self.options()), "--detach"]


def burn(
    member: Member,
    steps: Sequence[int],
    step_ms: int,
    check: Callable[[], None],
    cut: PlannedCut | None = None,
) -> list[Event]:
    """Take the steps and return the agent's events. The caller holds the device's lock.

    `cut`: the supply is cut while the agent runs. Raises the agent's error as ours, the transient errors, and what
    `check` raises; whatever ends it early stops the agent, except a lost lease: then the device is not ours.
    """
    connection, folder = member.connection, f"{member.connection.folder}/runs/enrol"
    request = BurnRequest(
        folder=folder,
        marker=f"{member.marker}enrol/burn",
        power_period_ms=FLOOR_PERIOD_MS,
        deadline_s=len(steps) * step_ms / 1000 + SLACK_S,
        cache=f"{folder}/cache",
        steps=tuple(steps),
        step_ms=step_ms,
    )
    run(connection, "rm", "-rf", folder)
    run(connection, "mkdir", "-p", folder)
    try:
        started = start_agent(member, request)
        done = _follow(member, request, check, cut, started)
    except LeaseLost:
        raise
    except BaseException:
        with contextlib.suppress(FarmError):
            stop_agents(member, request.marker)
        raise
    with contextlib.suppress(FarmError):
        run(connection, "rm", "-rf", folder)
    raise_for(done, member.facts.serial)
    if done.killed:
        raise DeviceSick("the device ended the agent during the load steps", device=member.facts.serial)
    raise_if_slept(done, member.facts.serial)
    return done.events


def _follow(
    member: Member, request: BurnRequest, check: Callable[[], None], cut: PlannedCut | None, started: Started
) -> AgentRun:
    """Follow the agent until it is done; a cut supply is restored first of all, unless the device is no longer ours."""
    if cut is None:
        return Follower(member, request, check, lambda _: None, started=started).follow()
    try:
        cut.begin()
        done = Follower(member, request, check, lambda _: None, cut, started).follow()
    except LeaseLost:
        raise
    except BaseException:
        with contextlib.suppress(FarmError):  # it is journalled: the next session tries again
            cut.end()
        raise
    cut.end()
    return done
