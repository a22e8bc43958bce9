"""Counts, times, rates, powers, energies, shares and sizes as text."""

from __future__ import annotations

import time
from math import floor, log10

NS_DECIMALS = 6
PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def decimals(value: float, half_width: float | None = None, significant: int = 3) -> int:
    """Return the decimals for so many significant digits, but at most one past the first significant one of half an
    interval; negative where tens or hundreds are to be rounded."""
    size = floor(log10(float(f"{abs(value):.{significant - 1}e}"))) if value else 0  # of the rounded one: 9.997 is 10
    found = max(significant - 1 - size, 0)
    return min(found, 1 - floor(log10(half_width))) if half_width else found


def rounded(value: float, places: int) -> str:
    """Return a value with so many decimals; tens or hundreds rounded where these are negative."""
    return f"{round(value, places):.{max(0, places)}f}"


def ms(value: float | None, half_width: float | None = None) -> str:
    """Milliseconds with three significant digits, down to the nanosecond: `0.00042`, `4.56`, `78.9`, `1234`; empty
    without one."""
    if not value:
        return "" if value is None else "0"
    return rounded(value, min(decimals(value, half_width), NS_DECIMALS))


def per_s(value: float) -> str:
    """Frames per second with three significant digits: `0.123`, `4.56`, `78.9`, `1234`."""
    return ms(value)


def joules(value: float) -> str:
    """`1.23 J`, `45.6 mJ`, `0.789 µJ`: three significant digits."""
    return scaled(value, "J")


def watts(value: float) -> str:
    """`3.21 W`, `812 mW`: three significant digits."""
    return scaled(value, "W")


def prefix_of(value: float) -> tuple[float, str]:
    """Return a figure's divisor, and what stands before its unit."""
    return next((p for p in PREFIXES if abs(value) >= p[0]), PREFIXES[-1] if value else PREFIXES[0])


def scaled(value: float, unit: str, half_width: float | None = None) -> str:
    factor, prefix = prefix_of(value)
    scale_half = half_width / factor if half_width else None
    return f"{rounded(value / factor, decimals(value / factor, scale_half))} {prefix}{unit}"


def share(value: float) -> str:
    """`3.4 %`."""
    return f"{100 * value:.1f} %"


def detects(value: float) -> str:
    """`detects 3.4 %`; of a difference as large as the figure itself only that."""
    return (
        f"detects {rounded(100 * value, decimals(100 * value, significant=2))} %"
        if value < 1
        else "detects no difference below 100 %"
    )


def fact(name: str, value: object) -> str:
    """Return a fact of a device: times of day, sizes with their unit, numbers with four digits."""
    if name.endswith("_at") and isinstance(value, int | float):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if name.endswith("_bytes") and isinstance(value, int):
        return memory_size(value)
    if isinstance(value, list | tuple):
        return ", ".join(fact("", each) for each in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def memory_size(size_bytes: float | None) -> str:
    """Return a size in MiB, or KiB below one."""
    if size_bytes is None:
        return ""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.1f} KiB"
