"""The parts of a bundle, which is a ZIP: what its manifest says of them, and the lines of its blocks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.record import Outcome

FORMAT, PIECE = 1, 1 << 20
MANIFEST, EXPERIMENT, BLOCKS, REPORT = "manifest.json", "experiment.json", "blocks.ndjson", "report.html"
MOST_BYTES = {MANIFEST: 1 << 20, EXPERIMENT: 64 << 20, BLOCKS: 4 << 30, REPORT: 256 << 20}
"""The largest size of each part, unpacked: more is read of none."""
MOST_LINE_BYTES = 64 << 20
FILES, MOST_FILES, MOST_FILE_BYTES = "files/", 1000, 16 << 30
"""The place of the files of models, of which there are so many, with so many bytes together, at most."""
LAB = r"[A-Za-z0-9][A-Za-z0-9-]{0,29}"
"""The names of labs."""
Count = Annotated[int, Field(ge=0, le=10**9)]
Serial = Annotated[str, Field(min_length=1, max_length=165)]
"""A serial that fits the ledger's column with the name of a lab behind it."""
Time = Annotated[float, Field(ge=0.0, le=1e11, allow_inf_nan=False)]
"""Unix time."""
Ended = Outcome | Literal[""]
Cause = Annotated[str, Field(max_length=40)]


class Part(Model):
    """One file in a bundle."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Device(Model):
    """A device that took part."""

    serial: str
    model: str
    source: str
    build: str
    """The fingerprint of its system's build."""


class Manifest(Model):
    """The first page of a bundle."""

    format: Literal[1]
    version: str
    """The pocketfarm that wrote it."""
    lab: str = Field(pattern=f"^{LAB}$")
    experiment: str
    """The experiment's id there."""
    submitted_at: float
    """Unix time."""
    submitter: str
    exported_at: float
    devices: tuple[Device, ...]
    programs: tuple[str, ...]
    """The hashes of everything that shaped what ran: of our own engine, its plans."""
    agents: tuple[str, ...]
    """The versions of the agents that measured."""
    parts: dict[str, Part]
    files: dict[str, int] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The bytes of the files of models and inputs that came with it, by their SHA-256."""


class JobLine(Model):
    """A job's row in the ledger."""

    sequence: Count
    block: Count
    priority: int
    state: Literal["done", "cancelled"]
    outcome: Ended
    cause: Cause
    attempts: Count
    failures: Count
    token: int
    ended_at: Time | None
    template: str
    candidates: str
    """JSON of the serials that may run it."""


class AttemptLine(Model):
    """An attempt's row in the ledger."""

    attempt: Count
    token: int
    serial: Serial
    host: str = Field(max_length=200)
    ttl_s: float
    started_at: Time
    ended_at: Time
    outcome: Ended
    cause: Cause


class Line(Model):
    """A line of the blocks: an attempt, or a job that was never tried."""

    job_id: str
    job_row: JobLine
    attempt_row: AttemptLine | None
    record: dict[str, Any] | None
