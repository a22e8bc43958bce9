"""Nights: what each suite's newest one found."""

from __future__ import annotations

from .board import Board
from .panel import Panel

BOARD = Board(
    uid="pocketfarm-nightly",
    title="Nightly",
    description="What the newest night of each suite found.",
    variables=(),
    rows={
        "Nights": (
            Panel(
                "number", "Regressions, confirmed",
                "Rows of the newest night of each suite that are worse, and were worse again when they were repeated.",
                {"farm_night_regressions_confirmed": "{{suite}}"},
                width=4, limits=(("green", None), ("red", 1)), names=True,
            ),
            Panel(
                "steps", "Rows that are not the same",
                "Rows of the newest night of each suite by verdict; `farm morning SUITE` names them "
                "and says what to do.",
                {'farm_night_rows{verdict!="same"}': "{{suite}}: {{verdict}}"}, width=12, least=0, decimals=0,
            ),
            Panel(
                "table", "How the newest night went",
                "Of each suite: complete, partial, or not run; a partial night lacks a device, or its time was over.",
                {"farm_night_outcome == 1": ""}, nothing="none", hidden=("Time", "instance", "job", "__name__"),
            ),
        ),
    },
)  # fmt: skip
