"""The end of every benchmark's command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

FAILED = 1


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Run a command and exit with its status; quietly with 1 where the reader of its tables went away (`| head`)."""
    try:
        try:
            status = main() or 0
        finally:
            sys.stdout.flush()  # what is still buffered meets the closed pipe here, not while Python shuts down
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FAILED
    sys.exit(status)
