"""`python -m farm.tasks.beat`: Celery's beat, and the worker that does the periodic work whose tasks it sends.

Several may run: a work is begun by one of them (`coordination/tasks/periodic.py`). Where none does, the scheduler
sees to Redis itself, and asks for nights.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path

from celery import Celery
from redis import Redis

from farm import endpoints
from farm.access import SCHEDULE, user_by
from orchestrator.acts import Site
from orchestrator.coordination import access, keys
from orchestrator.coordination.client import client_of, connect
from orchestrator.coordination.sweep import Sweep
from orchestrator.coordination.tasks.consumer import beat, consume
from orchestrator.coordination.tasks.periodic import ADMIT, NIGHTS, SWEEP, WEBHOOKS, WORKS, Periodic, Work
from orchestrator.coordination.tasks.queue import make_app
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, ServiceDown
from orchestrator.nightly.keeper import Keeper
from orchestrator.system.config import Settings, settings
from orchestrator.system.process import begin

from .nightly import keeper_of
from .webhooks import tell_webhooks

log = logging.getLogger(__name__)


def ready(state: Path) -> Path:
    """Its time says when nights were last brought forward."""
    return state / "beat.turned"


class Upkeep:
    """The periodic work of a farm, each by its name; an outage is logged once and waited out."""

    def __init__(self, farm: Settings, ledger: Ledger, redis: Redis, *, clock: Callable[[], float] = time.time) -> None:
        self._farm, self._ledger, self._redis, self._clock = farm, ledger, redis, clock
        self._periodic, self._sweep, self._down = Periodic(redis), Sweep(redis), set[Work]()
        self._acts: Mapping[Work, Callable[[], None]] = {
            NIGHTS: self._nights, SWEEP: self._sweep.look, ADMIT: self._admit, WEBHOOKS: self._webhooks,
        }  # fmt: skip

    def do(self, work: Work) -> None:
        """Do a work if it is due, and nobody else does it."""
        try:
            with self._periodic.turn(work) as is_due:
                if is_due:
                    self._acts[work]()
            self._down.discard(work)
        except ServiceDown as e:
            if work not in self._down:
                log.error("event=service_down work=%s error=%s", work.name, str(e).replace("\n", " "))
            self._down.add(work)

    @cached_property
    def _keeper(self) -> Keeper:
        return keeper_of(Site(self._farm, self._ledger, partial(connect, self._farm)), user_by(SCHEDULE))

    def _nights(self) -> None:
        self._keeper.turn(self._clock())
        ready(self._farm.state).touch()

    def _webhooks(self) -> None:
        tell_webhooks(self._ledger, endpoints.pages_of(self._farm.state), here=self._farm.webhooks_here)

    def _admit(self) -> None:
        access.enter(self._redis, self._ledger.standing.admitted())


def register(app: Celery, do: Callable[[Work], None]) -> None:
    """Give the app a task for each work. They send no events: so many would hide all others."""
    for work in WORKS:
        _register(app, work, do)


def _register(app: Celery, work: Work, do: Callable[[Work], None]) -> None:
    @app.task(name=work.task, shared=False, send_events=False)  # type: ignore[untyped-decorator]
    def task() -> None:
        do(work)


def run(farm: Settings) -> int:
    """Send and do the periodic work until SIGTERM or SIGINT; exit status."""
    logging.getLogger("celery").setLevel(logging.WARNING)  # else some lines for each task
    logging.getLogger("celery.beat").setLevel(logging.CRITICAL)  # else some for each that an outage holds up
    with Ledger(farm.ledger) as ledger, client_of(farm) as redis:
        app = make_app(farm)
        register(app, Upkeep(farm, ledger, redis).do)
        log.info("event=started")
        with beat(app):
            return consume(app, f"beat@{farm.host}", keys.WORK, len(WORKS))


def main() -> int:
    """Entry point: exit status 1 with a message where the set-up is wrong."""
    begin()
    try:
        return run(settings())
    except FarmError as e:
        log.error("event=failed error=%s", e)
        return 1


if __name__ == "__main__":
    sys.exit(main())
