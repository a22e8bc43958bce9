"""Compute energy with its uncertainty from readings of power, and decide whether a block counts. Pure."""

from .block import BlockEnergy, block_energy, check_comparable, why_no_energy
from .charge import ChargeCheck, charge_check
from .rise import evidence_of_rise
from .sources import battery_draw_a, calibration, draw_of, origins, series_trace
from .throttling import LatencyChange, latency_change
from .trace import Trace, cumulative_j, energy_j, plain_mean_w, time_mean_w
from .uncertainty import estimate, integrate_j
from .validity import find_invalid
from .windows import stage_windows
