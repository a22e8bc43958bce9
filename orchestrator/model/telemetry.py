"""Readings of a phone's sampler, kept lean: there are many."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """What the sampler told at a moment of the phone's clock; None: the phone does not tell."""

    t_ns: int
    current_ua: int | None
    voltage_uv: int | None
    status: str
    temp_c: float | None
    """Of the battery."""
    skin_c: float | None
    cpu_khz: int | None
    """The fastest core's clock."""
    gpu_hz: int | None
