"""A farm and its experiments, as its API tells of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from .line import Answer, Line, Refused, Told, silent
from .spec_files import files_of

COMMON = "common"
"""The project that owns what names no other."""


@dataclass(frozen=True)
class Experiment:
    """An experiment, by its id; everything is asked anew. Its methods raise Refused."""

    id: str
    line: Line

    def status(self) -> dict[str, Any]:
        """Jobs by state and outcome, why they wait, when it ends, what is excluded, what went wrong."""
        return dict(self.line.get(f"/experiments/{self.id}"))

    def follow(self, timeout_s: float = float("inf")) -> Iterator[dict[str, Any]]:
        """Yield how far it is each time that this changes, until it is over or for so long."""
        return self.line.events(f"/experiments/{self.id}/progress", until=time.monotonic() + timeout_s)

    def wait(self, timeout_s: float = float("inf")) -> Experiment:
        """Return when every job is over. Raises TimeoutError."""
        if not any(each["finished"] for each in self.follow(timeout_s)):
            raise TimeoutError(f"{self.id} is not over after {timeout_s:g} s")
        return self

    def results(self) -> dict[str, Any]:
        """Results with intervals, warnings and exclusions, as `farm results --json` prints them."""
        return dict(self.line.get(f"/experiments/{self.id}/results"))

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, in order of submission."""
        return list(self.line.items(f"/experiments/{self.id}/jobs"))

    def cancel(self) -> list[str]:
        """Cancel what is not over; the ids of the jobs."""
        return list(self.line.act("cancel", targets=[self.id]).result["cancelled"])

    def retry(self) -> list[str]:
        """Put lost, failed and killed jobs back into the queue; their ids."""
        return list(self.line.act("retry", target=self.id).result["retried"])


class Farm:
    """A farm at its address, with a token of `farm tokens create`. Its methods raise Refused.

    `ca`: the certificate of the authority that signed the farm's, where the system does not know it.
    """

    def __init__(self, url: str, *, token: str, ca: str | PathLike[str] | None = None) -> None:
        self.line = Line(url, token, ca)

    def me(self) -> dict[str, Any]:
        """Tell who asks, and their roles."""
        return dict(self.line.get("/me"))

    def devices(self) -> list[dict[str, Any]]:
        """Devices by serial: facts and state."""
        return list(self.line.items("/devices"))

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments that may be viewed, the newest first."""
        return list(self.line.items("/experiments"))

    def experiment(self, name: str) -> Experiment:
        """Return the experiment of an id or a name (the newest), or the newest of all for `latest`."""
        for each in self.line.items("/experiments"):
            if name in (each["experiment"], each["name"], "latest"):
                return Experiment(each["experiment"], self.line)
        raise Refused(f"there is no experiment {name!r}", cause="unknown_name", remedy="experiments() lists all")

    def run(
        self, spec: Mapping[str, Any] | str | PathLike[str], *, project: str = COMMON, again: bool = False
    ) -> Experiment:
        """Submit an experiment: a YAML file, or what such a file holds; its files are relative to it, or to here, and
        are sent where the farm has not got them. One of the same content that is not over is gone on with, unless
        `again`."""
        base = Path.cwd() if isinstance(spec, Mapping) else Path(spec).parent
        tree = spec if isinstance(spec, Mapping) else _read(Path(spec))
        done = self.submit(tree, files_of(tree, base), project=project, again=again)
        return Experiment(done.result["experiment"], self.line)

    def submit(
        self,
        tree: Mapping[str, Any],
        files: Mapping[str, Path],
        *,
        project: str = COMMON,
        again: bool = False,
        told: Told = silent,
    ) -> Answer:
        """Send files, by the names that an experiment gives them, and submit it."""
        sent = {name: self.line.send(path, project, told) for name, path in files.items()}
        return self.line.act("submit", once=True, experiment=dict(tree), files=sent, project=project, again=again)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        remedy = "pip install PyYAML, or give what the file holds"
        raise Refused(f"{path}: YAML takes the package PyYAML", cause="setup", remedy=remedy) from None
    found: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return found
