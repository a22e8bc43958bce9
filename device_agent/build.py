"""Builds the native agent, incrementally: `python -m device_agent.build`, and with --phones for phones."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ABIS = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64-v8a", "arm64": "arm64-v8a"}
"""Machine -> Android's name of the ABI."""
_CROSS = {"arm64-v8a": "aarch64-linux-gnu"}
PHONE_ABIS = ("arm64-v8a", "armeabi-v7a")
"""The ABIs that phones may have; `adb shell getprop ro.product.cpu.abi` tells."""
NDK_TOOLCHAIN = Path("build", "cmake", "android.toolchain.cmake")
"""The toolchain's path below the folder of an Android NDK."""
WITHOUT_NDK = """\
agent: built by Zig, without an NDK: it opens no OpenCL or Vulkan library of a phone. It has the CPU backend, and is the
parent of other engines' programs. With a GPU of its own: make agent ANDROID_NDK=/path/to/android-ndk-r27c"""
_PLATFORM = "android-24"
"""Android 7, the first with shell v2: the floor of `virtual/commands/releases.py`."""


class BuildError(Exception):
    """The agent could not be built; the message says what is missing or what the compiler said."""


def host_abi() -> str:
    """Android's name of this machine's ABI. Raises BuildError where there is none."""
    machine = platform.machine()
    if machine not in ABIS:
        raise BuildError(f"no agent for machine {machine!r}; supported: {', '.join(sorted(set(ABIS)))}")
    return ABIS[machine]


def binary(abi: str = "host") -> Path:
    """Return where the agent of an ABI is, or will be."""
    return FOLDER / "build" / (host_abi() if abi == "host" else abi) / "pocketfarm-agent"


def build(abi: str = "host", *, sanitize: bool = False) -> Path:
    """Build the agent for Linux incrementally and return its path, where a whole one lies at any moment.

    `abi`: `host`, or `arm64-v8a` on another machine (needs g++-aarch64-linux-gnu). `sanitize` builds with Address- and
    UndefinedBehaviorSanitizer into a folder of its own. Raises BuildError.
    """
    abi = host_abi() if abi == "host" else abi
    folder = _folder(abi, sanitize)
    _forget(folder)
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


def phone_toolchain(abi: str, ndk: Path | None) -> Path:
    """Return CMake's toolchain file of the NDK in `ndk`; without one that of Zig. Raises BuildError where it is not
    there, or nothing for this ABI."""
    if abi not in PHONE_ABIS:
        raise BuildError(
            f"there is no agent for phones of ABI {abi!r}; there is one for {', '.join(PHONE_ABIS)}. "
            "`adb shell getprop ro.product.cpu.abi` tells what a phone is"
        )
    if ndk is None and _zig() is not None:
        return FOLDER / "zig.cmake"
    toolchain = ndk / NDK_TOOLCHAIN if ndk else None
    if toolchain is None or not toolchain.is_file():
        where = f"{ndk} has no {NDK_TOOLCHAIN}" if ndk else "no Android NDK was named, and ziglang is not installed"
        raise BuildError(
            f"{where}. Unpack an NDK (r26 or newer) and name its folder: "
            "make agent ANDROID_NDK=/path/to/android-ndk-r27c"
        )
    return toolchain.absolute()


def _zig() -> Path | None:
    """The compiler that the package ziglang brings; None: it is not installed."""
    found = find_spec("ziglang")
    return Path(str(found.origin)).with_name("zig") if found else None


def build_for_phone(abi: str, ndk: Path | None, folder: Path = FOLDER / "build") -> Path:
    """Build the agent for phones of an ABI with the NDK in `ndk`, or with Zig; the path, below `folder`. Raises
    BuildError."""
    toolchain, made = phone_toolchain(abi, ndk), folder / abi
    _forget(made, str(toolchain))
    options = {"ANDROID_ABI": abi, "ANDROID_PLATFORM": _PLATFORM, "ANDROID_STL": "c++_static"}
    options |= {"CMAKE_TOOLCHAIN_FILE": str(toolchain), "POCKETFARM_ZIG": str(_zig() or "")}
    given = [f"-D{name}={value}" for name, value in options.items()]
    _run(["cmake", "-S", str(FOLDER), "-B", str(made), "--no-warn-unused-cli", *given])
    _run(["cmake", "--build", str(made), "-j2"])
    return made / "pocketfarm-agent"


def _forget(made: Path, *wanted: str) -> None:
    """Begin anew where the project was moved, or something else is wanted: CMake keeps what it was told first."""
    cache = made / "CMakeCache.txt"
    wanted = (f"CMAKE_HOME_DIRECTORY:INTERNAL={FOLDER}\n", *wanted)
    if cache.exists() and not all(word in cache.read_text() for word in wanted):
        shutil.rmtree(made)


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
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m device_agent.build", description="Build the native agent.")
    parser.add_argument("abi", nargs="?", default="host", help="for Linux: `host` (the default) or arm64-v8a")
    parser.add_argument("--phones", metavar="ABI,...", help=f"for phones instead; empty: {','.join(PHONE_ABIS)}")
    parser.add_argument("--ndk", type=Path, help="folder of the Android NDK (r26 or newer)")
    given = parser.parse_args()
    try:
        if given.phones is None:
            print(build(given.abi))
            return 0
        wanted = given.phones.replace(",", " ").split() or PHONE_ABIS
        for abi in wanted:
            phone_toolchain(abi, given.ndk)  # refused before anything is built
        for abi in wanted:
            print(build_for_phone(abi, given.ndk))
        if given.ndk is None:
            print(WITHOUT_NDK, file=sys.stderr)
    except BuildError as e:
        print(f"agent: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
