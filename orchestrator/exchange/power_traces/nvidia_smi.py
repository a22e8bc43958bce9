"""Logs of `nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 100`: local dates, and values with their unit.

Of further columns `power.draw` is taken where it is the only one of its kind. Rows of several GPUs follow each other,
and a mean over them would be no power: they are refused, known by a column that tells GPUs apart, by rows that come
in bunches, or by levels that come in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.exchange.delimited_table import Table, cell

from . import plain
from .checks import periods_of_levels
from .dates import form_of, seconds
from .recording import Recording, Told

FORMAT = "nvidia-smi"
DRAWN = "power.draw"
WHICH = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
BUNCHED = 0.1
"""One GPU's rows come evenly: of several, three steps in ten are shorter than this share of the long ones."""
ONE = "record one of them: nvidia-smi -i 0"


def matches(head: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether the first row is its titles."""
    titles = head[0][1] if head else []
    return "timestamp" in titles and any(title.startswith(DRAWN) for title in titles)


def read(table: Table, told: Told) -> list[Recording]:
    """The run of one file. Raises TableError."""
    head = table.head()
    titles = head[0][1] if head else []
    for index, title in enumerate(titles):
        found = sorted({cell(cells, index) for _, cells in head[1:] if any(cells)})
        if title in WHICH and len(found) > 1:
            what = f"it holds {len(found)} GPUs: {', '.join(found)}"
            raise table.error(head[0][0], title, what, ONE)
    if _bunched([cell(cells, titles.index("timestamp")) for _, cells in head[1:]] if "timestamp" in titles else []):
        raise table.error(head[0][0], "timestamp", "its rows come in bunches, as those of several GPUs do", ONE)
    drawn = [title for title in titles if title.startswith(DRAWN)]
    if told.column is None and len(drawn) == 1:
        told = replace(told, column=drawn[0])
    (recording,) = plain.read(table, told, FORMAT)
    if (count := periods_of_levels(recording.power_w)) > 1:
        what = f"its rows lie on {count} levels in turn, as those of {count} GPUs do"
        raise table.error(head[0][0], DRAWN, what, ONE)
    return [recording]


def _bunched(times: Sequence[str]) -> bool:
    forms = [(text, form) for text in times if (form := form_of(text)) is not None]
    steps = np.diff([at_s for text, form in forms if (at_s := seconds(text, form)) is not None])
    return len(steps) >= 10 and bool(np.quantile(steps, 0.3) < BUNCHED * np.quantile(steps, 0.9))
