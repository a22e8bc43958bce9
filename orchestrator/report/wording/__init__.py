"""Numbers, names and sources as text, the same in every form of report."""

from orchestrator.model.quantity import counted

from .energies import EnergyRow, energy, energy_basis, energy_groups, power_source, short_source
from .exclusions import group_exclusions
from .intervals import (
    LEVELS,
    WITH_UNIT,
    change,
    ends,
    figure,
    in_words,
    interval_note,
    number,
    percent,
    percent_interval,
    ratio,
    session_note,
    times,
    times_of,
    told,
)
from .names import Naming, cell, few, label_options, naming, sample, short_name, without
from .quantities import decimals, detects, fact, joules, memory_size, ms, per_s, rounded, share, watts
from .results import (
    MOST_REASONS,
    blocks,
    common_doubts,
    device,
    doubt_numbers,
    driver,
    instead,
    not_ok,
    outcomes,
    ran_on,
    setup,
    source_word,
    unreal_note,
    usable,
)
