"""Energy of an inference, by cell and device, of an experiment and of others with the same file."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection, select

from orchestrator.ledger.tables import EXPERIMENTS
from orchestrator.model.power import Scope

from .reading import briefs

NEWEST = 20
"""Experiments with the same file that are looked at, the last ones."""
Energies = dict[tuple[str, str], dict[str, list[float]]]


def energies(connection: Connection, experiment_id: str) -> Energies:
    """(Cell, kind of figure) -> serial -> joules of each block. Only figures of one kind compare: net or gross, by one
    source, of the whole device; those whose gain is unknown compare with no other device, and are left out."""
    spec = select(EXPERIMENTS.c.spec).where(EXPERIMENTS.c.id == experiment_id).scalar_subquery()
    alike = select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.spec == spec)
    newest = connection.scalars(alike.order_by(EXPERIMENTS.c.sequence.desc()).limit(NEWEST)).all()
    found: Energies = defaultdict(lambda: defaultdict(list))
    for brief in briefs(connection, {"experiment_id": newest}):
        for metric, joules in () if brief.relative_energy else brief.values.items():
            basis, *source = metric.removeprefix("energy/").split(" ")
            if metric.startswith("energy/") and source[1:2] == [Scope.DEVICE]:
                found[brief.cell_id, f"{basis} {source[0]}"][brief.serial].append(joules)
    return found
