"""Acts on engines: bring the folder of one, remove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.acts.access.projects import check_project
from orchestrator.acts.access.storage import Storage
from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import UnknownName
from orchestrator.model.people import Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import Right

from .act import Acting, Done, Settled, act, of_project
from .engine_folder import read_folder

ADMINISTERS = Right(Role.ADMINISTER, of="farm")


@dataclass(frozen=True)
class Brought(Settled):
    engine: str
    abi: str
    version: str
    program: str
    files: int
    bytes: int
    project: str
    is_new: bool
    """False: the farm has the very same."""

    @property
    def says(self) -> str:
        what = f"{self.engine} {self.version}".strip() + f" for {self.abi}"
        if not self.did:
            return f"{_whose(self.project)} has {what} already"
        what += f" of {self.project}" * bool(self.project)
        return f"{what}: {self.program}, {counted(self.files, 'file')}, {self.bytes / 2**20:.1f} MiB"


@act(ADMINISTERS)
def add_engine(
    acting: Acting, engine: str, folder: Path, abi: str, programs: Sequence[str], version: str = "", project: str = ""
) -> Brought:
    """Keep a folder with one of these programs for an ABI, in the place of an earlier one, for experiments of all or of
    a project that are submitted from now on. Raises ModelFileError for a folder that could not run, NotAllowed beyond
    the project's storage, UnknownName."""
    builds = _builds(acting, project)
    artifacts = Artifacts(acting.site.settings.state)
    build = read_folder(folder, engine, abi, programs, version, artifacts)
    is_new = not builds.has(build)
    if is_new and project:
        Storage.of(acting.ledger, acting.site.settings, project).let(artifacts.sizes_in(build.model_dump_json()))
    if is_new:
        acting.effects.append(partial(builds.keep, build))
    return Brought(engine, abi, version, build.program, len(build.files), build.bytes, project, is_new)


@dataclass(frozen=True)
class Dropped(Done):
    engine: str
    abis: tuple[str, ...]
    project: str

    @property
    def lines(self) -> list[str]:
        whose = f" of {self.project}" * bool(self.project)
        return [f"{self.engine}{whose} is removed ({', '.join(self.abis)}); phones drop its files as others come"]


@act(Right(Role.ADMINISTER), at=of_project)
def remove_engine(acting: Acting, engine: str, project: str = "") -> Dropped:
    """Remove what was brought of an engine, for every ABI, for all or for a project. Experiments that were submitted
    keep theirs. Raises UnknownName."""
    builds = _builds(acting, project)
    own = builds.own()
    if engine not in own:
        what = f"{_whose(project)} was brought nothing of an engine {engine!r}"
        raise UnknownName(what, remedy=f"it has: {', '.join(own) or 'none'}; `farm engines` tells whose each folder is")
    acting.effects.append(partial(builds.remove, engine))
    return Dropped(engine, tuple(own[engine]), project)


def _builds(acting: Acting, project: str) -> EngineBuilds:
    """Raises UnknownName where there is no such project."""
    if project:
        check_project(acting.ledger, project)
    return EngineBuilds(Artifacts(acting.site.settings.state), project)


def _whose(project: str) -> str:
    return f"the project {project}" if project else "the farm"
