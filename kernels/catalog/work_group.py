"""Work-groups: whether one fits the device, and those worth trying where a kernel works in any."""

from __future__ import annotations

from kernels.errors import OptionError
from kernels.options import Limits

_SIZES = (32, 128, 256)
"""Beside 64 work-items, which is what a GPU gets (`kernels/lower/gpu/context.py`)."""


def group_conflict(limits: Limits, *, group: int, local_bytes: int) -> str | None:
    """Why a work-group of so many work-items with so much local memory does not fit; None where it does."""
    sizes = limits.max_work_item_sizes[:1]
    most = min([size for size in (limits.max_work_group, *sizes) if size], default=group)
    if group > most:
        return f"it needs a work-group of {group}, the device has {most}"
    if limits.local_bytes and local_bytes > limits.local_bytes:
        return f"it needs {local_bytes} bytes of local memory, the device has {limits.local_bytes}"
    return None


def in_groups(tile: str, limits: Limits, *, work_items: int) -> list[str]:
    """The tile in other work-groups than the usual one, where it has so many work-items along the first axis.

    None on a CPU behind a GPU interface: there a work-group is a loop.
    """
    if limits.cpu_device:
        return []
    fitting = [size for size in _SIZES if group_conflict(limits, group=size, local_bytes=0) is None]
    return [f"{tile}@{size}" for size in fitting if size // 2 < work_items]


def split_group(tile: str) -> tuple[str, int]:
    """`4x2x4@128` -> (`4x2x4`, 128); a work-group of 0 is the usual one. Raises OptionError."""
    words, at, group = tile.partition("@")
    if at and not (group.isdecimal() and int(group) > 0):
        raise OptionError(
            f"tile {tile!r} is not known; write the work-items of a work-group behind @, e.g. {words}@128"
        )
    return words, int(group or 0)
