"""The matrix of a night as a heat map: a table of devices by cells, for each metric; and ratios as small pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from markupsafe import Markup

from orchestrator.analysis.comparison import Compared
from orchestrator.nightly import NightRow
from orchestrator.report.parts.links import Links

from .morning import Morning, row_device

FULL = 5.0
"""Margins beyond which a colour is full."""
NEUTRAL_SHARE = 0.2
MOST_COLUMNS, MOST_MAPS = 40, 6
WIDTH_PX, HEIGHT_PX = 180, 18
MARKS = {
    "worse": "▲ worse", "better": "▼ better", "unknown": "unknown", "not confirmed": "not confirmed",
    "missing": "missing", "unavailable": "·", "same": "",
}  # fmt: skip
"""The words in a square, for who sees no colours."""
NEUTRAL = ("unknown", "not confirmed", "missing")
"""Words that are no failure, nor the same."""


class Square(NamedTuple):
    text: str
    title: str
    style: str


class Map(NamedTuple):
    """One metric."""

    name: str
    cells: list[str]
    rows: Sequence[tuple[str, list[Square | None]]]
    """The squares of each device, one for each cell; None where nothing was asked."""


def heat_maps(found: Morning, links: Links) -> list[Map]:
    """Return maps by metric, in the order in which they stand in the night; those with a difference first."""
    metrics: dict[str, list[NightRow]] = {}
    for row in found.night.rows:
        metrics.setdefault(f"{row.compared.metric} {row.compared.basis}".strip(), []).append(row)
    quiet = {name: all(row.said == "same" for row in rows) for name, rows in metrics.items()}
    ordered = sorted(metrics, key=lambda name: quiet[name])
    return [_map(found, name, metrics[name], links) for name in ordered[:MOST_MAPS]]


def _map(found: Morning, name: str, rows: Sequence[NightRow], links: Links) -> Map:
    cells = list(dict.fromkeys(found.named(row) for row in rows))[:MOST_COLUMNS]
    devices = {row_device(row): links.device(row.compared.device, row_device(row)) for row in rows}
    squares = {(row_device(row), found.named(row)): _square(row) for row in rows}
    told = [(linked, [squares.get((device, cell)) for cell in cells]) for device, linked in devices.items()]
    return Map(name, cells, told)


def _square(row: NightRow) -> Square:
    what, ratio = row.said, row.compared.ratio
    text = MARKS[what] if ratio is None else f"{MARKS[what]} {100 * (ratio - 1):+.1f}".strip()
    return Square(text, what, _style(row.compared, what))


def _style(row: Compared, what: str) -> str:
    if what in NEUTRAL:
        colour, share = "muted", NEUTRAL_SHARE
    elif what in ("worse", "better") and (ratio := row.at_least):
        colour, share = what, min(1.0, abs(log(ratio)) / (FULL * row.margin))
    else:
        return ""
    return f"background:color-mix(in srgb, var(--{colour}) {100 * share:.0f}%, transparent)"


def reach(rows: Sequence[NightRow]) -> float:
    """Return how far the common scale of pictures of ratios goes, in logarithms."""
    ends = [abs(log(end)) for row in rows for end in _ends(row.compared) if end > 0]
    return min(0.7, max([0.04, *ends]) * 1.05)


def _ends(row: Compared) -> tuple[float, ...]:
    if row.ratio is None:
        return ()
    return (row.ratio, row.interval.low, row.interval.high) if row.interval else (row.ratio,)


def ratio_picture(row: NightRow, scale: float) -> Markup:
    """The ratio as a dot, its 95 % interval as a line, the margin as a band around 1; empty without a ratio."""
    found = row.compared
    if found.ratio is None or found.ratio <= 0:
        return Markup("")
    x = [_x(end, scale) for end in ((found.interval.low, found.interval.high) if found.interval else ())]
    band, low, middle = _x(1 + found.margin, scale), _x(1 - found.margin, scale), HEIGHT_PX / 2
    what = row.said
    colour = f"var(--{what})" if what in ("worse", "better") else "var(--muted)"
    ends = f'x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{middle}" y2="{middle}"' if x else ""
    line = f'<line {ends} stroke="{colour}" stroke-width="2"/>' if x else ""
    return Markup(  # noqa: S704  (figures and colours of ours alone)
        f'<svg class="ratio" role="img" aria-label="ratio {found.ratio:.3f}" viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}">'
        f'<rect x="{low:.1f}" width="{band - low:.1f}" y="0" height="{HEIGHT_PX}" fill="var(--line)" opacity=".5"/>'
        f'<line x1="{WIDTH_PX / 2}" x2="{WIDTH_PX / 2}" y1="0" y2="{HEIGHT_PX}" stroke="var(--muted)"/>'
        f'{line}<circle cx="{_x(found.ratio, scale):.1f}" cy="{middle}" r="4" fill="{colour}"/></svg>'
    )


def _x(ratio: float, scale: float) -> float:
    share = max(-1.0, min(1.0, log(max(ratio, 1e-9)) / scale))
    return WIDTH_PX / 2 * (1 + 0.97 * share)
