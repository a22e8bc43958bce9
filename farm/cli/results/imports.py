"""`farm import samples`: import measurements of others into the ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from farm.access import COMMAND_LINE, open_site, settings_of, user_by
from farm.cli.output import HERE, Common, argument, group_of, log, option, out, print_json

from .bundles import BundleOption, read_bundle


def whole(context: typer.Context, bundle: BundleOption = None, common: Common = HERE) -> None:
    if bundle is not None and context.invoked_subcommand is None:
        read_bundle(bundle, common.state, as_json=common.as_json)
    elif bundle is not None or context.invoked_subcommand is None:
        raise typer.BadParameter("give `--bundle FILE`, or `samples FILE.csv`", param_hint="--bundle")


def samples(
    table: Annotated[Path, argument("FILE.csv", "Columns device, network, layer, backend, precision, sample_ms.")],
    name: Annotated[str | None, option("--name NAME", "Name of the experiment.", show_default="the file's")] = None,
    common: Common = HERE,
) -> None:
    """Import time samples that were measured elsewhere, one per row; needs no running farm.

    A row with an empty `layer` is a whole inference. The column `block` numbers independent repetitions; every other
    column is an axis. Either all rows are stored or none. Importing the same content twice changes nothing.

    Example: `farm import samples logs.csv --name study-s`
    """
    from orchestrator import acts
    from orchestrator.report.wording import counted

    with open_site(settings_of(common.state), new=True) as site:
        found = acts.importing.import_samples(site, user_by(COMMAND_LINE), table, _checked(name)).table
    if common.as_json:
        data = asdict(found)
        print_json({"experiment": data.pop("experiment_id"), **data})
        return
    verb = "imported" if found.created else "is there already, nothing changed:"
    out().print(f"{verb} [bold]{found.experiment_id}[/]", soft_wrap=True)
    axes = f", axes {', '.join(found.axes)}" if found.axes else ""
    log().print(
        f"{counted(found.rows, 'row')}: {counted(found.samples, 'inference')} and "
        f"{counted(found.layers, 'layer time')} in {counted(found.blocks, 'block')} of "
        f"{counted(found.cells, 'configuration')} on {counted(len(found.devices), 'device')}{axes}",
        soft_wrap=True,
    )


def _checked(name: str | None) -> str | None:
    from pydantic import TypeAdapter, ValidationError

    from orchestrator.model import problem
    from orchestrator.model.experiment import Name, why_taken

    if name is None:
        return None
    if why := why_taken(name):
        raise typer.BadParameter(f"{why}: choose another name", param_hint="--name")
    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError as e:
        raise typer.BadParameter(problem.describe(e.errors()[0]), param_hint="--name") from None


group = group_of(
    "import",
    (samples,),
    "Import measurements of others into the ledger, marked as imports: a table, or (`--bundle`) an "
    "experiment of another lab. The hashes of a bundle tell a broken copy, and no forger: take it from whom you trust."
    "\n\n"
    "Example: `farm import samples logs.csv`, `farm import --bundle first.zip` (`--state DIR`, `--json`)",
    bare=whole,
    no_args_is_help=True,
)
