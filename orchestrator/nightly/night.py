"""A night: one run of a suite, as it is stored. Every step of the night replaces it as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.analysis.comparison import Compared
from orchestrator.model.base import Model
from orchestrator.model.experiment import Experiment

from .suite import Suite

Kind = Literal["first", "more", "repeat"]
Outcome = Literal["complete", "partial", "not_run"]


CellOnDevice = tuple[str, str]
"""Serial, and id of the cell."""


class Wave(Model):
    """One experiment in the ledger: a part of the night."""

    kind: Kind
    """`first`; `more` blocks of what was unknown; `repeat` of what changed."""
    part: str
    """Name of the experiment of the suite."""
    experiment_id: str
    """The experiment's id in the ledger: both sides are in it."""
    number: int
    """The turn of the night, from 0; the waves of one turn run side by side."""
    blocks: int
    cells: tuple[CellOnDevice, ...] | None = None
    """The cells of both sides; None: all."""
    refused: str = ""
    """The reason why nothing of it can run; then the ledger has no such experiment."""


class NightRow(Model):
    """One metric of one cell on one device, A the baseline, B the candidate."""

    part: str
    """Name of the experiment of the suite."""
    compared: Compared
    """The comparison by all blocks of the night but the repetition's; its verdict is one of the table as a whole."""
    repeated: Compared | None = None
    """The comparison of a difference by the blocks of the repetition alone."""

    @property
    def said(self) -> str:
        """The word that every place has for the row: `worse`, `better`, `not confirmed` where the repetition did not
        find it again, `unknown`, `missing`, `unavailable` where it cannot be had, `same`."""
        found = self.compared
        if found.verdict == "missing" and not found.expected:
            return "unavailable"
        if found.verdict != "different":
            return found.verdict
        return "not confirmed" if self.confirmed is False else "worse" if found.worse else "better"

    @property
    def confirmed(self) -> bool | None:
        """True if the repetition found the difference too, in the same direction; None: there was none."""
        if self.repeated is None or self.repeated.verdict == "missing":
            return None
        return self.repeated.verdict == "different" and self.repeated.worse == self.compared.worse


class Missing(Model):
    """A device that should have taken part, and did not, or not wholly."""

    device: str
    reason: str
    cells: int = 0
    """Cells of it, on either side, without a good block; 0: it had no jobs at all."""


class Told(Model):
    """One attempt to tell somebody."""

    to: str
    """The address, without its secrets."""
    at: float
    error: str = ""
    """Empty: it was taken."""


class Night(Model):
    """One run of a suite."""

    schema_version: Literal[1] = 1
    night_id: str
    """`SUITE@2026-11-23T02:30:00`, in UTC."""
    suite: Suite
    """The suite as it was in that night."""
    file: str
    """The suite's file."""
    scheduled: bool
    """True if it came by its schedule; else somebody asked for it."""
    due_at: float
    """Unix time."""
    began_at: float | None = None
    """None: it did not run."""
    ends_at: float
    """The time when its budget is over."""
    ended_at: float | None = None
    """None: it is under way, or has not been told yet."""
    parts: tuple[Experiment, ...] = ()
    """The suite's experiments as they are run, both sides inside, their files named by content."""
    waves: tuple[Wave, ...] = ()
    rows: tuple[NightRow, ...] = ()
    """Once it is judged."""
    expected: tuple[str, ...] = ()
    """Serials that should take part."""
    devices: tuple[str, ...] = ()
    """Serials that measured something."""
    missing: tuple[Missing, ...] = ()
    problems: tuple[str, ...] = ()
    """The reasons why it did not run, or not to its end; each a sentence."""
    warnings: tuple[str, ...] = ()
    """Warnings for a reader beside the rows; each a sentence."""
    outcome: Outcome | None = None
    """None: it is under way. `partial`: a device is missing, or the budget was over before all was measured."""
    told: tuple[Told, ...] = Field(default=())

    @property
    def is_judged(self) -> bool:
        return self.outcome is not None
