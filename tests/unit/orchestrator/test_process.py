"""The beginning of a process of the farm."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.system import process

pytestmark = pytest.mark.unit
CIRCLE = """
import gc, time, weakref
from orchestrator.system import process
process.COLLECTED_S, frozen, freeze = 0.05, [], gc.freeze
gc.freeze = lambda: (freeze(), frozen.append(gc.get_freeze_count()))
process.begin()
class Circle:
    def __init__(self):
        self.me = self
def soon(is_so):
    end = time.monotonic() + 20
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()
for _ in range(3):
    left = weakref.ref(Circle())
    print(soon(lambda: left() is None))
print(1000 < frozen[0] < frozen[1] and len(frozen) == 2)
"""
HEAPS = """
import ctypes, sys, threading
from orchestrator.system import process
process.begin()
met = threading.Barrier(16)
def work():
    mine = [bytearray(n) for n in range(1000, 9000)]
    met.wait(20)
threads = [threading.Thread(target=work) for _ in range(met.parties)]
for each in threads: each.start()
for each in threads: each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""

STORM = """
import os, random, signal, sys, threading, time
from orchestrator.system.process import asked_to_end
chance, asked = random.Random(int(sys.argv[1])), asked_to_end(signal.SIGALRM)
end = time.monotonic() + 2
while time.monotonic() < end:
    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 2e-4))
    asked.wait(1e-5)
    asked.clear()
signal.setitimer(signal.ITIMER_REAL, 0)
asked.clear()
os.kill(os.getpid(), signal.SIGTERM)
print("told", asked.wait(20))
"""


def run(program: str, *words: str) -> str:
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_garbage_is_collected_by_the_clock() -> None:
    """A process that makes few circles of objects would keep a hundred thousand of them. What it made before the first
    search is not looked at again."""
    assert run(CIRCLE).split() == ["True"] * 4


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_threads_share_two_heaps(tmp_path: Path) -> None:
    """Each of many more would keep what was freed in it."""
    run(HEAPS, str(tmp_path / "heaps.xml"))
    heaps = ElementTree.parse(tmp_path / "heaps.xml").getroot().findall("heap")
    assert 1 <= len(heaps) <= process.HEAPS


def test_a_signal_at_any_moment_is_heard(seed: int) -> None:
    """A handler that sets the event itself waits for ever where the main thread holds the event's lock."""
    assert run(STORM, str(seed)).split() == ["told", "True"]
