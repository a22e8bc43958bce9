"""Keep a row of figures beside each record: derived, and made anew where it is missing or of another version."""

from __future__ import annotations

from .intake import add
from .reading import of_experiment, of_jobs, of_result
from .renewal import BATCH, Renewed, keys, lacking, renew

__all__ = [
    "BATCH",
    "Renewed",
    "add",
    "keys",
    "lacking",
    "of_experiment",
    "of_jobs",
    "of_result",
    "renew",
]
