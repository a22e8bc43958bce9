"""The part of `farm ledger recompute` that reads the kept output of programs again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farm.access import COMMAND_LINE, site_of, user_by

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.model.job import Job
    from orchestrator.model.record import Record
    from orchestrator.system.config import Settings


def reread(
    settings: Settings, ledger: Ledger, names: Sequence[str], engine: str | None, *, dry_run: bool
) -> list[dict[str, Any]]:
    """Read the output of these experiments again, of one engine or of all; return what changed, or with `dry_run` what
    would."""
    from orchestrator.acts import experiments
    from workers.engines import Engines, Host
    from workers.execution import reread as reading

    engines = Engines(Host.alone(settings.state), settings.engines)
    readers = {each.name: each for each in engines if reading.reads_text(each) and engine in (None, each.name)}

    def again(record: Record, job: Job) -> Record | None:
        return reading.reread(record, job, readers[job.cell.engine]) if job.cell.engine in readers else None

    ours = [name for name in names if any(cell.engine in readers for cell in ledger.cells(name).values())]
    if dry_run:
        pairs = experiments.read_again(ledger, ours, again)
        return [experiments.reading_of(before, after) for before, after in pairs]
    return experiments.reread(site_of(settings, ledger), user_by(COMMAND_LINE), ours, again).changed if ours else []
