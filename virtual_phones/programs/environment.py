"""Programs inside a phone: their environment, and what really runs in the agent's place."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from virtual_phones.phone import Phone
from virtual_phones.system.processes import ROOT_VARIABLE

_DRIVER_VARIABLES = ("OCL_", "POCL_", "VK_", "LP_", "MESA_", "GALLIUM_", "LD_LIBRARY_PATH")
"""Variables of the host that choose its OpenCL and Vulkan drivers: they hold inside the phones too."""
_AGENT = "pocketfarm-agent"
_STAND_IN = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    "from virtual_phones.replay.agent import main; sys.exit(main(sys.argv[1:]))"
)


@cache
def _driver_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_DRIVER_VARIABLES)}


def environment_of(phone: Phone) -> dict[str, str]:
    """Environment of processes inside the phone."""
    environment = _driver_variables() | {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(phone.tree.root / "data/local/tmp"),
        "TMPDIR": str(phone.tree.root / "data/local/tmp"),
        ROOT_VARIABLE: str(phone.tree.root),
        "POCKETFARM_APIS": ",".join(phone.profile.apis),
    }
    if phone.kernel_limits:
        environment["POCKETFARM_KERNEL_LIMITS"] = phone.kernel_limits
    if phone.player:
        environment["POCKETFARM_REPLAY"] = str(phone.player.folder)
    if phone.slot:
        environment["POCKETFARM_SLOT"] = str(phone.slot)
    return environment


def stand_in(phone: Phone, executable: Path, words: list[str]) -> tuple[Path, list[str]]:
    """The program that really runs, and its words: a phone that replays has its own agent, which keeps the name."""
    if phone.player is None or executable.name != _AGENT:
        return executable, words
    python = Path(sys.executable)
    return python, [str(python.with_name(_AGENT)), "-I", "-S", "-c", _STAND_IN, *words]
