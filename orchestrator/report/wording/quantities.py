"""Counts, times, rates, powers, energies, shares and sizes as text."""

from __future__ import annotations

from math import floor, log10

NS_DECIMALS = 6
PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def counted(number: int, noun: str) -> str:
    """`1 cell`, `2 cells`, `1,000 jobs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def ms(value: float) -> str:
    """Milliseconds with three significant digits, down to the nanosecond: `0.00042`, `4.56`, `78.9`, `1234`."""
    if value <= 0:
        return f"{value:.0f}"
    size = floor(log10(float(f"{value:.2e}")))  # of the rounded value: 9.997 is 10.0, and 99.97 is 100
    return f"{value:.{min(max(2 - size, 0), NS_DECIMALS)}f}"


def per_s(value: float) -> str:
    """Frames per second with three significant digits: `0.123`, `4.56`, `78.9`, `1234`."""
    return ms(value)


def joules(value: float) -> str:
    """`1.23 J`, `45.6 mJ`, `0.789 µJ`: three significant digits."""
    return f"{_scaled(value)}J"


def watts(value: float) -> str:
    """`3.21 W`, `812 mW`: three significant digits."""
    return f"{_scaled(value)}W"


def _scaled(value: float) -> str:
    factor, prefix = next((p for p in PREFIXES if abs(value) >= p[0]), PREFIXES[-1] if value else PREFIXES[0])
    return f"{three(value / factor)} {prefix}"


def three(value: float) -> str:
    """Three significant digits of 1 to 999."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def share(value: float) -> str:
    """`3.4 %`."""
    return f"{100 * value:.1f} %"


def memory_size(size_bytes: int | None) -> str:
    """In MiB, or KiB below one."""
    if size_bytes is None:
        return ""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.1f} KiB"
