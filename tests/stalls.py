"""Run tests while this machine stalls: what they start, and they themselves, are stopped now and again for a second.

python -m tests.stalls tests/integration/farm -n 4 --dist loadfile

What fails is no proof: a phone that a test finds stopped may be one that this has stopped.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import psutil

PAUSE_S, STALL_S = (0.1, 2.0), (0.2, 1.2)


def main() -> int:
    """pytest's exit status."""
    tests = subprocess.Popen([sys.executable, "-m", "pytest", *sys.argv[1:]])
    while tests.poll() is None:
        time.sleep(random.uniform(*PAUSE_S))
        _stall(tests.pid)
    return tests.returncode


def _stall(pid: int) -> None:
    """Stop one process for a while: pytest and its workers are as likely as what a test has started."""
    try:
        tests = psutil.Process(pid)
        started = tests.children(recursive=True)
        running = [tests, *(each for each in started if each.ppid() == pid)]
        chosen = random.choice(running if random.random() < 0.5 else started)
        if chosen.status() != psutil.STATUS_STOPPED:
            chosen.send_signal(signal.SIGSTOP)
            time.sleep(random.uniform(*STALL_S))
            chosen.send_signal(signal.SIGCONT)
    except (psutil.NoSuchProcess, IndexError):  # it has ended meanwhile, or nothing was started yet
        return


if __name__ == "__main__":
    sys.exit(main())
