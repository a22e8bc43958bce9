"""The environment of an engine's packages: pinned, checked by hash, made once a host, apart from the farm's own."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.model.errors import SetupError

READY = "ready"
"""The file that is there once all packages are."""
SAID = 800


@dataclass(frozen=True)
class Environment:
    """One engine's; another list of packages, or another Python, is another folder."""

    engine: str
    """The engine's name, with `==` and the version where it is not the one that ships."""
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
        return self.requirements.is_file() and (self.folder / READY).is_file()

    @property
    def packages(self) -> dict[str, str]:
        """Return the versions of its packages, by name."""
        found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", self.requirements.read_text(), re.MULTILINE)
        return dict(found)

    def beside(self, version: str) -> Environment:
        """Return the environment of another version of the engine, which `resolve` lists."""
        name = f"{self.engine}=={version}"
        return replace(self, engine=name, requirements=self.parent / f"{name}.txt")

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions that are installed beside this one."""
        listed = (path.stem.rpartition("==")[2] for path in sorted(self.parent.glob(f"{self.engine}==*.txt")))
        return tuple(version for version in listed if self.beside(version).is_ready)

    def resolve(self, package: str, version: str, wheel: Path | None = None) -> Environment:
        """Return the environment of another version, with its list: this one's packages, but for those that the version
        needs otherwise. It is fetched, or a wheel that somebody built. Raises SetupError."""
        self.install()
        changed = self._lacking(str(wheel) if wheel else f"{package}=={version}")
        for left_out in self._lacking(f"{package}=={self.packages[package]}"):
            changed.pop(left_out, None)
        listed = self.requirements.read_text().replace("\\\n", " ").splitlines()
        kept = [line for line in listed if normal(line.partition("==")[0]) not in changed]
        other = self.beside(version)
        other.requirements.write_text("\n".join([*kept, *changed.values(), ""]))
        return other

    def install(self, *options: str) -> None:
        """Install what is missing; pip keeps what it has fetched, so that a broken run goes on. `options`: further ones
        of pip. Raises SetupError."""
        with self._alone():
            if self.is_ready:
                return
            venv.create(self.folder, clear=False, symlinks=True, with_pip=False)
            listed = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(self.requirements))
            self._pip("install", "--quiet", *listed, *options)
            (self.folder / READY).write_text("")
            for other in self.parent.glob(f"{self.engine}-*/"):
                if other != self.folder:
                    shutil.rmtree(other, ignore_errors=True)

    def remove(self) -> bool:
        """Remove every environment of the engine from this host, other versions too; return whether there was one."""
        with self._alone():
            found = [*self.parent.glob(f"{self.engine}-*/"), *self.parent.glob(f"{self.engine}==*/")]
            for folder in found:
                shutil.rmtree(folder)
            for listed in (*self.parent.glob(f"{self.engine}.txt"), *self.parent.glob(f"{self.engine}==*.txt")):
                listed.unlink()
        return bool(found)

    def _lacking(self, wanted: str) -> dict[str, str]:
        """Return what pip would install here for a package: a line of a list by name."""
        told = self._pip("install", "--dry-run", "--quiet", "--report", "-", "--only-binary", ":all:", wanted)
        return {
            normal(each["metadata"]["name"]): f"{each['metadata']['name']}=={each['metadata']['version']} "
            f"--hash=sha256:{each['download_info']['archive_info']['hashes']['sha256']}"
            for each in json.loads(told)["install"]
        }

    def _pip(self, *words: str) -> str:
        """Return what pip says of this environment; a further index is asked where it fails. Raises SetupError."""
        argv: Sequence[str] = (sys.executable, "-m", "pip", "--python", str(self.python), *words)
        for more in ([], ["--extra-index-url", self.index])[: 2 if self.index else 1]:
            done = subprocess.run([*argv, *more], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout
        said = " ".join((done.stderr or done.stdout).split())[-SAID:]
        raise SetupError(
            f"the packages of engine {self.engine} could not be installed: {said}",
            remedy="see that the version exists and pip reaches its index, and call `farm engines install` again",
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.parent.mkdir(parents=True, exist_ok=True)
        with (self.parent / f".{self.engine}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def normal(package: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", package.strip()).lower()
