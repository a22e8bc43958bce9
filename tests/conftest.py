"""The part that all tests share: markers by folder, one seed for random inputs, and no process that stays behind.

pytest -m unit                     tests/unit, tests/contract, tests/integration, tests/chaos have markers
POCKETFARM_TEST_SEED=7 pytest ...  the seed that a failed run printed
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from xdist.scheduler import LoadFileScheduling

KINDS = ("unit", "contract", "integration", "chaos", "fuzz")
TOGETHER = tuple(f"tests/integration/{each}/" for each in ("metrics", "farm/one_phone", "farm/two_phones"))
"""Folders whose files share servers: each worker with one of them would start a Prometheus, which never rests, or
a farm."""
SEED = "POCKETFARM_TEST_SEED"
SEED_IN_CI = 20261125
SESSION = "POCKETFARM_TEST_SESSION"
DRIVER_CACHES = {"POCL_CACHE_DIR": "pocl/kcache", "MESA_SHADER_CACHE_DIR": ""}
"""The drivers' usual places. Farms and phones have homes of their own, and would compile the same kernels each: half of
what their networks cost here. `setup: cold` finds none of it."""
# Before NumPy is imported. Workers share the processors: OpenBLAS's threads, which spin until the last is done, took
# twice the time of one. (glibc.malloc.hugetlb=1 cost four workers a third more memory, and saved no time of the suite.)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOM = 3 << 30
"""Bytes of disk for all tests; they took 2.0 GB at most."""
GRACE_S = 60.0
REAPER = f"""
import contextlib, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.read()
import psutil
def left():
    every = [each for each in psutil.process_iter(["environ"]) if each.pid != os.getpid()]
    return [each for each in every if (each.info["environ"] or {{}}).get({SESSION!r}) == sys.argv[1]]
end = time.monotonic() + {GRACE_S}
while (found := left()) and time.monotonic() < end:
    for each in found:
        with contextlib.suppress(psutil.Error):
            each.kill()
    time.sleep(0.05)
