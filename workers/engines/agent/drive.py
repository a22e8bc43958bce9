"""One run of the agent in a folder of its own, from its start to its last event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.model.errors import LeaseLost, TransientError
from orchestrator.model.event import Event
from workers.connection.base import DeviceConnection
from workers.devices.fleet import Member, stop_agents
from workers.devices.install import run
from workers.session.supply import PlannedCut

from .process import AgentRun, Follower, start_agent
from .request import AgentRequest

log = logging.getLogger(__name__)


def drive(
    member: Member,
    request: AgentRequest,
    check: Callable[[], None],
    on_event: Callable[[Event], None],
    cut: PlannedCut | None,
    files: Sequence[str] = (),
    then: Sequence[Sequence[str]] = (),
) -> AgentRun:
    """Start and follow; whatever ends it early stops the agent, except a lost lease: then the device is not ours."""
    try:
        started = start_agent(member, request, files, then)
        if cut:
            cut.begin()
        done = Follower(member, request, check, on_event, cut, started).follow()
        if cut:
            cut.end()
        return done
    except LeaseLost:
        raise
    except BaseException:
        quietly(lambda: stop_agents(member, request.marker))
        raise


@contextmanager
def run_folder(connection: DeviceConnection, folder: str, tidy: list[Sequence[str]] | None) -> Iterator[None]:
    """A fresh folder of this attempt, removed afterwards unless the device is no longer ours; by who gave `tidy`."""
    remove = ["rm", "-rf", folder]
    run(connection, *remove)
    try:
        yield
    except LeaseLost:
        raise
    except BaseException:
        quietly(lambda: run(connection, *remove))
        raise
    else:
        if tidy is None:
            quietly(lambda: run(connection, *remove))
        else:
            tidy.append(remove)


def quietly(act: Callable[[], object]) -> None:
    """Do what may fail without harm."""
    try:
        act()
    except TransientError as e:
        log.info("%s", e)
