"""Acts that bring what others measured into the ledger: an experiment of another lab, a table of samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.acts.act import Acting, Done, act
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.exchange import samples
from orchestrator.ledger.upkeep import bundles
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

BRINGS = Right(Role.ADMINISTER, of="farm")


@dataclass(frozen=True)
class BundleImported(Done):
    brought: bundles.Brought

    @property
    def on(self) -> str:
        return self.brought.experiment

    @property
    def did(self) -> bool:
        return self.brought.created

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        one = self.brought
        if not self.did:
            return [f"nothing to do: {one.experiment} is there already; {one.origin.text}"]
        files = f" and {one.files} files" * bool(one.files)
        return [f"{one.origin.text}; {one.blocks} blocks{files}"]

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self.brought)


@act(BRINGS, apart=True)
def import_bundle(acting: Acting, file: Path) -> BundleImported:
    """Store the experiment of another lab's bundle, and the files that it brings.

    The hashes of a bundle tell a broken copy, and no forger: whoever changes it writes a manifest that fits. Raises
    SetupError for a file that is no bundle, or not a whole one.
    """

    keep = Artifacts(acting.site.settings.state).receive
    return BundleImported(
        bundles.take_in(acting.ledger, file, keep, lambda brought: acting.row(BundleImported(brought)))
    )


@dataclass(frozen=True)
class SamplesImported(Done):
    table: samples.Import

    @property
    def on(self) -> str:
        return self.table.experiment_id

    @property
    def did(self) -> bool:
        return self.table.created

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        if not self.did:
            return [f"nothing to do: {self.on} is there already"]
        return [f"{self.table.rows} rows of a table in {self.table.blocks} blocks"]


@act(BRINGS, apart=True)
def import_samples(acting: Acting, table: Path, name: str | None = None) -> SamplesImported:
    """Store time samples of a table as an experiment. Raises TableError, ValueError for an impossible name."""

    return SamplesImported(
        samples.import_samples(acting.ledger, table, name, lambda made: acting.row(SamplesImported(made)))
    )
