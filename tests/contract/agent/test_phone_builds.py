"""The agent as phones need it: every source with libc++, for 64-bit and 32-bit ARM, and run under qemu.

Zig brings clang, libc++ and stubs of glibc in one Python package, so that no NDK is needed: a toolchain file in its
place lets the build for phones compile with them (device_agent/README.md: what that proves, and what not).
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
import ziglang

from device_agent import build
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.model import Bundle
from tests.contract.kernels.test_agreement import check, every_case
from tests.servers import missing, required
from tests.unit.kernels.back.graphs import side_by_side
from virtual_phones.shell.releases import FLOOR_SDK

from .bionic import first_level
from .driver import Agent
from .plans import Draft, combine, vector
from .test_exec import run
from .test_probe import probe

ROOT = Path(__file__).resolve().parents[3]
FOLDER = build.FOLDER / "build-zig"
BUILD_S = 1500
CHEAP = "-O0 -fno-sanitize=all"
"""A build that optimises only the CPU backend's loops takes half of the time, and libc++ checks its callers. The
compiler's own checks are out too: Zig builds libc++ once for each set of these."""
VULKAN = """\
#define VK_PLATFORM_H_ 1
#define VKAPI_ATTR __attribute__((pcs("aapcs-vfp")))
#define VKAPI_CALL
#define VKAPI_PTR VKAPI_ATTR
#include <stddef.h>
#include <stdint.h>
"""
"""Part of vulkan/vk_platform.h for Android on 32-bit ARM: pointers to Vulkan's functions have a type of their own."""
UNUSED = (
    *("any", "atomic", "barrier", "bind", "charconv", "filesystem/*", "fstream", "ios*", "locale", "memory_resource"),
    *("optional", "ostream", "print", "random*", "regex", "shared_mutex", "strstream", "valarray", "vector"),
)
"""Sources of libc++ that the agent has no use for, and that take most of the time to build it. What the linker misses
is to be taken out of this list."""
QEMU = {"arm64-v8a": ("qemu-aarch64", "aarch64-linux-gnu"), "armeabi-v7a": ("qemu-arm", "arm-linux-gnueabihf")}
"""The emulator, and the folder below /usr with the C library of Debian's package libc6-ARCHITECTURE-cross."""
OWN = "POCKETFARM_PHONE_SYSTEM"
"""Variable with a folder that has `system/bin` and `system/lib64` (or `lib`) of a phone: the tests then run there."""
LINKERS = {"arm64-v8a": "linker64", "armeabi-v7a": "linker"}
ELF = {"arm64-v8a": (2, 183), "armeabi-v7a": (1, 40)}
"""Class (1: 32 bits, 2: 64) and machine of an ELF header."""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(BUILD_S)]


