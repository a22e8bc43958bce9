"""The answer of what can run on the devices: engines, and the folders that people added for all or for a project."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from orchestrator.acts.engine_builds import ADD_AGAIN, EngineBuilds, KeptBuild
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

from .asked import Asked
from .reading import First, Most, Page, cut, read


class Folder(BaseModel):
    """A folder with an engine's program, without its files."""

    model_config = ConfigDict(frozen=True)

    project: str
    """The project that added it; empty: it is everybody's."""
    abi: str
    version: str
    program: str
    bytes: int
    files: int
    devices: list[str]
    """The serials of the devices of its ABI."""
    damaged: str = ""
    """The reason why no experiment can have it, with what to do; empty: it can."""


class EngineNow(BaseModel):
    """An engine, and where it runs."""

    model_config = ConfigDict(frozen=True)

    engine: str
    takes: tuple[str, ...]
    devices: list[str]
    missing: str
    """The reason why a device has it not, with what to do; empty: all is there."""
    axes: list[dict[str, Any]]
    builds: list[Folder]


@read("/engines", Right(Role.VIEW, of="any"))
def engines(asked: Asked, first: First = 0, most: Most = 50) -> Page[EngineNow]:
    """List the engines, each with its devices and the folders of the farm and of projects that who asks may view."""
    found = Inventory(asked.sources.redis()).devices()
    known = {each.name: each for device in found for each in device.engines}
    why = {each.name: each.missing for device in found for each in device.engines if each.missing}
    artifacts, seen = Artifacts(asked.site().settings.state), asked.actor.grants.visible
    projects = [each.name for each in asked.ledger.people.projects() if seen is None or each.name in seen]
    builds = [(name, build) for name in ("", *projects) for build in EngineBuilds(artifacts, name).all()]
    made = list[EngineNow]()
    for name, engine in sorted(known.items()):
        folders = [_folder(of, build, found) for of, build in builds if build.engine == name]
        has = [d for d in found if any(each.name == name and not each.missing for each in d.engines)]
        whole = {each.abi for each in folders if not each.damaged}
        runs = [d.serial for d in has if not engine.brought or d.facts.abi in whole]
        add_it = f"bring its program: `farm engines add {name} FOLDER --abi ABI`" * (engine.brought and not runs)
        axes = [axis.model_dump(mode="json") for axis in engine.axes]
        missing = why.get(name, "") or add_it
        made.append(EngineNow(
            engine=name, takes=engine.takes, devices=sorted(runs), missing=missing, axes=axes, builds=folders
        ))  # fmt: skip
    return cut(made, first, most)


def _folder(project: str, kept: KeptBuild, devices: list[Any]) -> Folder:
    build, of_abi = kept.build, [each.serial for each in devices if each.facts.abi == kept.abi]
    known = {"version": "", "program": "", "bytes": 0}
    if build is not None:
        known = build.model_dump(include={*known})
    why = f"{kept.damaged}; {ADD_AGAIN}" if kept.damaged else ""
    files = len(build.files) if build else 0
    return Folder(project=project, abi=kept.abi, devices=of_abi, files=files, damaged=why, **known)
