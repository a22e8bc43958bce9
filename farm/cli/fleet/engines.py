"""`farm engines`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.access import COMMAND_LINE, open_site, settings_of, user_by
from farm.cli.output import HERE, Common, argument, group_of, option, out, print_json, show_done
from farm.doors import open_door
from orchestrator.model.errors import UnknownName

if TYPE_CHECKING:
    from dashboards.answers.engines import EngineNow
    from workers.engines import Engine
    from workers.engines.packaged import PackagedEngine

NameArgument = Annotated[str, argument("NAME", "The engine, as `farm engines` lists it.")]
ProjectOption = Annotated[str, option("--project NAME", "The project whose it is; else it is everybody's.")]


def list_(context: typer.Context, common: Common = HERE) -> None:
    if context.invoked_subcommand is not None:
        return
    from dashboards.answers import answers
    from orchestrator.report.listing import Listing

    with open_door(common.state, running=True) as door:
        found = door.every(answers.engines)
    if common.as_json:
        print_json(found)
        return
    every = {serial for each in found for serial in each.devices}
    told = [
        (each.engine, ", ".join(each.takes), ", ".join(axis["name"] for axis in each.axes), escape(_where(each, every)))
        for each in found
    ]
    out().print(Listing(("engine", "workloads", "axes ENGINE.AXIS", "devices; folders"), told))


def _where(engine: EngineNow, every: set[str]) -> str:
    from orchestrator.report.wording import memory_size

    devices = "all" if every == {*engine.devices} else ", ".join(engine.devices) or f"none: {engine.missing}"
    folders = (
        f"{each.abi} {each.version or '?'}, {each.damaged or memory_size(each.bytes)}"
        f"{', of ' * bool(each.project)}{each.project}"
        for each in engine.builds
    )
    return "; ".join((devices, *folders))


def install(
    name: Annotated[str, argument("NAME[==VERSION]", "The engine; and a version beside its own.")],
    wheel: Annotated[Path | None, option("--wheel", "A build of your own as that version.")] = None,
    common: Common = HERE,
) -> None:
    """Install an engine's packages on this machine, into an environment of their own below the state folder.

    Versions are pinned and every file is checked by its hash. Run it again where it was broken off: pip keeps what it
    has fetched. A host of the farm announces the engine within seconds. Another version, or a wheel of yours, lies
    beside the one that ships: experiments list both as `matrix: {NAME.version: [...]}`.

    Example: `farm engines install onnxruntime`, `farm engines install onnxruntime==1.30.0`, `farm engines install
    onnxruntime --wheel onnxruntime-1.33.0+mine-cp311-cp311-linux_x86_64.whl`
    """
    engine, _, version = name.partition("==")
    packaged = _packaged(engine, settings_of(common.state).state)
    version = packaged.version_of(wheel) if wheel else version
    of = packaged.environment.beside(version) if version not in ("", packaged.version) else packaged.environment
    is_new = not of.is_ready
    if is_new:
        print(f"installing {name}: this takes minutes where files are large", file=sys.stderr)
        packaged.install(version or packaged.version, wheel)
    told = {"engine": engine, "version": version or packaged.version, "installed": is_new, "packages": of.packages}
    if common.as_json:
        print_json(told)
        return
    packages = ", ".join(f"{package} {number}" for package, number in of.packages.items())
    out().print(escape(f"{name} is {'ready' if is_new else 'installed'}: {packages}"))
    axis = f", {engine}.version: {version}" * (of is not packaged.environment)
    out().print(escape(f"an experiment names it as `matrix: {{engine: {engine}, backend: cpu{axis}}}`"))


def add(
    name: NameArgument,
    folder: Annotated[Path, argument("FOLDER", "With the engine's benchmark and libraries.")],
    abi: Annotated[str, option("--abi", "The ABI that it is built for, e.g. arm64-v8a.")],
    version: Annotated[str, option("--version", "Its version, where its output does not tell it.")] = "",
    project: ProjectOption = "",
    common: Common = HERE,
) -> None:
    """Keep a folder with an engine's program for phones of an ABI; experiments name it as `matrix.engine`.

    The program must be built for the ABI, and libraries that phones lack must lie in the folder or in its `lib`. A
    folder for another ABI is kept beside it; one for the same ABI takes its place. Files go to phones by their hash.

    Example: `farm engines add llama.cpp llama.cpp/build-android/bin --abi arm64-v8a`
    """
    from orchestrator import acts
    from workers.engines.folder import FolderEngine

    settings = settings_of(common.state)
    known = {each.name: each for each in _engines(settings.state) if isinstance(each, FolderEngine)}
    if name not in known:
        raise UnknownName(
            f"no engine {name!r} runs from a folder", remedy=f"these do: {', '.join(known)}; any program: `command`"
        )
    with open_site(settings, new=True) as site:
        who, programs = user_by(COMMAND_LINE), known[name].programs
        show_done(
            acts.engines.add_engine(site, who, name, folder, abi, programs, version, project), as_json=common.as_json
        )


def remove(name: NameArgument, project: ProjectOption = "", common: Common = HERE) -> None:
    """Remove an engine's packages from this machine, or its folders from the farm. Blocks that name it are excluded
    from then on, with the reason.

    Phones drop the files of an engine when files of others come. Experiments that were submitted keep theirs.

    Example: `farm engines remove onnxruntime`
    """
    from orchestrator import acts
    from workers.engines.folder import FolderEngine

    settings = settings_of(common.state)
    if any(each.name == name for each in _engines(settings.state) if isinstance(each, FolderEngine)):
        with open_site(settings, new=True) as site:
            show_done(acts.engines.remove_engine(site, user_by(COMMAND_LINE), name, project), as_json=common.as_json)
        return
    engine, _, version = name.partition("==")
    of = _packaged(engine, settings.state).environment
    was_there = (of.beside(version) if version else of).remove()
    if common.as_json:
        print_json({"engine": name, "removed": was_there})
    else:
        out().print(f"{name} is removed" if was_there else f"{name} was not installed")


def _engines(state: Path) -> list[Engine]:
    from workers.engines import Engines, Host

    return [*Engines(Host.alone(state))]


def _packaged(name: str, state: Path) -> PackagedEngine:
    """Raises UnknownName for what is no engine from packages."""
    from workers.engines.packaged import PackagedEngine

    known = {each.name: each for each in _engines(state) if isinstance(each, PackagedEngine)}
    if name not in known:
        raise UnknownName(f"no engine {name!r} comes from packages", remedy=f"these do: {', '.join(known)}")
    return known[name]


group = group_of(
    "engines",
    (install, add, remove),
    "List what can run on the devices of the running farm: each engine, its workloads, and the devices that have "
    "it. An experiment names one as `matrix.engine`. A host announces the engines of the farm, and those of "
    "FARM_ENGINES. Engines for phones run from folders that people add.\n\n"
    "Example: `farm engines`, `farm engines install onnxruntime`, `farm engines add llama.cpp build/bin --abi "
    "arm64-v8a`, `farm engines remove onnxruntime` (`--state DIR`, `--json`)",
    bare=list_,
)
