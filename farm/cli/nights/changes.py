"""`farm changes`: where series of figures change their level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from farm.cli.output import JsonOption, argument, option, out, print_json, say

if TYPE_CHECKING:
    from orchestrator.exchange.series import Point


def changes(
    file: Annotated[Path, argument("FILE.csv", "Columns series, time, value.")],
    least: Annotated[str, option("--least SHARE", "Leave out changes that are smaller than this, e.g. 2%.")] = "0%",
    as_json: JsonOption = False,
) -> None:
    """Print the change points of each series: where its level changes, by how much, and how certain that is.

    A series is one figure over time, from this farm or from any other source. The noise floor of a series is estimated
    from the series itself; single spikes and changes below the floor are not reported. Needs no farm.

    Example: `farm changes nightly.csv --least 2%`
    """
    from orchestrator.exchange.series import read_series

    share = _share(least)
    found = [_changes(name, points, share) for name, points in read_series(file).items()]
    if as_json:
        print_json(found)
    else:
        _show(found)


def _share(text: str) -> float:
    from orchestrator.model.quantity import parse_share

    try:
        return parse_share(text)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--least") from e


def _changes(name: str, points: list[Point], least: float) -> dict[str, Any]:
    from orchestrator.analysis.change_points import change_points

    found = change_points([point.value for point in points], least=least)
    return {
        "series": name,
        "values": len(points),
        "noise": found.noise,
        "floor": found.floor,
        "alike": found.alike,
        "change_points": [
            {"index": each.index, "time": points[each.index].time, **each.model_dump(exclude={"index"})}
            for each in found.points
        ],
    }


def _show(found: list[dict[str, Any]]) -> None:
    from orchestrator.report.listing import Head, Listing

    heads = [Head(name, True) for name in ("index", "from", "before", "after", "change", "p")]
    rows = [
        (
            escape(series["series"]), str(each["index"]), escape(each["time"]), f"{each['before']:.5g}",
            f"{each['after']:.5g}", "" if each["magnitude"] is None else f"{100 * each['magnitude']:+.1f} %",
            f"{each['p_value']:.2g}" + " or wanders" * each["may_wander"],
        )
        for series in found
        for each in series["change_points"]
    ]  # fmt: skip
    if rows:
        out().print(Listing(("series", *heads), rows, header_style="dim", by_first=True))
    quiet = sum(not series["change_points"] for series in found)
    wander = sum(each["may_wander"] for series in found for each in series["change_points"])
    told = f"; {wander} may be a level that wanders: more values tell" if wander else ""
    say(f"{len(rows)} change points; {quiet} of {len(found)} series have none{told}")
