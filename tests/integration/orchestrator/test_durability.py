"""Changes that the ledger has acknowledged are on the disk: SQLite flushes each commit before the call returns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.servers import required

COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
static int flushes;
int flushed(void) { return flushes; }
int fsync(int fd) { ++flushes; return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { ++flushes; return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
"""
KEEP = """
import ctypes, sys
from orchestrator.ledger import KeepResult, Ledger
from tests.unit.orchestrator import make

flushed = ctypes.CDLL(None).flushed
with Ledger(sys.argv[1]) as ledger:
    jobs = [make.job(block=block) for block in range(10)]
    ledger.submit("first-1", make.many(10), jobs)
    for job in jobs:
        assignment = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
        before = flushed()
        assert ledger.keep(make.record(job, attempt=1, token=assignment.token)) is KeepResult.NEW
        print(flushed() - before)
"""


def test_a_record_is_on_the_disk_when_it_is_kept(tmp_path: Path) -> None:
    """Real flushes of the process are counted by a library in front of libc."""
    source, library = tmp_path / "counter.c", tmp_path / "counter.so"
    source.write_text(COUNTER)
    subprocess.run([required("cc"), "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-c", KEEP, f"sqlite:///{tmp_path / 'ledger.sqlite'}"],
        env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    flushes = [int(line) for line in done.stdout.split()]
    assert len(flushes) == 10 and min(flushes) >= 1, done.stdout
