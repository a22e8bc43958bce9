"""The facts of a night from the ledger and the devices, and what a night puts into the ledger."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from orchestrator.acts import Actor, Site
from orchestrator.acts.experiments import cancel, submit_jobs
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import ExperimentRow
from orchestrator.ledger.rows import OPEN
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.model.device import Device, Health
from orchestrator.model.errors import FarmError, ServiceDown, UnknownName
from orchestrator.model.job import Job
from orchestrator.spec.expansion.expand import expand

from .judge import Findings, judged
from .night import Night, Wave
from .steps import View, patience_s
from .table import Measured, table

log = logging.getLogger(__name__)


class NightLedger:
    """Every method raises ServiceDown where Redis or the ledger is away."""

    def __init__(self, site: Site, actor: Actor, inventory: Inventory) -> None:
        self._site, self._actor = site, actor
        self._ledger, self._inventory = site.ledger, inventory

    def view(self, night: Night, now: float) -> View:
        """The night as `next_step` looks at it."""
        if night.is_judged:
            return View(now)
        devices = self._devices()
        rows = list(self._experiments(night.waves))
        unfinished = [row for row in rows if not row.finished]
        begun = {row.id for row in rows}
        ready = frozenset(device.serial for device in devices if device.state.health is Health.READY)
        is_due = rows and not unfinished and all(w.experiment_id in begun or w.refused for w in night.waves)
        return View(
            now=now,
            submitted=frozenset(begun),
            unfinished=tuple(row.id for row in unfinished),
            stuck=tuple(job for row in unfinished for job in self._stuck(row, ready, now - patience_s(night))),
            ready=ready,
            probing=any(device.state.health is Health.PROBING for device in devices),
            table=table(night, self._measured(night)) if is_due else (),
        )

    def submit(self, night: Night, wave: Wave) -> str:
        """Put a wave's jobs into the ledger; why nothing of it can run, else an empty text."""
        part = next(part for part in night.parts if part.name == wave.part)
        sampling = part.sampling.model_copy(update={"blocks": wave.blocks})
        experiment = part.model_copy(update={"sampling": sampling})
        usable = [device for device in self._devices() if device.state.health is Health.READY]
        try:
            expansion = expand(experiment, wave.experiment_id, usable)
        except ServiceDown:
            raise
        except FarmError as e:
            return str(e)
        jobs = tuple(filter(partial(_wanted, wave), expansion.jobs))
        if not any(job.role == "work" for job in jobs):
            return "no device that is here can run any of its configurations"
        submit_jobs(self._site, self._actor, wave.experiment_id, experiment, jobs, expansion.exclusions)
        log.info("event=night_submitted night=%s experiment=%s jobs=%d", night.night_id, wave.experiment_id, len(jobs))
        return ""

    def cancel(self, night: Night, targets: Iterable[str], why: str) -> None:
        """Cancel jobs, or the open ones of experiments."""
        count = len(cancel(self._site, self._actor, *targets).cancelled)
        log.warning("event=night_cancelled night=%s jobs=%d why=%s", night.night_id, count, why.replace(" ", "_"))

    def judged(self, night: Night, now: float) -> Night:
        """The night with what came out of it."""
        jobs = [job for row in self._experiments(night.waves) for job in self._ledger.jobs(row.id)]
        devices = {device.serial: device for device in self._devices()}
        return judged(night, Findings(now, self._measured(night), jobs, devices))

    def _devices(self) -> list[Device]:
        return devices_for_work(self._inventory.devices(), self._inventory.hosts(), self._ledger, frozenset())

    def _experiments(self, waves: Iterable[Wave]) -> Iterable[ExperimentRow]:
        """Yield the experiments that are there."""
        for wave in waves:
            with suppress(UnknownName):
                yield self._ledger.experiment(wave.experiment_id)

    def _stuck(self, row: ExperimentRow, ready: frozenset[str], since: float) -> list[str]:
        """Open jobs of devices that are not ready, and of which no job has ended since then."""
        over = self._ledger.device_counts(row.id)
        away = {serial for serial, (done, total) in over.items() if done < total} - ready
        if not away or row.submitted_at > since:
            return []
        jobs = [job for job in self._ledger.jobs(row.id) if job.job.candidates[0] in away]
        lively = {job.job.candidates[0] for job in jobs if (job.ended_at or 0.0) > since}
        return [job.job_id for job in jobs if job.state in OPEN and job.job.candidates[0] not in lively]

    def _measured(self, night: Night) -> list[Measured]:
        found = []
        for wave in night.waves:
            with suppress(UnknownName):
                row = self._ledger.experiment(wave.experiment_id)
                cells = self._ledger.cells(row.id)
                found.append(Measured(wave, cells, tuple(self._ledger.figures(row.id)), row.exclusions))
        return found


def _wanted(wave: Wave, job: Job) -> bool:
    """Return whether a job is of the wave; canaries are of every device that has one of its cells."""
    if wave.cells is None:
        return True
    serial = job.candidates[0]
    if job.role == "canary":
        return any(serial == device for device, _ in wave.cells)
    return (serial, job.cell.cell_id) in wave.cells
