"""Bring nights forward: begin those that are due, do the next step of each, store what it changes.

It remembers nothing: what a night needs next is read from the ledger. Another keeper may take over at any moment, and
two at once do no harm, but that a night may be told twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from orchestrator.acts import Actor, Site
from orchestrator.acts.nights import begin_night
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import NightText, Schedule
from orchestrator.ledger.packed import readable
from orchestrator.model.errors import FarmError, ServiceDown

from .night import Night, Told
from .night_ledger import NightLedger
from .past import readable_nights
from .plan import REMEMBERED_NIGHTS, bare, expected, not_run, plan
from .schedule import due, is_moment
from .steps import Begin, Cancel, Judge, Over, Submit, Tell, Wait, next_step
from .suite import Suite, load

log = logging.getLogger(__name__)

Teller = Callable[[Night], Sequence[Told]]
"""Tells whoever the suite names how a night went; returns whom, and whether it arrived."""
LOOKED_AT = 100
"""Nights among which the last one that was scheduled is looked for."""


class Keeper:
    """One turn a call. Raises ServiceDown where Redis or the ledger is away, and loses nothing by it."""

    def __init__(self, site: Site, actor: Actor, inventory: Inventory, tell: Teller) -> None:
        """`actor`: who begins nights, and submits and cancels their jobs."""
        self._site, self._actor = site, actor
        self._nights, self._artifacts, self._tell = site.ledger.nights, Artifacts(site.settings.state), tell
        self._looks = NightLedger(site, actor, inventory)

    def turn(self, now: float) -> None:
        """Begin what is due; bring every night that is under way as far forward as it goes."""
        for schedule in self._nights.schedules():
            try:
                self._begin_due(schedule, now)
            except ServiceDown:
                raise
            except Exception:
                log.exception("event=schedule_failed suite=%s", schedule.suite)
        for text in self._nights.of(over=False):
            self._advance(text, now)

    def begin(self, suite: Suite, file: Path, due_at: float, now: float, *, scheduled: bool) -> Night:
        """Store a night of a suite. Raises SpecError, ModelFileError where it cannot run."""
        earlier = readable_nights(self._nights.of(suite.name, limit=REMEMBERED_NIGHTS))
        night = plan(suite, file, due_at, now, scheduled=scheduled, artifacts=self._artifacts)
        return self._store(night.model_copy(update={"expected": expected(suite, earlier)}))

    def _store(self, night: Night) -> Night:
        body = night.model_dump_json().encode()
        if begin_night(self._site, self._actor, night.night_id, night.suite.name, night.due_at, body).is_new:
            log.info("event=night_begins night=%s outcome=%s", night.night_id, night.outcome or "")
        return night

    def _begin_due(self, schedule: Schedule, now: float) -> None:
        read = partial(Suite.model_validate_json, schedule.body)
        if (known := readable(f"the schedule of suite {schedule.suite}", read)) is None:
            return
        times = self._nights.due_times(schedule.suite, LOOKED_AT)
        last = next((at for at in times if is_moment(schedule.cron, at)), schedule.since)
        found = due(schedule.cron, max(last, schedule.since), now, known.budget)
        forgotten = [f"{found.forgotten} nights before it were missed too"] * bool(found.forgotten)
        for moment in found.missed:
            why = "the farm did not run when it was due, or was too busy: it was missed"
            self._store(not_run(bare(known, Path(schedule.file), moment, scheduled=True), why, *forgotten))
        if found.begin is None:
            return
        if any(night.began_at for night in readable_nights(self._nights.of(schedule.suite, over=False))):
            why = "the night before was still under way: give the suite less `budget`, or fewer nights"
            self._store(not_run(bare(known, Path(schedule.file), found.begin, scheduled=True), why))
            return
        self._begin_scheduled(schedule, known, found.begin, now)

    def _begin_scheduled(self, schedule: Schedule, known: Suite, due_at: float, now: float) -> None:
        """The suite as its file is now; what cannot run is a result."""
        file = Path(schedule.file)
        try:
            suite = load(file)
            if suite.name != schedule.suite:
                raise FileNotFoundError(f"it is called `{suite.name}` now, and was scheduled as `{schedule.suite}`")
            self.begin(suite, file, due_at, now, scheduled=True)
        except ServiceDown:
            raise
        except (FarmError, OSError) as e:
            why = f"its suite cannot be run: {e}"
            self._store(not_run(bare(known, file, due_at, scheduled=True), why))

    def _advance(self, text: NightText, now: float) -> None:
        """Steps until there is nothing to do, or somebody else has brought it forward."""
        try:
            while (following := self._step(text, now)) is not None:
                text = following
        except ServiceDown:
            raise
        except Exception as e:
            log.exception("event=night_failed night=%s", text.id)
            self._fail(text, f"a step of it failed: {type(e).__name__}: {e}")

    def _step(self, text: NightText, now: float) -> NightText | None:
        """One step; the night as it is stored then. None: it waits, is over, or is somebody else's."""
        night = Night.model_validate_json(text.body)
        match next_step(night, self._looks.view(night, now)):
            case Wait() | Over():
                return None
            case Submit(wave):
                if refused := self._looks.submit(night, wave):
                    waves = tuple(w.model_copy(update={"refused": refused}) if w == wave else w for w in night.waves)
                    return self._save(text, night.model_copy(update={"waves": waves}))
                return text
            case Cancel(targets, why):
                self._looks.cancel(night, targets, why)
                return text
            case Begin(waves):
                return self._save(text, night.model_copy(update={"waves": (*night.waves, *waves)}))
            case Judge():
                return self._save(text, self._looks.judged(night, now))
            case Tell():
                over = night.model_copy(update={"ended_at": now})
                self._save(text, over.model_copy(update={"told": self._told(over, now)}))
        return None

    def _told(self, night: Night, now: float) -> tuple[Told, ...]:
        """Tell of a night; what cannot be told is in the log, in the night and on the command line."""
        try:
            return tuple(self._tell(night))
        except Exception as e:
            log.exception("event=night_not_told night=%s", night.night_id)
            return (Told(to="all", at=now, error=f"{type(e).__name__}: {e}"),)

    def _save(self, text: NightText, night: Night) -> NightText | None:
        over = night.ended_at is not None
        if not self._nights.save(text, night.model_dump_json().encode(), over=over):
            return None
        return self._nights.one(text.id)

    def _fail(self, text: NightText, why: str) -> None:
        """It ends here, and is told: a night that fails at every turn is no night. One that cannot be read stays."""
        night = next(iter(readable_nights([self._nights.one(text.id)])), None)
        if night is not None and not night.is_judged:
            self._save(self._nights.one(text.id), not_run(night, why))
