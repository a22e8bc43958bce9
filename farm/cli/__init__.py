"""The command line: `farm`. A command parses, calls, renders; one module per group of commands."""

from __future__ import annotations

import gc
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

ALLOCATIONS = 100_000
"""Allocations between two searches for garbage cycles: Python's own 700 cost a tenth of a short command's time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. Loading the commands takes a moment, in which Ctrl-C is no error either."""
    try:
        from . import app
    except KeyboardInterrupt:
        return 130
    return app.main(arguments)


def run() -> NoReturn:
    """The program `farm`: one command, and the end of the process with its status."""
    gc.set_threshold(ALLOCATIONS)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries tell programmers, such as glyphs that a font lacks
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is over: a late Ctrl-C has nothing left to interrupt
    gc.freeze()  # and the last search for garbage, of all modules, would take a tenth of a second
    sys.exit(status)
