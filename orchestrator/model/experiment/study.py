"""A study's own figures: the tables of its text, cell by cell (`experiments/published/`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, FiniteFloat

from orchestrator.model.base import Model, rule

CLOCK = re.compile(r"(?:(\d+)h ?)?(?:(\d+)m ?)?(\d+)s")


def _seconds(value: Any) -> Any:
    """`1h51m24s` as the text has it, in seconds."""
    found = CLOCK.fullmatch(value) if isinstance(value, str) else None
    hours, minutes, seconds = (int(each or 0) for each in found.groups()) if found else (0, 0, 0)
    return 3600 * hours + 60 * minutes + seconds if found else value


Value = Annotated[FiniteFloat, BeforeValidator(_seconds, json_schema_input_type=float | str)]


class StudyTable(Model):
    """Some rows of a table of the text, or figures that stand together in a sentence."""

    table: str
    """The name that the text gives it; the parts of a table have one name."""
    title: str = Field(min_length=1)
    lines: str = ""
    """The lines of the text: `98-100`; of a sentence with the place of the first number: `95-95:12`."""
    device: str = ""
    """The device on which all rows were measured; otherwise a row with a device's name was measured there."""
    columns: dict[str, str] = Field(min_length=1)
    """Name -> unit."""
    rows: dict[str, tuple[Value | None, ...]] = Field(min_length=1)
    """Name -> figures, one for each column; null where the text has none."""

    @rule
    def _as_wide_as_its_head(self) -> None:
        for name, values in self.rows.items():
            if len(values) != len(self.columns):
                raise ValueError(f"row {name!r} has {len(values)} figures for {len(self.columns)} columns")


class Derived(Model):
    """A column of the text that follows from others."""

    table: str
    column: str
    formula: str
    """Python's arithmetic over columns in braces."""


class Contradiction(Model):
    """A contradiction of the text to itself."""

    table: str
    row: str = ""
    column: str = ""
    but: str


class Study(Model):
    """A study's file."""

    source: str = Field(min_length=1)
    """The authors who published it, and when."""
    devices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Its devices by name, with patterns of their model's name: `Galaxy S7: [SM-G930*]`."""
    cells: tuple[StudyTable, ...] = ()
    """Figures of the text."""
    logs: tuple[StudyTable, ...] = ()
    """Figures of the authors' own logs, which the text does not have."""
    derived: tuple[Derived, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    def called(self, table: str) -> list[StudyTable]:
        return [each for each in (*self.cells, *self.logs) if each.table == table]

    def only(self, tables: Iterable[str]) -> Study:
        """Return the part that is told beside results: these tables, and where they contradict themselves."""
        names = set(tables)
        kept: dict[str, Any] = {
            part: tuple(each for each in getattr(self, part) if each.table in names)
            for part in ("cells", "logs", "contradictions")
        }
        return self.model_copy(update={**kept, "derived": ()})
