"""Power traces that others recorded: Trepn, Monsoon, or any CSV with units -> recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from orchestrator.exchange.delimited_table import Table

from . import monsoon, plain, trepn
from .checks import checked
from .recording import Recording, TraceDoubt, TraceDoubtCode

Format = Literal["trepn", "monsoon", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
READERS = {trepn.FORMAT: trepn.read, monsoon.FORMAT: monsoon.read, plain.FORMAT: plain.read}


def read_trace(path: Path, form: Format | None = None) -> list[Recording]:
    """The runs of a file (nearly always one), checked. The form is found by content unless it is given.

    Raises TableError, with file, line, column, what was found and what is allowed.
    """
    table = Table(path)
    return [checked(recording) for recording in READERS[form or detect(table)](table)]


def detect(table: Table) -> Format:
    """Which program wrote a file; `csv` where none of those that are known."""
    head = table.head()
    if trepn.matches(head):
        return "trepn"
    return "monsoon" if monsoon.matches(head) else "csv"


__all__ = ["FORMATS", "Format", "Recording", "TraceDoubt", "TraceDoubtCode", "detect", "read_trace"]
