"""`farm history`: every figure night after night, where it changed, and whose change that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.access import open_ledger, settings_of
from farm.cli import completion
from farm.cli.explain import hint
from farm.cli.output import HERE, Common, argument, day, option, out, print_json, say, write_whole

if TYPE_CHECKING:
    from orchestrator.analysis.history import History


def history(
    name: Annotated[str, argument("SUITE|EXPERIMENT", "Its name.", autocompletion=completion.experiments)],
    device: Annotated[str | None, option("--device, -d SERIAL", "Only this device's changes and series.")] = None,
    last: Annotated[int, option("--last N", "Number of nights, counted back from the newest.", min=2)] = 60,
    html: Annotated[Path | None, option("--html FILE", "Also write a page with charts.")] = None,
    every: Annotated[bool, option("--all", "Print all series, including those without a change.")] = False,
    common: Common = HERE,
) -> None:
    """Print where figures changed from night to night, what else changed then, and whose change it is.

    Each cell on each device has a series, whose noise floor is estimated from the series itself. A change is the
    candidate's, the device's (all of its cells moved), the farm's (all devices moved), or unknown. Needs no running
    farm.

    Example: `farm history nightly --device 8XV7N18328000513`
    """
    from orchestrator.nightly.past import past

    settings = settings_of(common.state)
    with open_ledger(settings) as ledger:
        found = past(ledger, name, last)
    if device is not None:
        found = found.model_copy(update={"trails": tuple(each for each in found.trails if each.device == device)})
        if not found.trails:
            raise typer.BadParameter(f"{name} has no figure of {device!r}", param_hint="--device")
    if html is not None:
        from farm import endpoints
        from orchestrator.report.nights import history_page

        write_whole(html, history_page(found, endpoints.pages_of(settings.state)), "--html")
        say(f"written to {html}")
    if common.as_json:
        print_json(found)
    else:
        _show(found, every=every)
        hint("side", "night", "configuration")


def _show(found: History, *, every: bool) -> None:
    from orchestrator.report.listing import Head, Listing

    rows = [
        (
            day(change.at), escape(trail.device), escape(trail.cell), f"{trail.metric} {trail.basis}".strip(),
            f"{100 * change.change:+.1f} %", f"{'[red]' if change.worse else ''}{change.cause}{'[/]' * change.worse}",
            escape(f"{change.because}{'' if change.settled else '; new, and not settled'}"),
        )
        for trail, change in found.changes
    ]  # fmt: skip
    if rows:
        heads = ("night", "device", "configuration", "metric", Head("change", True), "whose", "because")
        out().print(Listing(heads, rows, header_style="dim", by_first=True))
    if every:
        _series(found)
    quiet = sum(not trail.changes for trail in found.trails)
    from orchestrator.report.wording import counted

    told = f"{counted(len(found.nights), 'night')}, {len(found.trails)} series, {quiet} of them without a change"
    say(told)


def _series(found: History) -> None:
    from orchestrator.report.listing import Head, Listing

    figures = [Head(each, True) for each in ("nights", "noise", "least change", "changes")]
    rows = [
        (
            escape(trail.device), escape(trail.cell), f"{trail.metric} {trail.basis}".strip(),
            str(sum(value is not None for value in trail.a)), f"{100 * trail.noise:.2g} %",
            f"{100 * trail.floor:.2g} %", str(len(trail.changes)),
        )
        for trail in found.trails
    ]  # fmt: skip
    out().print(Listing(("device", "configuration", "metric", *figures), rows, header_style="dim", by_first=True))
