"""`farm ledger`: look after the ledger itself."""

from __future__ import annotations

from typing import Annotated

import typer

from farm.access import find_experiment, open_ledger, settings_of
from farm.cli.output import EXPERIMENTS, JsonOption, StateOption, log, out, print_json

from .archives import adopt, archive, prune
from .check import check
from .copies import backup, restore

group = typer.Typer(
    name="ledger",
    help="Look after the ledger. Needs no running farm.\n\n"
    "Example: `farm ledger check`, `farm ledger recompute` (`--state DIR`, `--json`)",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    for command in (recompute, check, backup, restore, archive, adopt, prune):
        group.command()(command)
    app.add_typer(group, rich_help_panel=EXPERIMENTS)


def recompute(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT", help="Its id or name, or `latest`; without it every one.", show_default=False
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every row, including those of this version, for example after damage.")
    ] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the figures of blocks again from their records: rows that are missing, faulty, or of another version.

    Results are computed from these rows, and missing rows are made when a result needs them. This command makes them in
    advance, for example after an upgrade. Records are never changed. Exit status 1 if a record gives no figures.

    Example: `farm ledger recompute`, `farm ledger recompute latest --all`
    """
    from orchestrator.ledger import Renewed

    total = Renewed()
    with open_ledger(settings_of(state)) as ledger:
        names = [find_experiment(ledger, experiment).id] if experiment else [row.id for row in ledger.experiments()]
        with log().status("reading") as status:
            for number, name in enumerate(names, 1):
                for done in ledger.renew_figures(name, everything=everything, faulty=True):
                    total = total.plus(done)
                    status.update(f"{name} ({number} of {len(names)}): {total.looked_at} rows")
    if as_json:
        print_json({"experiments": len(names), **total._asdict()})
    else:
        out().print(
            f"{total.looked_at} rows of {len(names)} experiments made anew: {total.changed} changed, "
            f"{total.faulty} without figures",
            soft_wrap=True,
        )
    if total.faulty:
        raise typer.Exit(1)
