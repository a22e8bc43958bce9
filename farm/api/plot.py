"""Draw a quantity of results: a dot for each device and configuration, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from orchestrator.report.charts.paper import Drawn


@dataclass(frozen=True)
class Plot:
    """A notebook shows it in place; `figure` is matplotlib's, to change; `save` writes what `farm plot -o` writes."""

    drawn: Drawn

    @property
    def figure(self) -> Figure:
        return self.drawn.figure

    @property
    def caption(self) -> str:
        """The text below the figure, which says what is seen; it stands in a saved file's metadata too."""
        return self.drawn.caption

    def save(self, path: str | Path) -> Path:
        """Write it as .pdf, .svg or .png. Raises Unsupported for another ending."""
        from orchestrator.report.charts.paper import save

        return save(self.drawn, path)

    def _repr_svg_(self) -> str:
        from orchestrator.report.charts.paper import saved

        return saved(self.drawn, "svg").decode()


def dots(results: Sequence[Mapping[str, Any]], metric: str, title: str = "") -> Plot:
    """One line a result of `farm results --json`, by device. Raises UnknownName where no result has such a figure."""
    from orchestrator.report.charts.paper import draw

    return Plot(draw(results, metric, title))
