"""`farm morning`: what a night of a suite says, on one page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.access import open_ledger, settings_of
from farm.cli.explain import hint
from farm.cli.output import HERE, Common, argument, option, out, print_json, say, write_whole
from orchestrator.model.errors import NoData

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.nightly import Night

FAILED = 1


def morning(
    suite: Annotated[str, argument("SUITE", "Its name.")],
    night: Annotated[str | None, option("--night ID", "Which night.", show_default="the newest")] = None,
    output: Annotated[Path | None, option("--output, -o FILE.html", "Write the page with its charts.")] = None,
    markdown: Annotated[Path | None, option("--markdown FILE", "Write it as Markdown.")] = None,
    tell: Annotated[
        list[str] | None,
        option("--tell ADDRESS", "Also send it to this address: mail, chat, webhook; may be repeated."),
    ] = None,
    common: Common = HERE,
) -> None:
    """Print the morning report of a night: what got worse, better, unknown, missing, and what to do next.

    It reads the ledger and measures nothing. Needs no running farm. With --tell, the exit status is 1 if the report did
    not reach every address.

    Example: `farm morning nightly -o morning.html`, `farm morning nightly --tell mailtos://me:secret@example.org`
    """
    from farm import endpoints
    from orchestrator.report import nights
    from orchestrator.report.nights import tell as telling

    settings = settings_of(common.state)
    with open_ledger(settings) as ledger:
        found = telling.morning_of(ledger, _night(ledger, suite, night))
    made: tuple[tuple[Path | None, str, Callable[[], str]], ...] = (
        (output, "--output", lambda: nights.morning_page(found, endpoints.pages_of(settings.state))),
        (markdown, "--markdown", lambda: nights.morning_markdown(found)),
    )
    for path, name, make in made:
        if path is not None:
            write_whole(path, make(), name)
            say(f"written to {path}")
    known = {name: address.get_secret_value() for name, address in settings.tell.items()}
    told = telling.tell(found, tuple(tell or ()), known)
    if common.as_json:
        first = {"usable": nights.usable(found), "headline": nights.headline(found)}
        print_json({**first, "night": found.night, "told": told})
    elif output is None and markdown is None and not tell:
        out().print(nights.morning_markdown(found), markup=False, highlight=False, soft_wrap=True)
        hint("settled", "side", "canary")
    for each in told:
        say(f"{each.to}: {each.error or 'told'}")
    if any(each.error for each in told):
        raise typer.Exit(FAILED)


def _night(ledger: Ledger, suite: str, night_id: str | None) -> Night:
    from orchestrator.nightly.past import nights_of

    nights = nights_of(ledger, suite)
    found = [each for each in nights if night_id in (None, each.night_id)]
    if not found:
        if not nights:
            raise NoData(f"no night of a suite {suite!r} is over", remedy="`farm nightly list` lists nights and suites")
        known = ", ".join(each.night_id for each in nights[-5:])
        raise NoData(f"{suite!r} has no night {night_id!r}; its last ones are {known}", remedy="`farm nightly list`")
    return found[-1]
