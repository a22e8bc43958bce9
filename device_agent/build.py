"""Builds the native agent: `python -m device_agent.build` (incremental)."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ABIS = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64-v8a", "arm64": "arm64-v8a"}
"""Machine -> Android's name of the ABI."""
_CROSS = {"arm64-v8a": "aarch64-linux-gnu"}


class BuildError(Exception):
    """The agent could not be built; the message says what is missing or what the compiler said."""


def host_abi() -> str:
    """Android's name of this machine's ABI. Raises BuildError where there is none."""
    machine = platform.machine()
    if machine not in ABIS:
        raise BuildError(f"no agent for machine {machine!r}; supported: {', '.join(sorted(set(ABIS)))}")
    return ABIS[machine]


def binary(abi: str = "host") -> Path:
    """Where the agent of an ABI is, or will be."""
    return FOLDER / "build" / (host_abi() if abi == "host" else abi) / "pocketfarm-agent"


def build(abi: str = "host", *, sanitize: bool = False) -> Path:
    """Build the agent for Linux incrementally and return its path, where a whole one lies at any moment.

    `abi`: `host`, or `arm64-v8a` on another machine (needs g++-aarch64-linux-gnu). `sanitize` builds with Address- and
    UndefinedBehaviorSanitizer into a folder of its own. Raises BuildError.
    """
    abi = host_abi() if abi == "host" else abi
    folder = _folder(abi, sanitize)
    _run(
        [
            "cmake",
            "-S",
            str(FOLDER),
            "-B",
            str(folder),
            f"-DPOCKETFARM_SANITIZE={'ON' if sanitize else 'OFF'}",
            *_cross(abi),
        ]
    )
    _run(["cmake", "--build", str(folder), "-j2"])
    return folder / "pocketfarm-agent"


def _folder(abi: str, sanitize: bool) -> Path:
    if sanitize:
        return FOLDER / "build-sanitize" / abi
    if abi != host_abi():  # for Linux: must not be taken for the phones' agent in `build/`
        return FOLDER / "build-linux" / abi
    return binary(abi).parent


def _cross(abi: str) -> list[str]:
    if abi == host_abi():
        _require("g++", "g++")
        return []
    if abi not in _CROSS:
        raise BuildError(f"unknown ABI {abi!r}; known: {', '.join(sorted(set(ABIS.values())))}")
    compiler = f"{_CROSS[abi]}-g++"
    _require(compiler, f"g++-{_CROSS[abi]}")
    return ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={compiler}"]


def _require(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise BuildError(f"{program} is not on PATH: apt-get install {package}")


def _run(argv: list[str]) -> None:
    _require(argv[0], argv[0])
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(argv)} failed:\n{done.stdout[-4000:]}")


def main() -> int:
    """Build for the host, or for the ABI named on the command line."""
    try:
        print(build(sys.argv[1] if len(sys.argv) > 1 else "host"))
    except BuildError as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
