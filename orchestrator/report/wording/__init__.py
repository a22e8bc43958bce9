"""Numbers, names and sources as text, the same in every form of report."""

from .energies import EnergyRow, energy, energy_basis, energy_groups, power_source, short_source
from .exclusions import group_exclusions
from .intervals import LEVELS, interval, interval_note, joule_interval, latency_interval, percent, percent_interval
from .names import Naming, cell, few, naming, shared_word, short_name, without
from .quantities import counted, joules, memory_size, ms, per_s, share, watts
from .results import (
    blocks,
    common_doubts,
    doubt_numbers,
    driver,
    instead,
    not_ok,
    outcomes,
    ran_on,
    source_word,
    unreal_note,
)

__all__ = [
    "LEVELS",
    "EnergyRow",
    "Naming",
    "blocks",
    "cell",
    "common_doubts",
    "counted",
    "doubt_numbers",
    "driver",
    "energy",
    "energy_basis",
    "energy_groups",
    "few",
    "group_exclusions",
    "instead",
    "interval",
    "interval_note",
    "joule_interval",
    "joules",
    "latency_interval",
    "memory_size",
    "ms",
    "naming",
    "not_ok",
    "outcomes",
    "per_s",
    "percent",
    "percent_interval",
    "power_source",
    "ran_on",
    "share",
    "shared_word",
    "short_name",
    "short_source",
    "source_word",
    "unreal_note",
    "watts",
    "without",
]