"""
"""Ends what a session has started once that is gone, however it ended: also by SIGKILL, or by a second Ctrl-C."""


LIBC = ctypes.CDLL("libc.so.6")
GROWTH, _least = 128 << 20, 1 << 60
"""Bytes by which this process may grow before garbage is looked for, and its least size since that was done."""
LARGE, M_MMAP_THRESHOLD = 4 << 20, -3
LIBC.mallopt(M_MMAP_THRESHOLD, LARGE)  # what is larger goes back at once; else a worker keeps twice as much
gc.disable()  # until all is collected nothing is garbage: looking for it is a fifth of the time
COMPILED: LRUCache[Any, Any] = LRUCache(1000)
"""Statements of all ledgers, which a process of the farm compiles once: each test opens another ledger or two, and
compiling the same statements for each of them was a sixth of its time."""
Engine._compiled_cache = property(lambda _: COMPILED, lambda *_: None)  # type: ignore[assignment]
# Hypothesis draws literals of all modules, too, of which few are near what is tested, and read them for 4 s a worker.
providers._get_local_constants = lambda: providers._local_constants
DefaultDialect.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]
DefaultDialect.__hash__ = lambda one: hash(type(one))  # type: ignore[assignment, method-assign]


def pytest_configure(config: pytest.Config) -> None:
    # No time limit a case: machines differ. In CI the same cases every time; at home fresh ones. `make fuzz` has more.
    ci = os.environ.get("CI") == "true"
    settings.register_profile("farm", deadline=None, derandomize=ci, print_blob=True, max_examples=30)
    settings.load_profile("farm")
    os.environ.setdefault(SEED, str(_seed()))
    os.environ[SESSION] = str(os.getpid())
    # A machine may ask for no bytecode on disk: every process would compile its five hundred modules at each start.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for variable, folder in DRIVER_CACHES.items():
        os.environ.setdefault(variable, str(Path.home() / ".cache" / folder))
    for name in [each for each in os.environ if each.startswith("FARM_")]:
        del os.environ[name]
    os.environ["FARM_LOGIN"] = "/nonexistent/login.json"  # the farm that its user is logged in to is not a test's
    os.environ.pop("COLUMNS", None)  # xdist sets it in its workers; a command's output is that of a file, unless asked
    _find_postgres()


def _seed() -> int:
    """Another one in every run at home, where somebody looks at what it finds. In CI always the same: a change is not
    refused for a case that it has nothing to do with."""
    return SEED_IN_CI if os.environ.get("CI") == "true" else random.randrange(2**31)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import first, in each worker, files that no other worker begins with: in a fresh checkout to compile all of them
    is half a minute of each worker's time, unless another one has done it."""
    given, root = getattr(session.config, "workerinput", None), Path(__file__).parent
    if given is None or [Path(each).absolute() for each in session.config.args] != [root]:
        return
    for path in sorted(root.rglob("test_*.py"))[int(given["workerid"][2:]) :: given["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # told where the file is collected
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse all tests where the disk would be full in the middle, and each of them would fail for another reason."""
    folder = tempfile.gettempdir()
    whole = [Path(each).absolute() for each in session.config.args] == [Path(__file__).parent]
    if whole and (free := shutil.disk_usage(folder).free) < ROOM:
        pytest.exit(f"{folder} has {free >> 20} MiB left, all tests need {ROOM >> 20}: make room, or set TMPDIR", 1)


def pytest_report_header() -> str:
    return f"random inputs: {SEED}={os.environ[SEED]}"


class LoadTogether(LoadFileScheduling):
    """Files to workers, and folders of TOGETHER as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return LoadTogether(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test's kind is the folder that it lies in. Files that take minutes start first, then those that take seconds:
    no core waits for them at the end. Those of all folders are mixed: some wait while others compute."""
    root = Path(__file__).parent
    long, slow = ({each.path for each in items if each.get_closest_marker(name)} for name in ("long", "slow"))

    @cache
    def place(path: Path) -> tuple[bool, bool, bool, int]:
        name = str(path.relative_to(root))
        together = f"tests/{name}".startswith(TOGETHER)
        return path not in long, path not in slow and not together, not together, zlib.crc32(name.encode())

    @cache
    def kind(path: Path) -> str:
        return path.relative_to(root).parts[0]

    for item in items:
        if kind(item.path) in KINDS:
            item.add_marker(kind(item.path))
    items.sort(key=lambda item: place(item.path))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what stays to the end: half a million objects, at each of its full turns."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)  # as the farm's own processes: with Python's 700 it was half of parsing all modules
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget what a file's own cached functions hold: its simulated phones would take a gigabyte to the end."""
    yield
    for value in vars(request.module).values():
        if getattr(value, "__module__", None) == request.module.__name__ and hasattr(value, "cache_clear"):
            value.cache_clear()
    LIBC.malloc_trim(0)  # pages that hold nothing any more go back at once


def pytest_runtest_logfinish() -> None:
    """Collect garbage where memory grew: pictures and programs are cycles, and all are looked at too seldom."""
    global _least
    _least = min(_least, resident := psutil.Process().memory_info().rss)
    if resident > _least + GROWTH:
        gc.collect()
        LIBC.malloc_trim(0)
        _least = psutil.Process().memory_info().rss


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of random inputs: another one in every run, printed in its header."""
    return int(os.environ[SEED])


@pytest.fixture(scope="session", autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """Every process that a test started, however far it went, has ended by the end of the session."""
    reaper = subprocess.Popen(
        [sys.executable, "-c", REAPER, str(os.getpid())], stdin=subprocess.PIPE, start_new_session=True
    )
    yield
    _, left = psutil.wait_procs([each for each in _descendants() if each.pid != reaper.pid], timeout=GRACE_S)
    told = [f"pid {process.pid}: {_command(process)}" for process in left]
    for process in left:
        process.kill()
    reaper.communicate()
    assert not told, "processes stayed behind:\n  " + "\n  ".join(told)


def _descendants() -> Iterator[psutil.Process]:
    """Processes with this session's mark in their environment: a daemon keeps it, its parent it does not."""
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(SESSION) == str(os.getpid()):
                yield process
        except (psutil.Error, OSError):
            continue


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:300]
    except psutil.Error:
        return "(ended)"


def _find_postgres() -> None:
    """Debian keeps PostgreSQL's server programs outside PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *map(str, found[-1:])])
