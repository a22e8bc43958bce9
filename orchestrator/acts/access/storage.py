"""The storage of a project: what its files and records take at the farm, and how much they may."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path

from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.model.errors import NotAllowed
from orchestrator.model.rights import USUAL
from orchestrator.system.config import Settings

GIB = 1 << 30
Stored = Callable[[], tuple[Sequence[str], int]]


class Storage:
    """The files that a project sent, those of its experiments and engines, each once by its hash, and its records."""

    def __init__(self, state: Path, project: str, stored: Stored, most_bytes: int = 0, usual_bytes: int = 0) -> None:
        """`stored`: gives the texts of its experiments and the bytes of its records. `most_bytes`: 0: the project has
        no limit of its own, and may send `usual_bytes`."""
        self.state, self.project, self.folder = state, project, state / "uploads" / project
        self._own, self._usual, self._stored = most_bytes, usual_bytes, stored

    @classmethod
    def of(cls, ledger: Ledger, settings: Settings, project: str) -> Storage:
        most = ledger.people.terms().get(project, USUAL).storage_gib
        own = int(most * GIB), settings.project_files_bytes
        return cls(settings.state, project, lambda: ledger.people.stored([project])[project], *own)

    @classmethod
    def all_used(cls, ledger: Ledger, state: Path, projects: Collection[str]) -> dict[str, int]:
        """Return the bytes of each of these projects."""
        stored = ledger.people.stored(projects)
        return {name: cls(state, name, partial(stored.__getitem__, name)).used() for name in projects}

    @cached_property
    def _kept(self) -> tuple[Mapping[str, int], int]:
        """The bytes of kept files by hash, and those of records, as they were at the first look."""
        artifacts, (texts, records) = Artifacts(self.state), self._stored()
        engines = [each.build.model_dump_json() for each in EngineBuilds(artifacts, self.project).all() if each.build]
        return artifacts.sizes_in("\n".join([*texts, *engines])), records

    def used(self, beside: Mapping[str, int] | None = None) -> int:
        """Return the bytes of all, beside files that are counted elsewhere."""
        sent, (kept, records) = dict[str, int](), self._kept
        for path in self.folder.glob("*"):
            with suppress(OSError):  # another request has just renamed or removed it
                sent[path.stem] = path.stat().st_size
        return records + sum(size for name, size in {**kept, **sent}.items() if name not in (beside or {}))

    def let(self, files: Mapping[str, int], *, sent: bool = False) -> None:
        """Raise NotAllowed where files of these bytes by hash are too much beside all else. `sent`: they come over the
        network."""
        most, more = self._own or self._usual * sent, sum(files.values())
        if (self._own or sent) and (used := self.used(files)) + more > most:
            raise NotAllowed(
                f"the project {self.project} keeps {used} bytes of files and records and may keep {most}; "
                f"{more} more are too many",
                remedy="bring smaller files, remove what is not needed (`farm engines remove`, `farm ledger prune`), "
                f"or `farm projects set {self.project} --storage-gib NUMBER`",
            )
