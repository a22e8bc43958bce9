"""`farm devices screenshot`, `shell`, `mirror`: a phone by hand."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from farm.access import settings_of
from farm.cli import completion
from farm.cli.output import HERE, Common, argument, log, option, out, print_json, show_done, write_whole
from farm.doors import open_door
from orchestrator.model.errors import SetupError

Serial = Annotated[str, argument("SERIAL", "The phone.", autocompletion=completion.serials)]


def screenshot(
    serial: Serial,
    file: Annotated[Path, option("--output, -o FILE.png", "File to write the picture to.")],
    common: Common = HERE,
) -> None:
    """Take a picture of a phone's screen. Refused while a job runs there, which it would disturb.

    It takes the role operate, or the phone lent to you. The host that has the phone does it; the audit keeps who asked.

    Example: `farm devices screenshot R58M123ABC -o screen.png`
    """
    from orchestrator import acts

    with open_door(common.state, running=True) as door:
        done = door.act(acts.by_hand.screenshot, serial)
    write_whole(file, base64.b64decode(done.data["png"]), "--output")
    if common.as_json:
        print_json({"serial": serial, "file": file, "bytes": done.data["bytes"]})
    else:
        log().print(f"{done.text}: {file}", markup=False)


def shell(
    serial: Serial,
    command: Annotated[list[str], argument("CMD...", "The command, behind `--`.")],
    common: Common = HERE,
) -> None:
    """Run a command in the shell of a phone that somebody holds, for 20 s at most. The audit keeps it.

    It takes the role operate, or the phone lent to you. What it changes stays changed. Beyond 20 s or 1 MiB of output
    it is ended, and says so. Exit status 1 where the command fails.

    Example: `farm devices shell R58M123ABC -- getprop ro.build.version.release`
    """
    from orchestrator import acts

    with open_door(common.state, running=True) as door:
        done = door.act(acts.by_hand.shell, serial, command)
    if common.as_json:
        print_json(done.data)
    else:
        out().print(done.data["output"], end="", markup=False, highlight=False, soft_wrap=True)
    if done.data["code"] != 0:
        log().print(done.text, markup=False)
        raise typer.Exit(1)


def mirror(serial: Serial, common: Common = HERE) -> None:
    """Show the screen of a phone that somebody holds, and steer it, with scrcpy. The audit keeps it.

    On the host that has the phone; it takes the role operate, or the phone lent to you. Ends when its window is closed.

    Example: `farm devices mirror R58M123ABC`
    """
    from orchestrator import acts
    from workers.connection.adb import server_of

    program, server = shutil.which("scrcpy"), server_of(settings_of(common.state))
    if program is None:
        raise SetupError("scrcpy is not installed here", remedy="`apt install scrcpy`, or github.com/Genymobile/scrcpy")
    with open_door(common.state, running=True) as door:
        done = door.act(acts.by_hand.mirror, serial)
    show_done(done, as_json=common.as_json)
    own = {**os.environ, "ADB": server.path, **server.variables}
    raise typer.Exit(subprocess.run([program, "--serial", done.data["address"]], env=own).returncode)
