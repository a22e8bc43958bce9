"""Write the raw figures of an experiment into a file, one a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from orchestrator.ledger import Ledger

from .long_rows import What, columns, rows
from .row_files import Form, write


def measured(ledger: Ledger, experiment_id: str) -> What:
    """Return what there is to write: samples, unless every record has layers alone (as imports may)."""
    blocks = ledger.figures(experiment_id)
    sampled = any(block.times or block.first_ns != 0 for block in blocks)
    return "layers" if any(block.pass_ms is not None for block in blocks) and not sampled else "samples"


def export(
    ledger: Ledger, experiment_id: str, form: Form, what: What, file: IO[bytes], labels: Sequence[int] | None = None
) -> int:
    """Write every row, those of attempts that do not count among them; how many there are.

    `labels`: the right class of each example, for predictions.
    """
    cells = ledger.cells(experiment_id)
    made = rows(what, ledger.records(experiment_id), cells, labels)
    return write(form, columns(what, cells.values()), made, file)
