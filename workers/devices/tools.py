"""Ask a phone once which commands it has: those without which nothing works, and those that some conditions need.

`virtual_phones/shell/releases.py` has the first Android release of each; a test holds what we send against it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import NEEDS
from workers.connection.base import DeviceConnection, ShellResult

REQUIRED = {
    "cat": "/dev/null", "date": "", "df": "-k /data", "env": "true", "getprop": "ro.serialno", "grep": "-q x /dev/null",
    "head": "-n 1 /dev/null", "ln": "", "ls": "-d /", "mkdir": "", "mv": "", "printf": "x", "rm": "", "stat": "-c %Y /",
    "tail": "-c 1 /dev/null",
}  # fmt: skip
"""Tools that everything needs, each with arguments that do nothing: one that is there may still not be run."""
HASHES = ("sha256sum", "sha1sum")
"""One of them is enough; Android 7 has the second alone."""
FOR_CONDITIONS = {tool for _, each in NEEDS for tool in each.tools}
OPTIONAL = tuple(sorted({"dumpsys", "id", "input", "logcat", "pidof", "ps", "sleep", "wm", *FOR_CONDITIONS}))
"""Tools without which some conditions cannot be met, and some facts are unknown."""
CANNOT_RUN, NOT_FOUND = 126, 127
_ABSENT = re.compile(r"\bsh: (?:[^:\s]*\[?\d+\]?: )?([^:\s]+): (?:inaccessible or )?(?:not found|can't execute)")


def missing_tools(connection: DeviceConnection) -> tuple[str, ...]:
    """Return the tools that a phone may lack and does. Raises Unsupported where it lacks one that everything needs."""
    tried = {**REQUIRED, **dict.fromkeys(HASHES, "/dev/null")}
    runs = [f"{name} {words} >/dev/null 2>&1; [ $? -lt {CANNOT_RUN} ] && echo {name}" for name, words in tried.items()]
    script = "; ".join([*runs, *(f"command -v {name}" for name in OPTIONAL), "true"])
    told = connection.shell(["sh", "-c", script], deadline_s=120.0).stdout.decode(errors="replace")
    found = {line.strip().rpartition("/")[2] for line in told.splitlines()}
    if lacking := [name for name in REQUIRED if name not in found]:
        raise no_tool(connection, *lacking)
    if not found & set(HASHES):
        raise no_tool(connection, *HASHES)
    return tuple(name for name in OPTIONAL if name not in found)


def check_ran(connection: DeviceConnection, argv: Sequence[str], result: ShellResult) -> None:
    """Raises Unsupported where the phone has no such command, or may not run it: what it printed is no answer."""
    if result.code not in (CANNOT_RUN, NOT_FOUND):
        return
    said = (result.stderr or result.stdout).decode(errors="replace")
    named = _ABSENT.search(said)  # by the shell, of whatever a script runs
    tool = named[1] if named else argv[0]
    if "/" not in tool and tool not in ("env", "sh"):  # a program of ours; what runs others
        raise no_tool(connection, tool, said=said)


def no_tool(connection: DeviceConnection, *tools: str, said: str = "") -> Unsupported:
    """The error that names what a phone lacks."""
    names = ", ".join(f"`{tool}`" for tool in tools)
    return Unsupported(
        f"the phone has no {names}" + (f": {said.strip()[-200:]}" if said.strip() else ""),
        device=connection.serial,
        remedy="its Android lacks what the farm needs (docs/howto/real-phones.md): use another phone or system",
    )
