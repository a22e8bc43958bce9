"""`farm devices screenshot`, `farm devices shell`: a phone by hand."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Annotated

import typer

from farm.cli import completion
from farm.cli.output import JsonOption, StateOption, log, out, print_json, write_whole
from farm.doors import open_door

Serial = Annotated[str, typer.Argument(metavar="SERIAL", help="The phone.", autocompletion=completion.serials)]


def screenshot(
    serial: Serial,
    file: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.png", help="File to write the picture to.")],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a picture of a phone's screen. Refused while a job runs there, which it would disturb.

    It takes the role operate, or the phone lent to you. The host that has the phone does it; the audit keeps who asked.

    Example: `farm devices screenshot R58M123ABC -o screen.png`
    """
    from orchestrator import acts

    with open_door(state, running=True) as door:
        done = door.act(acts.by_hand.screenshot, serial)
    write_whole(file, base64.b64decode(done.data["png"]), "--output")
    if as_json:
        print_json({"serial": serial, "file": file, "bytes": done.data["bytes"]})
    else:
        log().print(f"{done.text}: {file}", markup=False)


def shell(
    serial: Serial,
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The command, behind `--`.")],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a command in the shell of a phone that somebody holds, for 20 s at most. The audit keeps it.

    It takes the role operate, or the phone lent to you. What it changes stays changed. Beyond 20 s or 1 MiB of output
    it is ended, and says so. Exit status 1 where the command fails.

    Example: `farm devices shell R58M123ABC -- getprop ro.build.version.release`
    """
    from orchestrator import acts

    with open_door(state, running=True) as door:
        done = door.act(acts.by_hand.shell, serial, command)
    if as_json:
        print_json(done.data)
    else:
        out().print(done.data["output"], end="", markup=False, highlight=False, soft_wrap=True)
    if done.data["code"] != 0:
        log().print(done.text, markup=False)
        raise typer.Exit(1)
