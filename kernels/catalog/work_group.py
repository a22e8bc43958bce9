"""Whether a work-group fits the device."""

from __future__ import annotations

from kernels.options import Limits


def group_misfit(limits: Limits, *, group: int, local_bytes: int) -> str | None:
    """Why a work-group of so many work-items with so much local memory does not fit; None where it does."""
    sizes = limits.max_work_item_sizes[:1]
    most = min([size for size in (limits.max_work_group, *sizes) if size], default=group)
    if group > most:
        return f"it needs a work-group of {group}, the device has {most}"
    if limits.local_bytes and local_bytes > limits.local_bytes:
        return f"it needs {local_bytes} bytes of local memory, the device has {limits.local_bytes}"
    return None
