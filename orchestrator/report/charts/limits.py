"""Time over a dimension that grew until the device gave up."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from orchestrator.analysis.limits import Limit
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, Chart, bare, logarithmic, new_figure, style
from orchestrator.report.heading import put_heading

from .rows import WIDTH_PX

HEIGHT_PX = 300
MARKS = {"killed": "X", "refused": "s", "failed": "v"}
MOST = len(PALETTE)


def limits(found: Sequence[Limit], timed: str) -> Chart | None:
    """A line for each cell and device through what ran; marks where it ended. `timed`: inference, epoch."""
    shown = [one for one in found if one.largest is not None][:MOST]
    if not shown:
        return None
    with style():
        figure = new_figure(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        keys, ends = list[Line2D](), set[str]()
        for one, colour in zip(shown, PALETTE, strict=False):
            ran = [(probe.value, probe.median_ms) for probe in one.probes if probe.median_ms is not None]
            axes.plot(*zip(*ran, strict=True), color=colour, marker="o", markersize=3.5, linewidth=1.2)
            keys.append(Line2D([], [], color=colour, label=f"{one.serial} {one.label}"))
            for probe in one.probes:
                if probe.ended in MARKS:
                    ends.add(probe.ended)
                    axes.plot(
                        [probe.value], [0.03], color=colour, marker=MARKS[probe.ended], markersize=6,
                        transform=axes.get_xaxis_transform(), clip_on=False,
                    )  # fmt: skip
        logarithmic(axes.xaxis)
        logarithmic(axes.yaxis)
        axes.set_xlabel(shown[0].dimension)
        axes.set_ylabel(f"ms of one {timed}")
        bare(axes, grid="y")
        keys += [Line2D([], [], color=FOREGROUND, marker=MARKS[end], linestyle="", label=end) for end in sorted(ends)]
        put_heading(figure, keys=keys)
        return Chart(figure, "limits", f"Time over {shown[0].dimension}, and where devices gave up")
