"""The agent of a phone that replays, in place of `pocketfarm-agent`. Needs the standard library alone.

It speaks as the agent does. `run` lets the real agent compute once, for its outputs, device and set-up, and then plays
the inferences in the time that the recording says, reading the phone's gauge meanwhile. All else is the real agent's.
POCKETFARM_REPLAY names the folder that `player.py` describes.
"""

from __future__ import annotations

import json
import os
import signal
from typing import NoReturn

from .journal import End, Journal
from .run import Run


def detach(run: Run) -> None:
    """Go on in an own session; the first process prints our pid once the `hello` is on disk, and ends."""
    ready, tell = os.pipe()
    if pid := os.fork():
        os.close(tell)
        os.read(ready, 1)
        print(json.dumps({"pid": pid}), flush=True)
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    run.journal = Journal(run.options["--journal"])
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    run.say_started = lambda: os.write(tell, b"1")


def cancel(_number: int, _frame: object) -> NoReturn:
    raise End("cancelled", "ended by SIGTERM")


def main(words: list[str]) -> int:
    """`AGENT ARGUMENTS ...`: the exit status."""
    agent, *rest = words
    if rest[:1] != ["run"]:
        os.execv(agent, [agent, *rest])  # noqa: S606 (the agent is a program, not a script)
    run = Run(agent, rest[1:])
    signal.signal(signal.SIGTERM, cancel)
    if run.is_detached:
        detach(run)
    else:
        run.journal = Journal(run.options["--journal"])
    return run.play()
