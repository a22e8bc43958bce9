"""The engines' builds that people brought, for all or for a project: one for each engine and ABI, kept by hash."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.base import canonical_json
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import ModelFileError
from orchestrator.system.durable_files import write_durably

ADD_AGAIN = "bring it again with `farm engines add`"


@dataclass(frozen=True)
class KeptBuild:
    """A build among those that are kept."""

    engine: str
    abi: str
    build: EngineBuild | None
    """None: it cannot be read."""
    damaged: str
    """The reason why no experiment can have it; empty: it can."""


class EngineBuilds:
    """The builds that experiments of now get; those of before name theirs by hash, among the farm's files."""

    def __init__(self, artifacts: Artifacts, project: str = "") -> None:
        """`project`: it has builds of its own, before those of the farm, which are everybody's; empty: these alone."""
        self._artifacts = artifacts
        self._folder = artifacts.folder / ("engines-of" if project else "engines") / project
        self._of_farm = EngineBuilds(artifacts) if project else None

    def put(self, build: EngineBuild) -> str:
        """Keep it for who names it by its SHA-256, which is returned."""
        return self._artifacts.put_bytes(canonical_json(build.model_dump(mode="json")))

    def keep(self, build: EngineBuild) -> None:
        """Let experiments have it from now on, in the place of the engine's other one for its ABI."""
        if (place := self._place(build)).is_dir():
            place.rmdir()  # damage, as in `Artifacts`
        write_durably(place, self.put(build))

    def has(self, build: EngineBuild) -> bool:
        """Return whether experiments get this very one, and could."""
        with suppress(ModelFileError):
            return self.read(build.engine, build.abi, _pointer(self._place(build))) == build
        return False

    def remove(self, engine: str) -> None:
        """Let no further experiment have a build of the engine."""
        for path in self._folder.glob(f"{engine}/*"):
            path.unlink(missing_ok=True)

    def all(self) -> list[KeptBuild]:
        """Return its own, by engine and ABI; one that is damaged costs itself."""
        return [self._look(engine, abi, sha256) for engine, of in self.own().items() for abi, sha256 in of.items()]

    def read(self, engine: str, abi: str, sha256: str) -> EngineBuild:
        """Return one that is named. Raises ModelFileError where it is damaged or a file of it is gone: hosts would ask
        for it again and again."""
        found = self._look(engine, abi, sha256)
        if found.build is None or found.damaged:
            raise ModelFileError(found.damaged, remedy=ADD_AGAIN)
        return found.build

    def _look(self, engine: str, abi: str, sha256: str) -> KeptBuild:
        what = f"engine {engine} for {abi}"
        try:
            build = EngineBuild.read(self._artifacts.path(sha256))
        except ModelFileError as e:
            return KeptBuild(engine, abi, None, f"{what}: {e.args[0]}")
        if (build.engine, build.abi) != (engine, abi):
            return KeptBuild(engine, abi, None, f"{what}: what is kept is {build.engine} for {build.abi}")
        whole = all(map(self._artifacts.has, build.files.values()))
        return KeptBuild(engine, abi, build, "" if whole else f"{what}: files are gone from {self._artifacts.folder}")

    def offered(self, engines: Container[str]) -> dict[str, dict[str, str]]:
        """Return what is named of some engines. Raises ModelFileError as `read`."""
        own = {name: of for name, of in self.named().items() if name in engines}
        for name, abi, sha256 in ((name, *each) for name, of in own.items() for each in of.items()):
            self.read(name, abi, sha256)
        return own

    def named(self) -> dict[str, dict[str, str]]:
        """Return the SHA-256 of each that experiments get, by engine and ABI: of one's own, else of the farm."""
        found = self._of_farm.own() if self._of_farm else {}
        return found | {engine: {**found.get(engine, {}), **of} for engine, of in self.own().items()}

    def own(self) -> dict[str, dict[str, str]]:
        """Return the SHA-256 of each of the project alone, or of the farm."""
        found: dict[str, dict[str, str]] = {}
        for path in sorted(self._folder.glob("*/*")):
            if path.suffix != ".partial":
                found.setdefault(path.parent.name, {})[path.name] = _pointer(path)
        return found

    def _place(self, build: EngineBuild) -> Path:
        return self._folder / build.engine / build.abi


def _pointer(path: Path) -> str:
    """Return what is written there, which is no SHA-256 where it is damaged; empty: nothing can be read."""
    with suppress(OSError):
        return path.read_text(errors="replace")[:100]
    return ""
