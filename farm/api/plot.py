"""Draw a column of results: a dot for each device and cell, with its interval."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.errors import UnknownName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

INTERVALS = {"median_ms": ("low_ms", "high_ms"), "energy_j": ("low_j", "high_j")}
ROW_IN, HEAD_IN, WIDE_IN = 0.32, 0.9, 8.0
NAMES = 3
"""The columns device, source and model come first in a row of results: what follows, up to the figures, is the cell."""


@dataclass(frozen=True)
class Plot:
    """A notebook shows it in place; `figure` is matplotlib's, to change or save it."""

    figure: Figure

    def _repr_svg_(self) -> str:
        drawn = io.StringIO()
        self.figure.savefig(drawn, format="svg")
        return drawn.getvalue()


def dots(rows: pd.DataFrame, metric: str) -> Plot:
    """One line a result, by device. Raises UnknownName where no result has such a figure."""
    from matplotlib.figure import Figure

    if metric not in rows or rows[metric].isna().all():
        known = [name for name in rows.select_dtypes("number") if not rows[name].isna().all()]
        raise UnknownName(f"no result has a {metric}", remedy=f"there are: {', '.join(known)}")
    shown = rows.dropna(subset=[metric]).iloc[::-1]
    cell = list(rows.columns[NAMES : rows.columns.get_loc("median_ms")])
    names = [
        " ".join([row["device"], row["source"].upper() if row["source"] != "phone" else "", *map(str, row[cell])])
        for _, row in shown.iterrows()
    ]
    figure = Figure(figsize=(WIDE_IN, HEAD_IN + ROW_IN * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.plot(shown[metric], range(len(shown)), "o")
    if metric in INTERVALS:
        low, high = (shown[end].fillna(shown[metric]).astype(float) for end in INTERVALS[metric])
        axes.hlines(range(len(shown)), low, high)
    axes.set_yticks(range(len(shown)), names)
    axes.set_xlim(left=0)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlabel(metric)
    axes.grid(axis="x", alpha=0.3)
    return Plot(figure)
