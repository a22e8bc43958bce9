"""Work-groups: whether one fits the device, those worth trying where a kernel works in any, and how many there are."""

from __future__ import annotations

from math import prod

from kernels.errors import OptionError
from kernels.options import Backend, Limits

WorkItems = tuple[int, int, int]
_USUAL, _ON_A_CPU, _LARGE = 64, 16, 256
_MANY = 1 << 19
"""Work-items that fill the largest GPUs with large work-groups, too."""
_SIZES = (32, 128, 256)
"""Sizes to try beside the usual one."""
MOST_GROUPS = 65535
"""Work-groups along an axis that every Vulkan device takes; many take no more."""


def group_size(limits: Limits, work_items: WorkItems = (0, 1, 1)) -> int:
    """Work-items of a work-group where a kernel works in any: of so many, larger ones on a GPU with memory of its own.

    Such a GPU begins about one work-group a cycle, whatever its size: a copy of 256 MiB reached 0.8 TB/s in groups of
    64 on an H200 and 2.2 TB/s in groups of 256.
    """
    wanted = _ON_A_CPU if limits.cpu_device else _USUAL
    even = work_items[0] % _LARGE == 0 or work_items[0] >= 16 * _LARGE
    if even and prod(work_items) >= _MANY and not (limits.cpu_device or limits.unified_memory):
        wanted = _LARGE
    first = limits.max_work_item_sizes[0] if limits.max_work_item_sizes else wanted
    return max(1, min(wanted, limits.max_work_group or wanted, first or wanted))


def folded(work_items: WorkItems, size: int, backend: Backend) -> tuple[WorkItems, dict[str, int]]:
    """Fold the work-groups of an axis into rows where Vulkan may refuse so many; return also how many there are on each
    axis.

    The program counts through the rows (`kernels/source/dialects/vulkan.py`); the last may be left incomplete.
    """
    x, y, z = -(-work_items[0] // size), *work_items[1:]
    if backend != "vulkan" or max(x, y, z) <= MOST_GROUPS:
        return work_items, {}
    rows = -(-x * y * z // MOST_GROUPS)
    return (-(-x * y * z // rows) * size, rows, 1), {"GROUPS_X": x, "GROUPS_Y": y, "GROUPS_Z": z}


def group_conflict(limits: Limits, *, group: int, local_bytes: int) -> str | None:
    """Return why a work-group of so many work-items with so much local memory does not fit; None: it does."""
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
