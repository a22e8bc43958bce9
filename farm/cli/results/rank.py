"""`farm rank`: which engine is fastest on which device, with which model, over all experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farm.access import open_ledger, settings_of
from farm.cli.output import HERE, Common, log, option, out, print_json, say

from .pairs import WhereOption, where_of

if TYPE_CHECKING:
    from orchestrator.analysis.ranking import Ranked

COLUMNS = ("device", "phone", "model", "engine", "version", "backend", "precision")


def rank(
    where: WhereOption = None,
    by: Annotated[Literal["latency", "energy"], option("--by", "Figure by which rows are sorted.")] = "latency",
    common: Common = HERE,
) -> None:
    """Rank engines by device and model: the newest figure of each engine, version, backend and precision.

    It looks at the newest 200 experiments. Needs no running farm. Columns of --where: device, phone, model, engine,
    version, backend, precision.

    Example: `farm rank`, `farm rank --where model=squeezenet_v1_0 --by energy`
    """
    from orchestrator.analysis.ranking import ranking
    from orchestrator.report.parts.ranking import NEWEST, left_out, ranked_in

    wanted = where_of(where)
    if unknown := wanted.keys() - set(COLUMNS):
        raise typer.BadParameter(f"{min(unknown)!r} is none of {', '.join(COLUMNS)}", param_hint="--where")
    with open_ledger(settings_of(common.state)) as ledger, log().status("reading") as status:
        rows, total = ledger.listed.experiments(0, NEWEST)
        found: list[Ranked] = []
        for number, row in enumerate(rows, 1):
            status.update(f"{row.id} ({number} of {len(rows)})")
            found += ranked_in(ledger, row)
    told = ranking(found, wanted, by_energy=by == "energy")
    if common.as_json:
        print_json(told)
    else:
        _show(told)
        for line in left_out(rows, total, found):
            say(line)


def _show(found: list[Ranked]) -> None:
    from orchestrator.report import wording
    from orchestrator.report.listing import part
    from orchestrator.report.parts.ranking import NOTE, sections

    if not found:
        say("nothing is measured yet, or nothing of what --where asks for")
        return
    if note := wording.unreal_note({row.source for row in found}):
        out().print(f"[yellow]{note}[/]")
    for section in sections(found):
        out().print(part(section))
    say(NOTE)
