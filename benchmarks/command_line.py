"""The beginning and the end of a benchmark's command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

FAILED = 1


def command(about: str | None) -> argparse.ArgumentParser:
    """Return a command with the option `-o`. `about`: its module's text, whose first line describes it."""
    made = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    made.add_argument("-o", "--output", type=Path, help="JSON file")
    return made


def tell(found: object, output: Path | None) -> None:
    """Print what was found as JSON, and write it to a file where one is given."""
    text = json.dumps(found, indent=1)
    print(text)
    if output:
        output.write_text(text + "\n")


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
