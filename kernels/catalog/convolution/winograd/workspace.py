"""The part of Winograd's workspace that exists at a time (study M): rows of tiles (its method P), or input channels
(C)."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.errors import OptionError
from kernels.options import Limits, Options

_SHARE = 16
"""Part of the device's memory that a workspace takes unasked."""


@dataclass(frozen=True)
class Need:
    """Bytes of the workspace of one convolution."""

    key: str
    """Names the convolution."""
    rows: int
    """Rows of tiles."""
    stack_bytes: int
    """Transformed values of one stack of four channels, in one row of tiles."""
    in_stacks: int
    out_stacks: int
    copies: int = 1
    """Times that each input stack is transformed."""


@dataclass(frozen=True)
class Division:
    """The part that one round of dispatches covers."""

    rows: int
    """Rows of tiles; the last round may have fewer."""
    stacks: int
    """Stacks of input channels at a time; the products of each are added to those before."""


def divide(need: Need, options: Options, limits: Limits) -> Division:
    """The largest rounds whose transformed inputs and products fit the workspace.

    By `rows`: all channels of some rows. By `channels`: all rows, as far as the products of all of them take no more
    than half of the workspace, and some of the channels. Raises OptionError where what was asked for is too small.
    """
    total = options.workspace or limits.memory_budget_bytes // _SHARE
    if options.workspace_split == "channels":
        return _by_channels(need, total, options, limits)
    row_bytes = need.stack_bytes * (need.in_stacks * need.copies + need.out_stacks)
    wider = need.stack_bytes * max(need.in_stacks * need.copies, need.out_stacks)
    rows = min(_count(total, row_bytes, need.rows), _count(limits.max_buffer_bytes, wider, need.rows))
    _check(row_bytes, need, options)
    return Division(_even(need.rows, max(1, rows)), need.in_stacks)


def _by_channels(need: Need, total: int, options: Options, limits: Limits) -> Division:
    products = need.stack_bytes * need.out_stacks
    _check(products + need.stack_bytes * need.copies, need, options)
    rows = min(_count(total // 2, products, need.rows), _count(limits.max_buffer_bytes, products, need.rows))
    rows = _even(need.rows, max(1, rows))
    left = max(1, total - products * rows) if total else 0
    slab = need.stack_bytes * rows * need.copies
    stacks = min(_count(left, slab, need.in_stacks), _count(limits.max_buffer_bytes, slab, need.in_stacks))
    return Division(rows, _even(need.in_stacks, max(1, stacks)))


def _count(available: int, each: int, wanted: int) -> int:
    """Return how many of `wanted` fit into what is available (0: any number)."""
    return min(wanted, available // each) if available else wanted


def _even(total: int, most: int) -> int:
    """Parts of about equal size, none above `most`."""
    return -(-total // -(-total // most))


def _check(least: int, need: Need, options: Options) -> None:
    if options.workspace and options.workspace < least:
        raise OptionError(
            f"a workspace of {options.workspace} bytes is too small for winograd in {need.key}: split by "
            f"{options.workspace_split} it needs {least}; give more, or another algorithm"
        )
