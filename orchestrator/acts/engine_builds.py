"""The engines' builds that people brought, for all or for a project: one for each engine and ABI, kept by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from pathlib import Path

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.base import canonical_json
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import ModelFileError
from orchestrator.system.durable_files import write_durably

ADD_AGAIN = "bring it again with `farm engines add`"


class EngineBuilds:
    """The builds that experiments of now get; those of before name theirs by hash, among the farm's files."""

    def __init__(self, artifacts: Artifacts, project: str = "") -> None:
        """`project`: it has builds of its own, before those of the farm, which are everybody's; empty: these alone."""
        self._artifacts = artifacts
        self._folder = artifacts.folder / ("engines-of" if project else "engines") / project
        self._of_farm = EngineBuilds(artifacts) if project else None

    def put(self, build: EngineBuild) -> str:
        """Keep it for who names it by its SHA-256, which is returned."""
        return self._artifacts.put_bytes(_text(build))

    def keep(self, build: EngineBuild) -> None:
        """Let experiments have it from now on, in the place of the engine's other one for its ABI."""
        write_durably(self._place(build), self.put(build))

    def has(self, build: EngineBuild) -> bool:
        """Return whether experiments get this very one."""
        place = self._place(build)
        return place.is_file() and place.read_text() == hashlib.sha256(_text(build)).hexdigest()

    def remove(self, engine: str) -> None:
        """Let no further experiment have a build of the engine."""
        for path in self._folder.glob(f"{engine}/*"):
            path.unlink(missing_ok=True)

    def all(self) -> list[EngineBuild]:
        """Return its own builds, by engine and ABI. Raises ModelFileError where a kept one is damaged."""
        return [EngineBuild.read(self._artifacts.path(sha256)) for of in self.own().values() for sha256 in of.values()]

    def offered(self, engines: Container[str]) -> dict[str, dict[str, str]]:
        """Return what is named of some engines. Raises ModelFileError where a file of it is gone: hosts would ask for
        it again and again."""
        own = {name: of for name, of in self.named().items() if name in engines}
        for name, sha256 in ((name, sha256) for name, of in own.items() for sha256 in of.values()):
            there = self._artifacts.has(sha256)
            if not there or not all(
                map(self._artifacts.has, EngineBuild.read(self._artifacts.path(sha256)).files.values())
            ):
                raise ModelFileError(f"files of engine {name} are gone from {self._artifacts.folder}", remedy=ADD_AGAIN)
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
                found.setdefault(path.parent.name, {})[path.name] = path.read_text()
        return found

    def _place(self, build: EngineBuild) -> Path:
        return self._folder / build.engine / build.abi


def _text(build: EngineBuild) -> bytes:
    return canonical_json(build.model_dump(mode="json"))
