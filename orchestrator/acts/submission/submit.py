"""Submit an experiment: store its files, expand its matrix over the known devices, put its jobs into the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestrator.acts.access.projects import check_project, check_waiting
from orchestrator.acts.access.storage import Storage
from orchestrator.acts.act import Acting, Done, act, of_project
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import ExperimentRow, JobState, Ledger
from orchestrator.ledger.said.notes import with_notes
from orchestrator.model.base import content_hash
from orchestrator.model.device import Device
from orchestrator.model.errors import ServiceDown, SpecError
from orchestrator.model.experiment import Experiment, Measure
from orchestrator.model.job import Cell
from orchestrator.model.people import COMMON, Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import Right
from orchestrator.spec.expansion.expand import Expansion, expand

from .code import beyond_submitting
from .prepare import prepare
from .sent import sent_folder
from .uploads import Uploads

MAX_RERUNS = 10_000


@dataclass(frozen=True)
class Submission(Done):
    experiment_id: str
    expansion: Expansion
    resumed: bool
    """An unfinished experiment of the same content was there; nothing new was submitted."""

    @property
    def did(self) -> bool:
        return not self.resumed

    @property
    def devices(self) -> set[str]:
        """Return those that may run its jobs."""
        return {serial for job in self.expansion.jobs for serial in job.candidates}

    @cached_property
    def cells(self) -> int:
        """Count the configurations that run on a device; the others are among the exclusions."""
        return len({job.cell.cell_id for job in self.expansion.jobs if job.role == "work"})

    @cached_property
    def warnings(self) -> list[str]:
        """Return what will not come out as it was asked for."""
        work = [job for job in self.expansion.jobs if job.role == "work"]
        found = {why for job in work if (why := job.sampling.why_out_of_reach)}
        return sorted(found | {why for job in work[:1] if (why := _without_power(job.measure))})

    @property
    def lines(self) -> list[str]:
        jobs = self.expansion.jobs
        canaries = sum(job.role == "canary" for job in jobs)
        more = f", {canaries} of them canaries" if canaries else ""
        for job in self.expansion.reserve[:1]:
            to_precision = job.sampling.target_interval is not None
            up_to = f"; up to {counted(job.sampling.max_blocks, 'block')} of a configuration that needs them"
            more += up_to if to_precision else "; more follow by their results"
        return [
            f"{'resumed' if self.resumed else 'submitted'} {self.experiment_id}: {counted(len(jobs), 'job')} of "
            f"{counted(self.cells, 'configuration')} on {counted(len(self.devices), 'device')}, "
            f"as they are here now{more}"
        ]

    @property
    def data(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment_id,
            "resumed": self.resumed,
            "jobs": len(self.expansion.jobs),
            "cells": self.cells,
            "devices": sorted(self.devices),
            "exclusions": [asdict(each) for each in self.expansion.exclusions],
            "warnings": self.warnings,
        }


@act(Right(Role.SUBMIT), at=of_project, once=True, beside=beyond_submitting)
def submit(
    acting: Acting,
    experiment: Experiment,
    base: Path | None,
    *,
    again: bool = False,
    project: str = COMMON,
    files: Mapping[str, str] | None = None,
) -> Submission:
    """Submit an experiment of a project whose files lie relative to `base`; None: the project sent them, and `files`
    has the SHA-256 of each by its name.

    The same content (files included) in the same project is the same experiment: an unfinished one is resumed, unless
    `again`; a finished one is rerun under a new id. Raises SpecError where nothing can run, ModelFileError where a file
    cannot be used, NotAllowed beyond the project's storage, UnknownName where there is no such project, ServiceDown
    where no farm runs.
    """
    ledger, inventory = acting.ledger, Inventory(acting.site.redis())
    check_project(ledger, project)
    artifacts, storage = Artifacts(acting.site.settings.state), Storage.of(ledger, acting.site.settings, project)
    with nullcontext(base) if base is not None else sent_folder(experiment, files or {}, Uploads(storage)) as folder:
        experiment = prepare(experiment, folder, artifacts, project)
    stem = f"{experiment.name}-{content_hash(experiment)[:8]}"
    latest, following = _ids(stem, ledger.listed.projects(stem), project)
    if latest is not None and not again and not (row := ledger.experiment(latest)).finished:
        return Submission(latest, _stored(ledger, row), resumed=True)
    storage.let(artifacts.sizes_in(experiment.model_dump_json()))
    devices = with_notes(inventory.devices(), ledger.standing.noted(), frozenset([project]))
    expansion = expand(experiment, following, _open_to(project, devices, ledger))
    check_waiting(ledger, project, len(expansion.jobs))
    if not expansion.jobs:
        raise SpecError("nothing can run on the selected devices:\n" + _reasons(expansion))
    who = acting.actor.who
    excluded, reserve = expansion.exclusions, expansion.reserve
    is_new = ledger.submit(following, experiment, expansion.jobs, excluded, reserve, by=who, project=project)
    acting.effects.append(lambda: wake_scheduler(acting))
    return Submission(following, expansion, resumed=not is_new)


def _open_to(project: str, devices: Sequence[Device], ledger: Ledger) -> list[Device]:
    """Return the devices that are in no other project's pool. Raises SpecError where none is left."""
    pools = {each.serial: each.project for each in ledger.standing.holds() if each.is_pool}
    found = [device for device in devices if pools.get(device.serial, project) == project]
    if devices and not found:
        names = ", ".join(sorted(set(pools.values())))
        remedy = f"submit to one of these projects, or ask who administers the farm for devices of {project}"
        raise SpecError(f"all devices are reserved for other projects: {names}", remedy=remedy)
    return found


def wake_scheduler(acting: Acting) -> None:
    """Tell the scheduler of new jobs; where Redis is away, it finds them by itself."""
    with suppress(ServiceDown):
        Inventory(acting.site.redis()).tell_scheduler()


def _without_power(measure: Measure) -> str:
    """Return the warning about power options without the quantity `power`; empty where there is no such option."""
    usual = type(measure)()
    given = [name for name in ("power_source", "power_period") if getattr(measure, name) != getattr(usual, name)]
    if not given or "power" in measure.quantities:
        return ""
    return f"`measure.{given[0]}` has no effect: add `power` to `measure.quantities`"


def _ids(stem: str, known: Mapping[str, str], project: str) -> tuple[str | None, str]:
    """The newest experiment of this content in this project, if any, and the id that follows. `known`: the project of
    each experiment."""
    latest, following = None, stem
    for rerun in range(2, MAX_RERUNS):
        if following not in known:
            break
        latest = following if known[following] == project else latest
        following = f"{stem}-{rerun}"
    return latest, following


def _stored(ledger: Ledger, row: ExperimentRow) -> Expansion:
    rows = ledger.jobs(row.id)
    jobs = tuple(found.job for found in rows if found.state is not JobState.HELD)
    cells: dict[str, Cell] = {job.cell.cell_id: job.cell for job in jobs if job.role == "work"}
    reserve = tuple(found.job for found in rows if found.state is JobState.HELD)
    return Expansion(jobs, row.exclusions, tuple(cells.values()), reserve)


def _reasons(expansion: Expansion) -> str:
    lines = [f"    {e.serial or 'every device'}, {e.cell}: {e.reason}" for e in expansion.exclusions]
    return "\n".join(lines[:20] + ([f"    and {len(lines) - 20} more"] if len(lines) > 20 else []))
