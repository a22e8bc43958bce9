"""`farm export --bundle`, `farm import --bundle`: carry an experiment to another lab in one file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from farm.access import find_experiment, open_database, open_ledger, settings_of
from farm.cli.output import log, out, print_json

BundleOption = Annotated[
    Path | None,
    typer.Option("--bundle", metavar="FILE.zip", help="The file that carries an experiment from lab to lab."),
]
LabOption = Annotated[
    str | None, typer.Option("--lab", metavar="NAME", help="What others call this lab.", show_default="the host's name")
]


def write_bundle(experiment: str, file: Path, lab: str | None, state: Path | None, *, as_json: bool) -> None:
    """Write an experiment of the ledger of this machine into a bundle, and tell what it holds."""
    import re
    from importlib.metadata import version

    from orchestrator.ledger.upkeep import bundles
    from orchestrator.ledger.upkeep.bundles.manifest import LAB
    from orchestrator.report.gathering import report_page

    from .results import gather

    settings = settings_of(state)
    name = lab if lab is not None else settings.host.replace("_", "-").strip("-")[:30]
    if not re.fullmatch(LAB, name):
        raise typer.BadParameter(f"{name!r}: 1 to 30 letters, digits and `-`, the first no `-`", param_hint="--lab")
    with open_ledger(settings) as ledger, open_database(settings) as database:
        row = find_experiment(ledger, experiment)
        page = report_page(gather(settings, ledger, row), ledger)
        made = bundles.write(database, file, row.id, lab=name, version=version("pocketfarm"), report=page)
    told = {"file": file, "bytes": file.stat().st_size, "manifest": made}
    if as_json:
        print_json(told)
        return
    out().print(str(file), markup=False, highlight=False, soft_wrap=True)
    parts = sum(part.bytes for part in made.parts.values())
    told_as = f"{row.id} of the lab {name}: {len(made.devices)} devices, {told['bytes']} bytes, {parts} unpacked"
    log().print(told_as, markup=False, soft_wrap=True)


def read_bundle(file: Path, state: Path | None, *, as_json: bool) -> None:
    """Store the experiment of a bundle in the ledger of this machine, and tell what came."""
    from orchestrator.ledger.upkeep import bundles

    with open_ledger(settings_of(state), new=True) as ledger, log().status("taking in"):
        found = bundles.take_in(ledger, file)
    if as_json:
        print_json(asdict(found))
        return
    verb = "imported" if found.created else "is there already, nothing changed:"
    out().print(f"{verb} {found.experiment}", markup=False, highlight=False, soft_wrap=True)
    blocks = f"; {found.blocks} blocks" if found.created else ""
    log().print(found.origin.text + blocks, markup=False, soft_wrap=True)
