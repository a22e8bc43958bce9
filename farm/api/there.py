"""A farm that is reached over HTTP: its routes in place of commands."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from client import Farm, Refused
from orchestrator.model.errors import SpecError
from orchestrator.model.quantity import parse_seconds

from .command_line import CommandFailed, CommandLine, Option


@dataclass(frozen=True)
class There(CommandLine):
    """The address is its `state`."""

    client: Farm | None = None

    @property
    def _farm(self) -> Farm:
        assert self.client is not None
        return self.client

    def answer(self, *words: str, **_: Option) -> NoReturn:
        what = f"`{' '.join(['farm', *words])}` does not work from afar"
        raise CommandFailed(what, remedy="run it on the machine of the farm, or reach that by ssh: Farm(host=...)")

    @contextmanager
    def folder(self, _: Mapping[str, Path] | None = None) -> Iterator[str]:
        self.answer("infer")
        yield ""

    def run(self, spec: str | PathLike[str] | Mapping[str, Any], *, again: bool) -> str:
        """Submit an experiment with its files; its id."""
        with _told():
            return self._farm.run(spec, again=again).id

    def devices(self) -> list[dict[str, Any]]:
        with _told():
            return self._farm.devices()

    def experiments(self) -> list[dict[str, Any]]:
        with _told():
            return self._farm.experiments()[::-1]

    def status(self, name: str) -> dict[str, Any]:
        with _told():
            return self._farm.experiment(name).status()

    def looks(self, experiment_id: str, timeout: str | None) -> Iterator[dict[str, Any]]:
        try:
            limit_s = float("inf") if timeout is None else parse_seconds(timeout)
        except ValueError as e:
            raise SpecError(f"timeout: {e}") from e
        with _told():
            for each in self._farm.experiment(experiment_id).follow(limit_s):
                total = sum(each["counts"].values())
                over = total - sum(each["counts"].get(word, 0) for word in ("held", "waiting", "placed", "running"))
                yield {"done": over, "total": total, "waiting": ""}

    def results(self, experiment_id: str) -> list[dict[str, Any]]:
        with _told():
            return list(self._farm.experiment(experiment_id).results()["summaries"])

    def table(self, experiment_id: str, what: str) -> bytes:
        return self._saved(f"/experiments/{experiment_id}/table", form="parquet", what=what)

    def report(self, experiment_id: str) -> str:
        return self._saved(f"/experiments/{experiment_id}/report").decode()

    def cancel(self, target: str) -> list[str]:
        with _told():
            return self._farm.experiment(target).cancel()

    def retry(self, target: str) -> list[str]:
        with _told():
            return self._farm.experiment(target).retry()

    def _saved(self, path: str, **query: Any) -> bytes:
        file = io.BytesIO()
        with _told():
            self._farm.line.save(path, file, **query)
        return file.getvalue()


@contextmanager
def _told() -> Iterator[None]:
    """Raises CommandFailed for what the farm refuses."""
    try:
        yield
    except Refused as e:
        failed = CommandFailed(e.detail, device=e.where, remedy=e.remedy)
        failed.cause = e.cause
        raise failed from e
