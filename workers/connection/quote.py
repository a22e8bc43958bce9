"""Quote commands for a device's shell. Nothing else does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def quote(argv: Sequence[str]) -> str:
    """One command line that any POSIX shell (mksh, toybox, dash) splits into exactly `argv`.

    Raises ValueError for an empty command and for a NUL, which no argument can hold.
    """
    if not argv:
        raise ValueError("an empty command")
    if any("\0" in argument for argument in argv):
        raise ValueError(f"a NUL in {argv!r}: no argument of a command can hold one")
    return shlex.join(argv)
