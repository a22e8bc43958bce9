"""Compute energy with its uncertainty from readings of power, and decide whether a block counts. Pure."""

from .block import BlockEnergy, block_energy, check_comparable, why_no_energy
from .charge import ChargeCheck, charge_check
from .rise import evidence_of_rise
from .sources import battery_draw_a, calibration, draw_of, gauge_trace, origins, series_trace
from .throttling import LatencyChange, latency_change
from .trace import Trace, cumulative_j, energy_j, plain_mean_w, time_mean_w
from .uncertainty import estimate, integrate_j
from .validity import find_invalid
from .windows import stage_windows

__all__ = [
    "BlockEnergy",
    "ChargeCheck",
    "LatencyChange",
    "Trace",
    "battery_draw_a",
    "block_energy",
    "calibration",
    "charge_check",
    "check_comparable",
    "cumulative_j",
    "draw_of",
    "energy_j",
    "estimate",
    "evidence_of_rise",
    "find_invalid",
    "gauge_trace",
    "integrate_j",
    "latency_change",
    "origins",
    "plain_mean_w",
    "series_trace",
    "stage_windows",
    "time_mean_w",
    "why_no_energy",
]
