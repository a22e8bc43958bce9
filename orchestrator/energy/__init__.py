"""Readings of power -> energy with its uncertainty, and whether a block counts. Pure: numpy and models."""

from .trace import Trace, energy_j, plain_mean_w, time_mean_w
from .uncertainty import estimate, integrate_j

__all__ = ["Trace", "energy_j", "estimate", "integrate_j", "plain_mean_w", "time_mean_w"]
