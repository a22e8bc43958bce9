"""`farm ledger`: look after the ledger itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from farm.access import find_experiment, open_ledger, settings_of
from farm.cli.output import HERE, Common, argument, group_of, log, option, out, print_json, say
from orchestrator.model.quantity import counted

from .archives import adopt, archive, prune
from .check import check
from .copies import backup, restore
from .reread import reread

if TYPE_CHECKING:
    from orchestrator.ledger import Renewed


def recompute(
    experiment: Annotated[
        str | None, argument("EXPERIMENT", "Its id or name, or `latest`; without it every one.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, option("--all", "Every row, including those of this version, for example after damage.")
    ] = False,
    engine: Annotated[str | None, option("--engine ENGINE", "Only experiments that this engine ran.")] = None,
    dry_run: Annotated[bool, option("--dry-run", "Only print what would change.")] = False,
    common: Common = HERE,
) -> None:
    """Compute the figures of blocks again from their records: rows that are missing, faulty, or of another version.

    Results are computed from these rows, and missing rows are made when a result needs them. This command makes them in
    advance, for example after an upgrade. It also reads the kept output of programs again, so that a mended parser
    corrects old records; the earlier reading stays in the record. Exit status 1 if a record gives no figures.

    Example: `farm ledger recompute`, `farm ledger recompute latest --engine command --dry-run`
    """
    from orchestrator.ledger import Renewed

    settings, total = settings_of(common.state), Renewed()
    with open_ledger(settings) as ledger:
        names = [find_experiment(ledger, experiment).id] if experiment else [row.id for row in ledger.experiments()]
        if engine is not None:
            names = [name for name in names if any(cell.engine == engine for cell in ledger.cells(name).values())]
        with log().status("reading") as status:
            readings = reread(settings, ledger, names, engine, dry_run=dry_run)
            for number, name in enumerate(names, 1):
                for done in ledger.renew_figures(name, everything=everything, faulty=True, dry=dry_run):
                    total = total.plus(done)
                    status.update(f"{name} ({number} of {len(names)}): {counted(total.looked_at, 'row')}")
    if common.as_json:
        print_json({"experiments": len(names), **total._asdict(), "readings": readings})
    else:
        _show(total, len(names), readings, dry_run=dry_run)
    if total.faulty:
        raise typer.Exit(1)


def _show(total: Renewed, experiments: int, readings: list[dict[str, Any]], *, dry_run: bool) -> None:
    for each in readings:
        (was, now), (before, after) = zip(each["outcome"], each["cause"], strict=True), each["samples"]
        words = " -> ".join(": ".join(filter(None, told)) for told in (was, now))
        say(f"{each['job']} attempt {each['attempt']}: {words}, samples {before} -> {after}")
    made = "would be made anew" if dry_run else "made anew"
    counts = "" if dry_run else f": {total.changed} changed, {total.faulty} without figures"
    out().print(
        f"{counted(total.looked_at, 'row')} of {counted(experiments, 'experiment')} {made}{counts}", soft_wrap=True
    )
    if readings:
        verb = "would read" if dry_run else "read"
        out().print(f"{counted(len(readings), 'record')} {verb} otherwise; earlier readings are kept", soft_wrap=True)


group = group_of(
    "ledger",
    (recompute, check, backup, restore, archive, adopt, prune),
    "Look after the ledger. Needs no running farm.\n\n"
    "Example: `farm ledger check`, `farm ledger recompute` (`--state DIR`, `--json`)",
)
