"""Power traces that others recorded -> recordings: Trepn, Monsoon, Joulescope, Otii, nvidia-smi, perfetto, or CSV with
units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from orchestrator.exchange.delimited_table import Table

from . import joulescope, monsoon, nvidia_smi, otii, perfetto, plain, trepn
from .checks import checked
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode
from .time_base import UNITS

Format = Literal["trepn", "monsoon", "joulescope", "otii", "nvidia-smi", "perfetto", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
READERS: dict[Format, Callable[[Table, Told], list[Recording]]] = {
    "trepn": trepn.read,
    "monsoon": monsoon.read,
    "joulescope": joulescope.read,
    "otii": otii.read,
    "nvidia-smi": nvidia_smi.read,
    "csv": plain.read,
}
KNOWN: dict[Format, Callable[[Sequence[tuple[int, list[str]]]], bool]] = {
    "trepn": trepn.matches,
    "monsoon": monsoon.matches,
    "joulescope": joulescope.matches,
    "otii": otii.matches,
    "nvidia-smi": nvidia_smi.matches,
}
"""The tests by which tables are known by their titles, in the order in which they are asked."""
AS_FOUND = Told()


def read_trace(path: Path, form: Format | None = None, told: Told = AS_FOUND) -> list[Recording]:
    """The runs of a file (nearly always one), checked. The form is found by content unless it is given.

    Raises TableError, with file, line, column, what was found and what is allowed.
    """
    if form == perfetto.FORMAT or (form is None and perfetto.matches(path)):
        return [checked(recording) for recording in perfetto.read(path, told)]
    table = Table(path)
    return [checked(recording) for recording in READERS[form or detect(table)](table, told)]


def detect(table: Table) -> Format:
    """Return which program wrote a table; `csv` where none of those that are known."""
    head = table.head()
    return next((form for form, matches in KNOWN.items() if matches(head)), "csv")


__all__ = ["FORMATS", "UNITS", "Format", "Recording", "Told", "TraceDoubt", "TraceDoubtCode", "detect", "read_trace"]
