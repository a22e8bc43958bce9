"""Turn records into statistics: what was measured, how precisely, and which doubts it has. Pure.

The independent unit is the block (a fresh agent process), not the inference: samples of one block share clocks, heat
and memory layout. So the latency of a cell on a device is the median over its blocks' medians, and its interval
resamples blocks. With fewer than `MIN_BLOCKS` blocks there is no interval.
"""

from __future__ import annotations

from .canaries import CanaryVerdict, CanaryWord, canary_verdicts
from .effect import Effect, detectable
from .energies import EnergyPerInference, EnergyUse, Figure, energy_uses, reported_energy
from .intervals import (
    MIN_BLOCKS,
    RESAMPLES,
    Interval,
    bootstrap_median,
    mad,
    range_coverage,
    relative_half_width,
)
from .modes import ColdStart, Mode, ThrottleBin, Throttling, block_value_ms, cold_start, throttling
from .resources import (
    LayerTime,
    MemoryUse,
    layer_medians,
    memory_medians,
    planned_memory,
)
from .samples import NS_PER_MS, Latency, latency, timed_ms
from .setup import SetupKind, SetupUse, setup_uses, total_setup_ms
from .stability import Stability, Verdict, mann_kendall, stability
from .summary import InvalidReason, Summary, invalid_reasons, least_proven, newest_attempts, summarise
from .throughput import Throughput, frames_per_s, is_stream, throughput

__all__ = [
    "MIN_BLOCKS",
    "NS_PER_MS",
    "RESAMPLES",
    "CanaryVerdict",
    "CanaryWord",
    "ColdStart",
    "Effect",
    "EnergyPerInference",
    "EnergyUse",
    "Figure",
    "Interval",
    "InvalidReason",
    "Latency",
    "LayerTime",
    "MemoryUse",
    "Mode",
    "SetupKind",
    "SetupUse",
    "Stability",
    "Summary",
    "ThrottleBin",
    "Throttling",
    "Throughput",
    "Verdict",
    "block_value_ms",
    "bootstrap_median",
    "canary_verdicts",
    "cold_start",
    "detectable",
    "energy_uses",
    "frames_per_s",
    "invalid_reasons",
    "is_stream",
    "latency",
    "layer_medians",
    "least_proven",
    "mad",
    "mann_kendall",
    "memory_medians",
    "newest_attempts",
    "planned_memory",
    "range_coverage",
    "relative_half_width",
    "reported_energy",
    "setup_uses",
    "stability",
    "summarise",
    "throttling",
    "throughput",
    "timed_ms",
    "total_setup_ms",
]
