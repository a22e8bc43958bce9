"""`farm engines`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.access import open_inventory, settings_of
from farm.cli.output import JsonOption, StateOption, out, print_json
from orchestrator.model.errors import UnknownName

if TYPE_CHECKING:
    from pathlib import Path

    from workers.engines.packaged import PackagedEngine

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The engine, as `farm engines` lists it.")]

group = typer.Typer(
    name="engines",
    help="List what can run on the devices of the running farm: each engine, its workloads, and the devices that have "
    "it. An experiment names one as `matrix.engine`. A host announces the engines of the farm, and those of "
    "FARM_ENGINES.\n\n"
    "Example: `farm engines`, `farm engines install onnxruntime`, `farm engines remove onnxruntime` (`--state DIR`, "
    "`--json`)",
    invoke_without_command=True,
)


def register(app: typer.Typer) -> None:
    for command in (install, remove):
        group.command()(command)
    app.add_typer(group, rich_help_panel="The farm")


@group.callback()
def listed(context: typer.Context, state: StateOption = None, as_json: JsonOption = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from orchestrator.report.listing import Listing

    found = open_inventory(settings_of(state)).devices()
    takes = {each.name: each.takes for device in found for each in device.engines}
    having = {
        name: sorted(d.serial for d in found if name in {each.name for each in d.engines if not each.missing})
        for name in takes
    }
    why = {each.name: each.missing for device in found for each in device.engines if each.missing}
    axes = {each.name: each.axes for device in found for each in device.engines}
    if as_json:
        rows = [
            {
                "engine": name,
                "takes": takes[name],
                "devices": having[name],
                "missing": why.get(name, ""),
                "axes": [axis.model_dump(mode="json") for axis in axes[name]],
            }
            for name in sorted(takes)
        ]
        print_json(rows)
        return

    def where(name: str) -> str:
        if len(having[name]) == len(found):
            return "all"
        return ", ".join(having[name]) or f"none: {why[name]}"

    own = {name: ", ".join(f"{name}.{axis.name}" for axis in axes[name]) for name in takes}
    told = [(name, ", ".join(takes[name]), own[name], escape(where(name))) for name in sorted(takes)]
    out().print(Listing(("engine", "workloads", "axes of its own", "devices"), told))


def install(name: NameArgument, state: StateOption = None) -> None:
    """Install an engine's packages on this machine, into an environment of their own below the state folder.

    Versions are pinned and every file is checked by its hash. Run it again where it was broken off: pip keeps what it
    has fetched. A host of the farm announces the engine within seconds.

    Example: `farm engines install onnxruntime`
    """
    environment = _packaged(name, settings_of(state).state).environment
    packages = ", ".join(f"{package} {version}" for package, version in environment.packages.items())
    if environment.is_ready:
        out().print(escape(f"{name} is installed: {packages}"))
        return
    out().print(escape(f"installing {packages}"))
    environment.install()
    out().print(escape(f"{name} is ready: `matrix: {{engine: {name}, backend: cpu}}`"))


def remove(name: NameArgument, state: StateOption = None) -> None:
    """Remove an engine's packages from this machine. Blocks that name it are excluded from then on, with the reason.

    Example: `farm engines remove onnxruntime`
    """
    was_there = _packaged(name, settings_of(state).state).environment.remove()
    out().print(f"{name} is removed" if was_there else f"{name} was not installed")


def _packaged(name: str, state: Path) -> PackagedEngine:
    """Raises UnknownName for what is no engine from packages."""
    from workers.engines import Engines, Host
    from workers.engines.packaged import PackagedEngine

    known = {each.name: each for each in Engines(Host.alone(state)) if isinstance(each, PackagedEngine)}
    if name not in known:
        raise UnknownName(f"no engine {name!r} comes from packages", remedy=f"these do: {', '.join(known)}")
    return known[name]
