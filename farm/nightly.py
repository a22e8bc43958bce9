"""`python -m farm.nightly`: begins nights when they are due and brings them forward until SIGTERM."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from farm import endpoints
from farm.access import SCHEDULE, user_by
from orchestrator.acts import Actor, Site
from orchestrator.config import Settings, settings
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.errors import FarmError, ServiceDown
from orchestrator.ledger import Ledger
from orchestrator.nightly import Night, Told
from orchestrator.nightly.keeper import Keeper
from orchestrator.nightly.summary import headline, summary
from orchestrator.system.private_files import make_private
from orchestrator.system.process import asked_to_end, begin

log = logging.getLogger(__name__)

TURN_S = 1.0
AWAY_S = 5.0
"""The time until the next try where Redis or the ledger is away."""


def told_in(state: Path) -> Path:
    """Folder of what was told of each night."""
    return state / "nights"


def tell(farm: Settings, ledger: Ledger, night: Night) -> Sequence[Told]:
    """Tell a night's result: in the log, as text and a page in the state folder, and to whom the suite names."""
    log.warning("event=night_over night=%s said=%s", night.night_id, headline(night).replace(" ", "_"))
    folder = told_in(farm.state)
    make_private(folder)
    path = folder / f"{night.night_id.replace(':', '')}.txt"
    path.write_text(summary(night) + "\n")
    return (Told(to=str(path), at=time.time()), *_send(farm, ledger, night, path.with_suffix(".html")))


def _send(farm: Settings, ledger: Ledger, night: Night, path: Path) -> Sequence[Told]:
    """The morning report. Whatever is wrong with it, the text is there."""
    try:
        from orchestrator.report.nights import morning_page, tell  # loads matplotlib; most farms have no nights

        found = tell.morning_of(ledger, night)
        path.write_text(morning_page(found, endpoints.pages_of(farm.state)))
        known = {name: address.get_secret_value() for name, address in farm.tell.items()}
        return (Told(to=str(path), at=time.time()), *tell.tell(found, night.suite.tell, known))
    except Exception as e:  # a report that cannot be made must not hide the night
        log.exception("event=no_morning_report night=%s", night.night_id)
        return (Told(to="morning report", at=time.time(), error=f"{type(e).__name__}: {e}"),)


def keeper_of(site: Site, actor: Actor) -> Keeper:
    """Raises ServiceDown where Redis is away."""
    return Keeper(site, actor, Inventory(site.redis()), lambda night: tell(site.settings, site.ledger, night))


def run(farm: Settings, stop: threading.Event) -> None:
    """Turn until `stop` is set; an outage is logged once and waited out."""
    with Ledger(farm.ledger) as ledger:
        down, keeper = False, None
        log.info("event=started")
        while not stop.is_set():
            try:
                keeper = keeper or keeper_of(Site(farm, ledger, partial(connect, farm)), user_by(SCHEDULE))
                keeper.turn(time.time())
                ready(farm.state).touch()
                down = False
            except ServiceDown as e:
                if not down:
                    log.error("event=service_down error=%s", str(e).replace("\n", " "))
                down = True
            stop.wait(AWAY_S if down else TURN_S)
        log.info("event=stopped")


def ready(state: Path) -> Path:
    """Its time says when the last turn ended."""
    return state / "nightly.turned"


def main() -> int:
    """Entry point: run until SIGTERM or SIGINT; exit status 1 with a message where the set-up is wrong."""
    begin()
    try:
        run(settings(), asked_to_end())
    except FarmError as e:
        log.error("event=failed error=%s", e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
