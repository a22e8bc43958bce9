"""Acts that bring what others measured into the ledger: an experiment of another lab, a table of samples."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from orchestrator.acts.act import Acting, Settled, act
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.exchange import samples
from orchestrator.model.errors import ModelFileError
from orchestrator.model.people import Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import Right

if TYPE_CHECKING:
    from orchestrator.ledger.upkeep import bundles  # with pyarrow

BRINGS = Right(Role.ADMINISTER, of="farm")


@dataclass(frozen=True)
class BundleImported(Settled):
    brought: bundles.Brought
    is_new: bool

    @property
    def on(self) -> str:
        return self.brought.experiment

    @property
    def says(self) -> str:
        one = self.brought
        files = counted(one.files, "file")
        if not one.created:
            return f"{one.experiment} is there already{f', {files} came' * bool(one.files)}; {one.origin.text}"
        return f"{one.origin.text}; {counted(one.blocks, 'block')}{f' and {files}' * bool(one.files)}"

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self.brought)


@act(BRINGS, apart=True)
def import_bundle(acting: Acting, file: Path) -> BundleImported:
    """Store the experiment of another lab's bundle, and the files that it brings, also where the experiment is here.

    The hashes of a bundle tell a broken copy, and no forger: whoever changes it writes a manifest that fits. Raises
    SetupError for a file that is no bundle, or not a whole one.
    """
    from orchestrator.ledger.upkeep import bundles

    def done(brought: bundles.Brought) -> BundleImported:
        return BundleImported(brought, brought.created or brought.files > 0)

    keep = keeper(Artifacts(acting.site.settings.state))
    return done(bundles.take_in(acting.ledger, file, keep, lambda brought: acting.row(done(brought))))


def keeper(kept: Artifacts) -> bundles.Keep:
    """Return what keeps a bundle's files, and leaves those that are here whole."""

    def keep(source: IO[bytes], sha256: str) -> bool:
        with suppress(ModelFileError):
            kept.path(sha256)
            return False
        kept.receive(source, sha256)
        return True

    return keep


@dataclass(frozen=True)
class SamplesImported(Settled):
    table: samples.Import
    is_new: bool

    @property
    def on(self) -> str:
        return self.table.experiment_id

    @property
    def says(self) -> str:
        if not self.is_new:
            return f"{self.on} is there already"
        return f"{counted(self.table.rows, 'row')} of a table in {counted(self.table.blocks, 'block')}"


@act(BRINGS, apart=True)
def import_samples(acting: Acting, table: Path, name: str | None = None) -> SamplesImported:
    """Store time samples of a table as an experiment. Raises TableError, ValueError for an impossible name."""

    def done(made: samples.Import) -> SamplesImported:
        return SamplesImported(made, made.created)

    return done(samples.import_samples(acting.ledger, table, name, lambda made: acting.row(done(made))))
