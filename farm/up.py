"""The steps of `farm up`: lock the state, end leftovers, start the parts, watch them, end them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

from orchestrator.model.quantity import counted
from orchestrator.system.config import Settings
from orchestrator.system.private_files import UMASK

from . import endpoints
from .composition import compose, compose_host
from .endpoints import Endpoints, StateLock
from .join import joined
from .parts.ports import Ports
from .parts.virtual_phones import profiles_for
from .processes import reap_leftovers
from .supervisor import Say, Stopped, Supervisor


def run_farm(
    settings: Settings,
    virtual: int,
    profiles: list[str],
    *,
    usb: bool,
    listen: str = "",
    join: str = "",
    say: Say,
    ready: Callable[[Endpoints], None],
) -> None:
    """Run a farm, or with `join` a host of another one, until a signal ends it. `ready` is called once, when every part
    is up. `listen`: address by which other machines reach this farm. `join`: file of `farm host add`, or a URL.

    Raises SetupError where one runs already, this machine lacks a part, or a part does not start.
    """
    os.umask(UMASK)  # of every part, too: what the farm makes is this user's alone
    state = settings.state
    with closing(StateLock(state)), Ports() as ports:
        if left := reap_leftovers(state):
            say("farm", "left over", f"ended {counted(left, 'process', 'processes')} of a farm that was killed")
        phones = profiles_for(virtual, profiles)
        real_phones = usb or not phones
        if join:
            host = joined(settings, join, lambda reason: say("farm", "waiting", reason))
            farm = compose_host(host, phones, real_phones=real_phones)
        else:
            farm = compose(settings, phones, ports=ports, real_phones=real_phones, listen=listen)
        supervisor = Supervisor(farm.parts, farm.environment, state / "logs", say)
        supervisor.listen()
        try:
            supervisor.start()
            endpoints.write(state, farm.endpoints)
            ready(farm.endpoints)
            supervisor.watch()
        except Stopped:
            say("farm", "stopping", "before everything was up")
        finally:
            endpoints.clear(state)
            supervisor.stop()
            reap_leftovers(state)
