"""The phone as a witness: which agents began to run on it, and which others were alive at that moment.

One JSON object a line in `runs.jsonl` beside the phone's files. The farm never reads it; whoever checks that no two
sessions ever held a phone at once does (`tests/chaos`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

NAME = "runs.jsonl"
_PROC = Path("/proc")


def note_run(folder: Path, argv: Sequence[str], alive: Iterable[int]) -> None:
    """Note that a run begins, and the markers of the runs among the processes `alive` inside the phone; anything but
    the run of an agent is not noted."""
    if not (marker := _marker(argv)):
        return
    beside = sorted({other for pid in alive if (other := _marker(_words(pid))) and other != marker})
    line = json.dumps({"t": time.time(), "marker": marker, "beside": beside})
    with (folder / NAME).open("a") as file:
        file.write(line + "\n")


def _marker(argv: Sequence[str]) -> str:
    """Return what a run was marked with; empty for other commands."""
    if "run" not in argv[1:]:
        return ""
    return next((value for option, value in pairwise(argv) if option == "--marker"), "")


def _words(pid: int) -> list[str]:
    """The command line of a process that is there and has not ended."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return words.decode(errors="replace").split("\0")[:-1]  # empty of a process that has ended and was not reaped
