"""Submit an experiment: store its files, expand its matrix over the known devices, put its jobs into the ledger."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.errors import ServiceDown, SpecError
from orchestrator.expansion.expand import Expansion, expand
from orchestrator.ledger import ExperimentRow, JobState, Ledger
from orchestrator.model.base import content_hash
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell

from .prepare import prepare

MAX_RERUNS = 10_000


@dataclass(frozen=True)
class Submission:
    experiment_id: str
    expansion: Expansion
    resumed: bool
    """An unfinished experiment of the same content was there; nothing new was submitted."""


def submit(
    settings: Settings,
    ledger: Ledger,
    inventory: Inventory,
    experiment: Experiment,
    base: Path,
    *,
    again: bool = False,
) -> Submission:
    """Submit an experiment whose files lie relative to `base`.

    The same content (files included) is the same experiment: an unfinished one is resumed, unless `again`; a finished
    one is rerun under a new id. Raises SpecError where nothing can run, ModelFileError where a file cannot be used.
    """
    experiment = prepare(experiment, base, Artifacts(settings.state))
    stem = f"{experiment.name}-{content_hash(experiment)[:8]}"
    known = {row.id: row for row in ledger.experiments()}
    latest, following = _ids(stem, known)
    if latest is not None and not again and not known[latest].finished:
        return Submission(latest, _stored(ledger, known[latest]), resumed=True)
    expansion = expand(experiment, following, inventory.devices())
    if not expansion.jobs:
        raise SpecError("nothing can run on the selected devices:\n" + _reasons(expansion))
    ledger.submit(following, experiment, expansion.jobs, expansion.exclusions, expansion.reserve)
    with suppress(ServiceDown):  # it is accepted: the scheduler finds it by itself
        inventory.tell_scheduler()
    return Submission(following, expansion, resumed=False)


def _ids(stem: str, known: dict[str, ExperimentRow]) -> tuple[str | None, str]:
    """The newest experiment of this content, if any, and the id that follows."""
    latest, following = None, stem
    for rerun in range(2, MAX_RERUNS):
        if following not in known:
            break
        latest, following = following, f"{stem}-{rerun}"
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
