"""A fault of a row of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

PUT_BACK = "`farm ledger restore FILE` puts the ledger back from a copy; all other rows go on as they are"
RECOMPUTE = "`farm ledger recompute --all` makes it anew from the record"


@dataclass(frozen=True)
class Fault:
    """A row with what is wrong and what to do."""

    table: str
    row: str
    """Its key; empty: the whole table."""
    what: str
    remedy: str
    harmless: bool = False
    """Nothing is lost or wrong: it is mended by itself when it is needed."""
