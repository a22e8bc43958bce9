"""`python -m farm.parts.start MODULE ARGUMENTS...`: start a part of the farm. Nothing looks for garbage while
it imports: there is none, and to look for it took a sixth of the start. `process.begin` has it looked for again.

Without a module it is the nursery: it imports once what several parts need, most of the cost of a start, and forks
them. It does nothing else, and has one thread: a part is as if it had been started alone.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import sys
import time
from importlib import import_module
from pathlib import Path

from farm.supervised import Keeper

SHARED = (
    "kernels.frontend.networks", "orchestrator.acts", "orchestrator.answers.story",
    "orchestrator.coordination.record_stream", "orchestrator.coordination.tasks.consumer", "orchestrator.nightly.past",
    "orchestrator.system.process", "celery.app.control", "celery.app.log", "celery.apps.worker",
    "celery.concurrency.thread", "celery.worker.components", "celery.worker.consumer", "kombu.transport.redis",
)  # fmt: skip
"""The modules that several parts import; none that starts a thread."""
HANDED_OVER_S = 5.0


def nursed() -> list[str]:
    """Serve until the supervisor ends, and return within each part: the words of what it is to run.

    A request is a line of JSON on stdin: words of a command with its keeper's, environment, log. The answer is the pid
    of the keeper, whose parent is the supervisor: it takes in what loses its own.
    """
    supervisor = os.getppid()
    for name in SHARED:
        import_module(name)
    gc.freeze()
    for line in sys.stdin.buffer:
        if os.fork():
            os.wait()
        elif os.fork():
            os._exit(0)
        else:
            return _part_of(supervisor, **json.loads(line))
    sys.exit(0)


def _part_of(supervisor: int, words: list[str], environment: dict[str, str], log: str) -> list[str]:
    """Be the keeper of a part until it ends; in the part, return what it is to run."""
    limit = time.monotonic() + HANDED_OVER_S
    while os.getppid() != supervisor:
        if time.monotonic() > limit:
            os._exit(1)
        time.sleep(0.001)
    os.setsid()
    os.write(1, b"%d\n" % os.getpid())
    with open(os.devnull, "rb") as nothing, open(log, "ab") as output:  # noqa: PTH123
        for number, file in enumerate((nothing, output, output)):
            os.dup2(file.fileno(), number)
    os.environ.update(environment)
    _be_called(words)
    grace_s, *command = words[words.index(str(supervisor)) + 1 :]
    keeper = Keeper(supervisor, float(grace_s))
    if not keeper.fork():
        os._exit(keeper.watch())
    _be_called(command)
    return command[command.index(__spec__.name) + 1 :]


def _be_called(words: list[str]) -> None:
    """Be shown by `ps` as a command: up to its end, where what was the last byte of the old one's is not zero."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    room = end - start - 2
    ctypes.memmove(start, " ".join(words).encode()[:room].ljust(room + 1, b"\0") + b"-", end - start)


if __name__ == "__main__":
    gc.disable()
    sys.argv[:] = nursed() if sys.argv[1].startswith("-") else sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
