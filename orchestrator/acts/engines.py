"""Acts on engines: bring the folder of one, remove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import UnknownName
from orchestrator.model.people import Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import Right

from .act import Acting, Done, Settled, act
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
    is_new: bool
    """False: the farm has the very same."""

    @property
    def says(self) -> str:
        what = f"{self.engine} {self.version}".strip() + f" for {self.abi}"
        if not self.did:
            return f"the farm has {what} already"
        return f"{what}: {self.program}, {counted(self.files, 'file')}, {self.bytes / 2**20:.1f} MiB"


@act(ADMINISTERS)
def add_engine(
    acting: Acting, engine: str, folder: Path, abi: str, programs: Sequence[str], version: str = ""
) -> Brought:
    """Keep a folder with one of these programs for an ABI, in the place of an earlier one; experiments that are
    submitted from now on run it. Raises ModelFileError for a folder that could not run."""
    artifacts = Artifacts(acting.site.settings.state)
    builds = EngineBuilds(artifacts)
    build = read_folder(folder, engine, abi, programs, version, artifacts)
    is_new = not builds.has(build)
    if is_new:
        acting.effects.append(partial(builds.keep, build))
    return Brought(engine, abi, version, build.program, len(build.files), build.bytes, is_new)


@dataclass(frozen=True)
class Dropped(Done):
    engine: str
    abis: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        return [f"{self.engine} is removed ({', '.join(self.abis)}); phones drop its files as others come"]


@act(ADMINISTERS)
def remove_engine(acting: Acting, engine: str) -> Dropped:
    """Remove what was brought of an engine, for every ABI. Experiments that were submitted keep theirs. Raises
    UnknownName."""
    builds = EngineBuilds(Artifacts(acting.site.settings.state))
    named = builds.named()
    if engine not in named:
        raise UnknownName(f"nothing was brought of an engine {engine!r}; of {', '.join(named) or 'none'} something was")
    acting.effects.append(partial(builds.remove, engine))
    return Dropped(engine, tuple(named[engine]))
