"""A farm of this machine, or one that HTTP reaches: acts are done and answers are asked by the door of commands."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboards.answers import answers
from farm.access import NOTEBOOK
from farm.doors import Door, open_door
from orchestrator.model.errors import FarmError, SpecError
from orchestrator.model.people import COMMON

from .command_line import CommandFailed, CommandLine, Option

if TYPE_CHECKING:
    from farm.endpoints import Login


@dataclass(frozen=True)
class Here(CommandLine):
    """Everything but what computes or compares, which a process of its own does, on this machine alone."""

    login: Login | None = None
    """The farm elsewhere; None: that of the state folder, or of `farm login`."""

    def answer(self, *words: str, **options: Option) -> Any:
        if self.login is not None:
            remedy = "run it on the machine of the farm, or reach that by ssh: Farm(host=...)"
            raise CommandFailed(f"`{' '.join(['farm', *words])}` does not work from afar", remedy=remedy)
        return super().answer(*words, **options)

    def devices(self) -> list[dict[str, Any]]:
        with self._door() as door:
            return [each.model_dump(mode="json") for each in door.every(answers.devices)]

    def experiments(self) -> list[dict[str, Any]]:
        with self._door() as door:
            return [each.model_dump() for each in reversed(door.every(answers.experiments))]

    def status(self, name: str) -> dict[str, Any]:
        with self._door() as door:
            return door.ask(answers.experiment, id=door.find(name).experiment)

    def submit(self, file: str, *, again: bool) -> str:
        from orchestrator import spec

        with _told():
            spec.load(Path(file))  # what is wrong with it is told first, farm or none
        with self._door() as door:
            return str(door.submit(Path(file), again=again, project=COMMON).data["experiment"])

    def looks(self, experiment_id: str, timeout: str | None) -> Iterator[dict[str, Any]]:
        from orchestrator.model.quantity import parse_seconds

        with self._door() as door:
            try:
                limit_s = None if timeout is None else parse_seconds(timeout)
            except ValueError as e:
                raise SpecError(f"timeout: {e}") from e
            for found in door.looks(experiment_id, limit_s):
                yield found.data

    def results(self, experiment_id: str) -> list[dict[str, Any]]:
        with self._door() as door:
            return list(door.ask(answers.results, id=door.find(experiment_id).experiment)["summaries"])

    def table(self, experiment_id: str, what: str) -> bytes:
        file = io.BytesIO()
        with self._door() as door:
            door.table(door.find(experiment_id).experiment, "parquet", what, file)
        return file.getvalue()

    def report(self, experiment_id: str) -> str:
        with self._door() as door:
            return door.report(door.find(experiment_id).experiment)[0]

    def cancel(self, target: str) -> list[str]:
        from orchestrator import acts

        with self._door() as door:
            return list(door.act(acts.experiments.cancel, target).data["cancelled"])

    def retry(self, target: str) -> list[str]:
        from orchestrator import acts

        with self._door() as door:
            return list(door.act(acts.experiments.retry, target).data["retried"])

    @contextmanager
    def _door(self) -> Iterator[Door]:
        with _told(), open_door(Path(self.state) if self.state else None, self.login, by=NOTEBOOK) as door:
            yield door


@contextmanager
def _told() -> Iterator[None]:
    """Raises CommandFailed for any error of the farm, as a command of another machine does."""
    try:
        yield
    except FarmError as e:
        failed = CommandFailed(str(e.args[0]), device=e.device, remedy=e.remedy)
        failed.cause = e.cause
        raise failed from e
