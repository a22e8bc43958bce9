"""The keeper of nights, and how it tells of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from farm import endpoints
from orchestrator.acts import Actor, Site
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.nightly import Night, Told
from orchestrator.nightly.keeper import Keeper
from orchestrator.nightly.summary import headline, summary
from orchestrator.system.config import Settings
from orchestrator.system.private_files import make_private

log = logging.getLogger(__name__)


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