@pytest.fixture(scope="module")
def built(monkeypatch_module: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Builds for an ABI, in a folder that is kept: a second run compiles what has changed. What Zig builds for itself,
    libc++ for both targets, is kept in the user's cache, for every checkout."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketfarm"
    cache.mkdir(parents=True, exist_ok=True)
    monkeypatch_module.setenv("ZIG_GLOBAL_CACHE_DIR", str(cache / "zig"))
    monkeypatch_module.setenv("ZIG_LOCAL_CACHE_DIR", str(FOLDER / "cache"))
    FOLDER.mkdir(exist_ok=True)
    monkeypatch_module.setenv("CMAKE_BUILD_TYPE", "Unoptimised")
    vulkan = FOLDER / "vulkan_of_android.h"
    if not vulkan.exists() or vulkan.read_text() != VULKAN:
        vulkan.write_text(VULKAN)

    @functools.cache
    def build_one(abi: str) -> Path:
        with (cache / "zig.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            library = _copied(Path(ziglang.__file__).with_name("lib"), cache)
            monkeypatch_module.setenv("ZIG_LIB_DIR", str(library))
            monkeypatch_module.setenv("CXXFLAGS", f"{CHEAP} -include {vulkan}" if abi == "armeabi-v7a" else CHEAP)
            return build.build_for_phone(abi, None, FOLDER)

    return build_one


def _copied(lib: Path, cache: Path) -> Path:
    """Zig's library folder, copied once a version, with nothing in the sources of libc++ that are not used: whoever
    makes a new environment finds what was built from the copy."""
    copy = cache / f"zig-lib-{version('ziglang')}-{zlib.crc32(repr(UNUSED).encode()):08x}"
    if not copy.exists():
        fresh = cache / "zig-lib.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(lib, fresh)
        for source in (each for name in UNUSED for each in (fresh / "libcxx" / "src").glob(f"{name}.cpp")):
            source.write_bytes(b"")
        fresh.rename(copy)
    return copy


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(params=[*build.PHONE_ABIS, *(f"{abi} {OWN}" for abi in build.PHONE_ABIS)])
def phone_agent(request: pytest.FixtureRequest, tmp_path: Path) -> Agent:
    """The agent of an ABI, behind a script that runs it under qemu: Zig's build; an NDK's with a phone's libraries."""
    abi, own = request.param.split(" ")[0], OWN in request.param
    emulator, target = QEMU[abi]
    system, binary = Path("/usr", target), build.binary(abi)
    if own:
        system = Path(os.environ.get(OWN) or pytest.skip(f"{OWN} names no folder (docs/howto/real-phones.md)"))
        for path in (system / "system" / "bin" / LINKERS[abi], binary):
            if not path.exists():
                pytest.skip(f"{path} is not there")
    else:
        binary = request.getfixturevalue("built")(abi)
        if not (libraries := system / "lib").is_dir():
            missing(f"{libraries} of libc6-arm64-cross or libc6-armhf-cross")
    script = tmp_path / "pocketfarm-agent"
    script.write_text(f'#!/bin/sh\nexec {required(emulator)} -L {system} {binary} "$@"\n')
    script.chmod(0o755)
    return Agent(script, tmp_path)


def abi_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["phone_agent"].split(" ")[0])


TOOLCHAINS = re.compile(r"_Z|_Unwind_|__cxa_(?!atexit)|__gxx_|__dso_handle|__aeabi_|__\w+t[fi][23]?$|bcmp$")
"""Names that the NDK's C++ library and its compiler's own bring."""


@pytest.mark.parametrize("abi", build.PHONE_ABIS)
def test_compiles_and_links_with_libcxx(built: Callable[[str], Path], abi: str) -> None:
    header = built(abi).read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert (header[4], *struct.unpack("<H", header[18:20])) == ELF[abi]


@pytest.mark.parametrize("abi", build.PHONE_ABIS)
def test_is_laid_out_as_android_wants_it(built: Callable[[str], Path], abi: str) -> None:
    """Position independent, for pages of 16 KiB, and without thread-local variables of ours: before API level 29 each
    use of one is a call (`__emutls_get_address`), and bionic refuses such a segment that is aligned to less than 64."""
    binary = built(abi)
    assert "DYN" in told_of("-hW", [binary]), "PIE"
    loads = [line.split() for line in told_of("-lW", [binary]).splitlines() if line.split()[:1] == ["LOAD"]]
    assert loads and {line[-1] for line in loads} == {"0x4000"}
    symbols = told_of("-sW", objects(binary))
    assert "FUNC" in symbols and " TLS " not in symbols and "__emutls" not in symbols


@pytest.mark.parametrize("abi", build.PHONE_ABIS)
def test_calls_nothing_that_the_oldest_android_has_not(built: Callable[[str], Path], abi: str) -> None:
    rows = [line.split() for line in told_of("-sW", objects(built(abi))).splitlines()]
    rows = [row for row in rows if len(row) >= 8 and row[0].rstrip(":").isdigit()]
    defined = {row[7] for row in rows if row[6] != "UND"}
    called = {row[7] for row in rows if row[6] == "UND"} - defined
    of_libc = {name for name in called if not TOOLCHAINS.match(name)}
    assert len(of_libc) > 60
    late = {name: first_level(name) for name in of_libc if (first_level(name) or 99) > FLOOR_SDK}
    assert not late, "tests/contract/agent/bionic.py does not have them at the floor"


def objects(binary: Path) -> list[Path]:
    """The objects that were compiled of our sources for a binary."""
    return sorted(path for path in binary.parent.rglob("*.o") if path.stat().st_size)


def told_of(option: str, files: Sequence[Path]) -> str:
    return subprocess.run([required("readelf"), option, *files], capture_output=True, text=True, check=True).stdout


def test_probes_its_processor(phone_agent: Agent, request: pytest.FixtureRequest) -> None:
    run = probe(phone_agent)
    assert run.code == 0
    abi = abi_of(request)
    assert run.one("hello").abi == abi
    assert {event.facts.api for event in run.all("probe")} == {"cpu"}  # no driver for this processor is here
    said = " ".join(event.message for event in run.all("warning"))
    assert f"/vendor/lib{'64' if abi == 'arm64-v8a' else ''}/libOpenCL.so" in said


def test_tells_its_version(phone_agent: Agent, request: pytest.FixtureRequest) -> None:
    told = json.loads(phone_agent.plain("version").stdout)
    assert (told["abi"], told["boottime_ns"] > 0) == (abi_of(request), True)


def test_agrees_with_the_reference(phone_agent: Agent, tmp_path: Path) -> None:
    """A network, and every operation of the CPU backend."""
    for graph in (load_workload(network="lenet", onnx=None, seed=1), side_by_side(every_case())):
        check(phone_agent, graph, Options("cpu"), Limits(), tmp_path / "shaders")


def test_is_the_parent_of_a_program_of_the_phone(phone_agent: Agent, request: pytest.FixtureRequest) -> None:
    """Its lines, its memory and its end, as engines from folders need them. The program is another agent."""
    ended = run(phone_agent, str(phone_agent.binary), "version", samples=2)
    assert [json.loads(line.text)["abi"] for line in ended.all("line")] == [abi_of(request)] * 2
    assert all(each.status == each.signal == 0 < each.peak_rss_bytes for each in ended.all("process"))
    ended = run(phone_agent, str(phone_agent.binary), "nothing")
    assert ended.error.code == "program_failed" and "ended with exit status 2" in ended.error.message
    ended = run(phone_agent, "sh", "-c", "kill -SEGV $$")
    assert ended.error.code == "program_failed" and "signal 11 ended" in ended.error.message


def test_a_plan_that_32_bits_cannot_address_is_refused(phone_agent: Agent, request: pytest.FixtureRequest) -> None:
    """Cut to 32 bits, 4 GiB and a bit would pass for a bit."""
    bundle = Draft("cpu", [combine("x", "x", "y")]).bundle()
    pools = tuple(pool.model_copy(update={"bytes": pool.bytes + 2**32}) for pool in bundle.plan.pools)
    needs = bundle.plan.requires.model_copy(update={"total_bytes": 2**33, "max_buffer_bytes": 2**33})
    bundle = Bundle(bundle.plan.model_copy(update={"pools": pools, "requires": needs}), bundle.files)
    run = phone_agent.run(bundle, {"x": vector(1)}, "--samples", 1)
    if abi_of(request) == "armeabi-v7a":
        assert run.error.code == "limit"
        assert "use the 64-bit agent" in run.error.message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--phones", "mips", "--ndk", "/nowhere"], "no agent for phones of ABI 'mips'; there is one for arm64-v8a"),
        (["--phones", "arm64-v8a mips"], "no agent for phones of ABI 'mips'"),
        (["--phones", "", "--ndk", "/nowhere"], "/nowhere has no build/cmake/android.toolchain.cmake"),
    ],
)
def test_refuses_what_it_cannot_build(words: list[str], said: str) -> None:
    command = [sys.executable, "-m", "device_agent.build", *words]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "make agent ANDROID_NDK=" in done.stderr or "getprop ro.product.cpu.abi" in done.stderr


def test_builds_after_the_project_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = "cmake_minimum_required(VERSION 3.18)\nproject(x NONE)\nadd_custom_target(x ALL touch pocketfarm-agent)\n"
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    (before / "CMakeLists.txt").write_text(project)
    monkeypatch.setattr(build, "FOLDER", before)
    assert build.build().exists()
    before.rename(after)
    monkeypatch.setattr(build, "FOLDER", after)
    build.build().unlink()
    assert build.build().exists()
