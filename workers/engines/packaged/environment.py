"""The environment of an engine's packages: pinned, checked by hash, made once a host, apart from the farm's own."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.model.errors import SetupError

READY = "ready"
"""The file that is there once all packages are."""
SAID = 800


@dataclass(frozen=True)
class Environment:
    """One engine's; another list of packages, or another Python, is another folder."""

    engine: str
    requirements: Path
    """pip's file with every package, its version and its hashes."""
    parent: Path
    """The folder of this host's environments."""
    index: str = ""
    """A further index, asked where pip finds a package nowhere else."""

    @property
    def identity(self) -> str:
        """The hash of its packages' list and of the Python that runs them."""
        return hashlib.sha256(self.requirements.read_bytes() + sys.version.encode()).hexdigest()

    @property
    def folder(self) -> Path:
        return self.parent / f"{self.engine}-{self.identity[:12]}"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def is_ready(self) -> bool:
        return (self.folder / READY).is_file()

    @property
    def packages(self) -> dict[str, str]:
        """Return the versions of its packages, by name."""
        found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", self.requirements.read_text(), re.MULTILINE)
        return dict(found)

    def install(self) -> None:
        """Install what is missing; pip keeps what it has fetched, so that a broken run goes on. Raises SetupError."""
        with self._alone():
            if self.is_ready:
                return
            venv.create(self.folder, clear=False, symlinks=True, with_pip=False)
            argv = [
                *(sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", "--no-deps"),
                *("--require-hashes", "--only-binary", ":all:", "-r", str(self.requirements)),
            ]
            for more in ([], ["--extra-index-url", self.index])[: 2 if self.index else 1]:
                done = subprocess.run([*argv, *more], capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    break
            else:
                words = " ".join((done.stderr or done.stdout).split())[-SAID:]
                raise SetupError(
                    f"the packages of engine {self.engine} could not be installed: {words}",
                    remedy=f"see that pip reaches its index, and try `farm engines install {self.engine}` again",
                )
            (self.folder / READY).write_text("")
            for other in self.parent.glob(f"{self.engine}-*/"):
                if other != self.folder:
                    shutil.rmtree(other, ignore_errors=True)

    def remove(self) -> bool:
        """Remove every environment of the engine from this host; return whether there was one."""
        with self._alone():
            found = list(self.parent.glob(f"{self.engine}-*/"))
            for folder in found:
                shutil.rmtree(folder)
        return bool(found)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.parent.mkdir(parents=True, exist_ok=True)
        with (self.parent / f".{self.engine}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
