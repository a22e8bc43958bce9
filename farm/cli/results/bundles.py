"""`farm export --bundle`, `farm import --bundle`: carry an experiment to another lab in one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farm.access import COMMAND_LINE, find_experiment, open_database, open_ledger, open_site, settings_of, user_by
from farm.cli.output import log, option, out, print_json, say
from orchestrator.model.errors import ModelFileError
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.coordination.artifacts import Artifacts

BundleOption = Annotated[
    Path | None, option("--bundle FILE.zip", "The file that carries an experiment from lab to lab.")
]
LabOption = Annotated[str | None, option("--lab NAME", "What others call this lab.", show_default="the host's name")]


OF_HOSTS = "driver"
"""The field of a file that lies on hosts alone."""
ModelsOption = Annotated[
    bool, option("--models", "With --bundle: the files of models and inputs go along, 16 GiB at most.")
]


def write_bundle(
    experiment: str, file: Path, lab: str | None, state: Path | None, *, models: bool, as_json: bool
) -> None:
    """Write an experiment of the ledger of this machine into a bundle, and tell what it holds."""
    import re
    from importlib.metadata import version

    from orchestrator.coordination.artifacts import Artifacts
    from orchestrator.ledger.upkeep import bundles
    from orchestrator.ledger.upkeep.bundles.manifest import LAB
    from orchestrator.report.gathering import report_page

    from .results import gather

    settings, lost = settings_of(state), dict[str, str]()
    name = lab if lab is not None else settings.host.replace("_", "-").strip("-")[:30]
    if not re.fullmatch(LAB, name):
        raise typer.BadParameter(f"{name!r}: 1 to 30 letters, digits and `-`, the first no `-`", param_hint="--lab")
    with open_ledger(settings) as ledger, open_database(settings) as database:
        row = find_experiment(ledger, experiment)
        page = report_page(gather(settings, ledger, row), ledger)
        own: dict[str, Any] = {"lab": name, "version": version("pocketfarm"), "report": page}
        if models:
            own["files_of"] = partial(_files, Artifacts(settings.state), lost)
        made = bundles.write(database, file, row.id, **own)
    told = {"file": file, "bytes": file.stat().st_size, "manifest": made, "left_out": lost}
    if as_json:
        print_json(told)
        return
    for each, why in sorted(lost.items(), key=itemgetter(1)):
        say(f"left out: {why} ({each})")
    out().print(str(file), markup=False, highlight=False, soft_wrap=True)
    parts = sum(part.bytes for part in made.parts.values())
    told_as = (
        f"{row.id} of the lab {name}: {counted(len(made.devices), 'device')}, {told['bytes']} bytes, {parts} unpacked"
    )
    log().print(told_as, markup=False, soft_wrap=True)


def read_bundle(file: Path, state: Path | None, *, as_json: bool) -> None:
    """Store the experiment of a bundle in the ledger of this machine, and tell what came."""
    from orchestrator import acts

    with open_site(settings_of(state), new=True) as site, log().status("taking in"):
        done = acts.importing.import_bundle(site, user_by(COMMAND_LINE), file)
    if as_json:
        print_json(done.data)
        return
    verb = (
        "imported"
        if done.brought.created
        else f"is there already, {'its files came' if done.did else 'nothing changed'}:"
    )
    out().print(f"{verb} {done.on}", markup=False, highlight=False, soft_wrap=True)
    log().print(done.text, markup=False, soft_wrap=True)


def _files(kept: Artifacts, lost: dict[str, str], job: str) -> dict[str, Path]:
    """Return the files that a job names and that are kept here. `lost`: takes the others with the reason."""
    found, fields = dict[str, Path](), dict(_fields(json.loads(job)))
    for name in kept.named_by(job):
        if (field := fields.get(name, "a file of a build")).endswith(OF_HOSTS):
            continue
        try:
            found[name] = kept.path(name)
        except ModelFileError:
            lost[name] = f"{field}: {'it is damaged' if kept.has(name) else 'it is not kept here any more'}"
    return found


def _fields(of: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of a JSON with the name of its field: `workload.onnx`."""
    if isinstance(of, dict | list):
        for key, each in of.items() if isinstance(of, dict) else enumerate(of):
            yield from _fields(each, f"{name}.{str(key).removesuffix('_sha256')}".lstrip("."))
    elif isinstance(of, str):
        yield of, name
