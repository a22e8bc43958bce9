"""Check this machine for what the farm needs, with the command that fixes each problem."""

from __future__ import annotations

import ctypes.util
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from device_agent.build import PHONE_ABIS
from orchestrator.model.errors import FarmError
from orchestrator.model.quantity import counted
from orchestrator.system.config import Settings

from .parts import adb_server, redis_server
from .reach import authority_of
from .reach.certificates import RENEW_BEFORE, SAID_BEFORE, ends_at

APT = "sudo apt-get install "
OLDEST_PYTHON = (3, 11)
NEEDED_FREE_BYTES = 2 * 2**30
FILES_PER_PHONE = 3


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"

    @property
    def mark(self) -> str:
        return {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "missing": "[bold red]missing[/]"}[self.value]


@dataclass(frozen=True)
class Finding:
    """One check: what was found, and the line that mends it where it is not well."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}


def examine(settings: Settings) -> list[Finding]:
    """Run every check. None of them changes anything."""
    return [finding for check in CHECKS for finding in check(settings)]


def _ok(name: str, found: str) -> Finding:
    return Finding(name, Verdict.OK, found)


def _python(_: Settings) -> Iterator[Finding]:
    found = f"{sys.version.split()[0]} ({sys.executable})"
    if sys.version_info >= OLDEST_PYTHON:
        yield _ok("python", found)
    else:
        yield Finding("python", Verdict.MISSING, found, APT + "python3.11 python3.11-venv")


def _redis(_: Settings) -> Iterator[Finding]:
    try:
        path, version = redis_server.find()
        yield _ok("redis-server", f"{version} ({path})")
    except FarmError as e:
        yield Finding("redis-server", Verdict.MISSING, str(e.args[0]), e.remedy or "")


def _adb(settings: Settings) -> Iterator[Finding]:
    try:
        path = adb_server.find(settings)
        ours = adb_server.client_version(path)
    except FarmError as e:
        yield Finding("adb", Verdict.MISSING, str(e.args[0]), e.remedy or "")
        return
    yield _ok("adb", f"protocol {ours} ({path})")
    theirs = adb_server.server_version(settings.adb_port)
    if theirs is None:
        yield _ok("adb server", f"none on port {settings.adb_port}: `farm up` starts one")
    elif theirs == ours:
        yield _ok("adb server", f"protocol {theirs} on port {settings.adb_port}")
    else:
        found = f"protocol {theirs} on port {settings.adb_port}, but the binary has {ours}"
        yield Finding("adb server", Verdict.MISSING, found, f"adb -P {settings.adb_port} kill-server")


def _opencl(_: Settings) -> Iterator[Finding]:
    try:
        import pyopencl

        platforms = [str(platform.name) for platform in pyopencl.get_platforms()]
    except Exception as e:  # the binding raises its own errors where the loader or every driver is missing
        yield Finding("OpenCL", Verdict.WARNING, f"no platform: {e}", APT + "ocl-icd-libopencl1 pocl-opencl-icd")
        return
    yield _ok("OpenCL", ", ".join(platforms))


def _vulkan(_: Settings) -> Iterator[Finding]:
    folders = [Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"), Path("/usr/local/share/vulkan/icd.d")]
    drivers = sorted({path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.json")})
    loader = ctypes.util.find_library("vulkan")
    if loader and drivers:
        yield _ok("Vulkan", f"{loader}; drivers: {', '.join(drivers)}")
    else:
        lacking = "no driver" if loader else "no loader (libvulkan.so.1)"
        yield Finding("Vulkan", Verdict.WARNING, lacking, APT + "libvulkan1 mesa-vulkan-drivers")


def _tool(name: str, package: str, why: str, verdict: Verdict) -> Callable[[Settings], Iterator[Finding]]:
    """Check that a binary is on PATH and runs."""

    def check(_: Settings) -> Iterator[Finding]:
        path = shutil.which(name)
        if path is None:
            yield Finding(name, verdict, f"not found: {why}", APT + package)
        else:
            yield _ok(name, f"{_version(path)} ({path})")

    return check


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "found"
    match = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else "found"


def _headers(_: Settings) -> Iterator[Finding]:
    needed = {
        "CL/cl.h": "opencl-headers",
        "vulkan/vulkan.h": "libvulkan-dev",
        "nlohmann/json.hpp": "nlohmann-json3-dev",
    }
    roots = [Path("/usr/include"), Path("/usr/local/include")]
    lacking = {header: package for header, package in needed.items() if not any((r / header).exists() for r in roots)}
    if lacking:
        yield Finding("headers", Verdict.MISSING, f"not found: {', '.join(lacking)}", APT + " ".join(lacking.values()))
    else:
        yield _ok("headers", ", ".join(needed))


def _agent(settings: Settings) -> Iterator[Finding]:
    root = Path(__file__).resolve().parents[1] / "device_agent"
    folder = settings.agent_dir or root / "build"
    built = sorted(folder.glob("*/pocketfarm-agent"))
    build = "make setup"
    if not built:
        yield Finding("agent", Verdict.MISSING, f"not built: nothing in {folder}", build)
        return
    newest = max((path.stat().st_mtime for path in (root / "src").rglob("*") if path.is_file()), default=0.0)
    stale = [path.parent.name for path in built if path.stat().st_mtime < newest]
    names = ", ".join(path.parent.name for path in built)
    if stale:
        if set(stale) & set(PHONE_ABIS):
            build += "; make agent ANDROID_NDK=/path/to/ndk"
        yield Finding("agent", Verdict.WARNING, f"older than its source: {', '.join(stale)}", build)
    else:
        yield _ok("agent", names)


def _certificates(settings: Settings) -> Iterator[Finding]:
    """Yield findings about the certificates of `farm up --listen`, where it was used, and that of FARM_CERTIFICATE."""
    own = sorted(authority_of(settings.state).folder.glob("*.crt"))
    for path in [*own, *([settings.certificate] if settings.certificate else [])]:
        try:
            left = ends_at(path) - datetime.now(UTC)
        except (OSError, ValueError) as e:
            yield Finding(f"certificate {path.stem}", Verdict.WARNING, f"{path}: {e}", "renew it, or name another one")
            continue
        found = f"{path} holds for {left.days} more days"
        if left > (RENEW_BEFORE if path in own else SAID_BEFORE):
            yield _ok(f"certificate {path.stem}", found)
        elif path.stem == "ca":
            mend = f"move {path.parent} aside, start the farm again, and `farm host add` every host once more"
            yield Finding("certificate ca", Verdict.WARNING, found, mend)
        else:
            mend = "start the farm again: that renews it" if path in own else "renew it; the farm reads the file again"
            yield Finding(f"certificate {path.stem}", Verdict.WARNING, found, mend)


def _disk(settings: Settings) -> Iterator[Finding]:
    folder = settings.state.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB free in {folder}"
    if free >= NEEDED_FREE_BYTES:
        yield _ok("disk", found)
    else:
        yield Finding("disk", Verdict.WARNING, found, "make room, or keep the state elsewhere: FARM_STATE=/other/disk")
    if not os.access(folder, os.W_OK):
        yield Finding("state folder", Verdict.MISSING, f"{folder} is not writable", f"sudo chown $USER {folder}")


def _files(_: Settings) -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 400 * FILES_PER_PHONE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        yield _ok("open files", f"limit {soft}")
    else:
        found = f"limit {soft}: enough for about {counted(soft // FILES_PER_PHONE, 'phone')}"
        yield Finding("open files", Verdict.WARNING, found, f"ulimit -n {min(4096, hard) if hard > 0 else 4096}")


CHECKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _python,
    _redis,
    _adb,
    _opencl,
    _vulkan,
    _tool("glslc", "glslc", "compiles Vulkan kernels", Verdict.MISSING),
    _tool("cmake", "cmake make", "builds the agent", Verdict.MISSING),
    _tool("g++", "g++", "builds the agent", Verdict.MISSING),
    _headers,
    _agent,
    _tool("chromium", "chromium", "opens the HTML report in the tests", Verdict.WARNING),
    _tool("prometheus", "prometheus", "keeps the metrics", Verdict.WARNING),
    _certificates,
    _disk,
    _files,
)
