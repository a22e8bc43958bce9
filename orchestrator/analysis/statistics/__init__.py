"""Turn figures of blocks into statistics: what was measured, how precisely, and which doubts it has. Pure.

The independent unit is the block (a fresh agent process), not the inference: samples of one block share clocks, heat
and memory layout. So the latency of a cell on a device is the median over its blocks' medians, and its interval is over
blocks, and says how often such intervals hold the truth; its percentiles are medians over blocks too. With fewer than
`MIN_BLOCKS` there is no interval.
"""

from orchestrator.figures import ENERGIES, QUANTITIES

from .canaries import CanaryVerdict, CanaryWord, canary_verdicts
from .effect import Effect, detectable
from .energies import TOO_SHORT, EnergyPerInference, EnergyUse, Figure, energy_of, energy_uses, reported_energy
from .intervals import (
    MIN_BLOCKS,
    Interval,
    Method,
    median_interval,
    range_coverage,
    relative_half_width,
)
from .latency import Latency, latency
from .modes import ColdStart, Mode, ThrottleBin, Throttling, block_value_ms, cold_start, throttling
from .quantities import Told, told_of
from .resolution import MOST_BLOCKS, Unresolved, is_told, median_of, unresolved
from .resources import (
    MemoryUse,
    layer_medians,
    memory_medians,
    planned_memory,
)
from .runs import MOST_RUNS, between_runs
from .serial import SERIAL_BLOCKS, serial_correlation
from .setup import SetupKind, SetupUse, setup_uses
from .spread import Spread
from .stability import Stability, Verdict, stability
from .summary import InvalidReason, Summary, newest_attempts, summarise
from .throughput import Throughput, throughput
