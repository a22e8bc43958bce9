"""A power cut leaves of a folder only what was flushed, as the strictest file system that POSIX allows.

A library in front of libc (`power_cut.c`) notes every fsync of the processes that run under it. A name that was not
flushed with its folder is gone, even if its file was; a file that was not flushed is empty.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

SPARED = ("virtual", "logs")
"""Folders that a cut spares: virtual phones are machines of their own, and logs promise nothing."""
FLUSH_ALL = """
import os, sys
for folder, below, names in os.walk(sys.argv[1]):
    if folder == sys.argv[1]:
        below[:] = set(below) - set(sys.argv[2:])
    for path in (folder, *(os.path.join(folder, name) for name in names)):
        if os.path.isdir(path) or os.path.isfile(path):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
"""


class Durable:
    """The flushed content of the folder `root`, noted in `folder`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._shadow, self._library = root.absolute(), folder / "shadow", folder / "power_cut.so"
        self._shadow.mkdir(parents=True)
        self._cuts = 0
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self._library, source, "-ldl"], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes whose files are to be watched."""
        shadow = {"DURABLE_ROOT": str(self._root), "DURABLE_SHADOW": str(self._shadow)}
        return {"LD_PRELOAD": str(self._library), **shadow}

    def cut(self) -> Path:
        """Make the folder what a power cut has left, when all that wrote to it is dead; where the rest went."""
        self._cuts += 1
        lost = self._root.with_name(f"{self._root.name}.lost-{self._cuts}")
        self._root.rename(lost)
        self._root.mkdir(mode=0o700)
        self._fill(self._root)
        for name in SPARED:
            if (lost / name).exists():
                shutil.rmtree(self._root / name, ignore_errors=True)
                (lost / name).rename(self._root / name)
        self._settle()
        return lost

    def _settle(self) -> None:
        """Flush all that is there now: it is on the disk, whatever comes."""
        shutil.rmtree(self._shadow)
        self._shadow.mkdir()
        environment = {**os.environ, **self.environment}
        subprocess.run([sys.executable, "-c", FLUSH_ALL, self._root, *SPARED], env=environment, check=True)

    def _fill(self, folder: Path) -> None:
        """Folders are noted by their path, files by their identity."""
        names = self._shadow / ("d" + str(folder).replace("/", "%"))
        for line in names.read_text().splitlines() if names.exists() else ():
            key, mode, name = line.split(" ", 2)
            path, bits = folder / name, int(mode, 8)
            if stat.S_ISDIR(bits):
                path.mkdir(mode=stat.S_IMODE(bits))
                self._fill(path)
            elif stat.S_ISREG(bits):
                flushed = self._shadow / f"f-{key}"
                path.write_bytes(flushed.read_bytes() if flushed.exists() else b"")
                path.chmod(stat.S_IMODE(bits))
