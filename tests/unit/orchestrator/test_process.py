"""How a process of the farm begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit
PROGRAM = """
import gc, time, weakref
from orchestrator.system import process
process.COLLECTED_S = 0.05
process.begin()
class Circle:
    def __init__(self):
        self.me = self
left = weakref.ref(Circle())
end = time.monotonic() + 20
while left() is not None and time.monotonic() < end:
    time.sleep(0.01)
print(left() is None, gc.get_freeze_count() > 1000)
"""


def test_garbage_is_collected_by_the_clock() -> None:
    """A process that makes few circles of objects would keep a hundred thousand of them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"]
