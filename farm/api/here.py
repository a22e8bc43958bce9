"""The farm of this machine: acts are done and answers are asked in this process."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from farm.access import (
    NOTEBOOK,
    connect,
    devices_of,
    find_experiment,
    labels_of,
    open_inventory,
    open_site,
    reasons_of,
    settings_of,
    user_by,
)
from orchestrator.model.errors import FarmError, ModelFileError, SpecError

from .command_line import CommandFailed, CommandLine

if TYPE_CHECKING:
    from orchestrator.acts import Site
    from orchestrator.ledger import ExperimentRow
    from orchestrator.report.content import Content


@dataclass(frozen=True)
class Here(CommandLine):
    """Everything but what computes or compares, which a process of its own does."""

    def devices(self) -> list[dict[str, Any]]:
        with self._site() as site:
            inventory = open_inventory(site.settings)  # says where no farm runs
            found = devices_of(site.settings, site.ledger) or inventory.devices()
            return [each.model_dump(mode="json") for each in sorted(found, key=lambda device: device.serial)]

    def experiments(self) -> list[dict[str, Any]]:
        from orchestrator.answers import all_in_brief

        with self._site() as site:
            return all_in_brief(site.ledger, reasons_of(site.settings))

    def status(self, name: str) -> dict[str, Any]:
        from orchestrator.answers import how_far, unfinished

        with self._site() as site:
            row, settings = find_experiment(site.ledger, name), site.settings
            found = how_far(site.ledger, row, reasons_of(settings), lambda: devices_of(settings, site.ledger))
            return found.data(unfinished(site.ledger, row.id))

    def submit(self, file: str, *, again: bool) -> str:
        from orchestrator import acts, spec

        with _told():
            experiment, folder = spec.load(Path(file)), Path(file).parent
        with self._site() as site:
            try:
                return acts.submit(site, user_by(NOTEBOOK), experiment, folder, again=again).experiment_id
            except (SpecError, ModelFileError) as e:
                raise spec.located(e, Path(file)) from e

    def looks(self, experiment_id: str, timeout: str | None) -> Iterator[dict[str, Any]]:
        from farm.following import looks
        from orchestrator.coordination.inventory import Inventory
        from orchestrator.coordination.leases import Leases
        from orchestrator.model.quantity import parse_seconds

        with self._site() as site:
            try:
                redis, limit_s = connect(site.settings), None if timeout is None else parse_seconds(timeout)
            except ValueError as e:
                raise SpecError(f"timeout: {e}") from e
            for found in looks(site.ledger, Inventory(redis), Leases(redis), experiment_id, limit_s=limit_s):
                yield found.data

    def results(self, experiment_id: str) -> list[dict[str, Any]]:
        from orchestrator.report import export

        with self._site() as site:
            content = _content(site, find_experiment(site.ledger, experiment_id), layers=True)
            return cast("list[dict[str, Any]]", export.as_data(content)["summaries"])

    def table(self, experiment_id: str, what: str) -> bytes:
        from orchestrator.exchange import export

        with self._site() as site:
            row, file = find_experiment(site.ledger, experiment_id), io.BytesIO()
            labels = labels_of(site.settings, row.experiment) if what == "predictions" else None
            export.export(site.ledger, row.id, "parquet", what, file, labels=labels)  # type: ignore[arg-type]
            return file.getvalue()

    def report(self, experiment_id: str) -> str:
        from farm import endpoints
        from orchestrator.report.gathering import report_page

        with self._site() as site:
            content = _content(site, find_experiment(site.ledger, experiment_id), layers=True)
            return report_page(content, site.ledger, endpoints.pages_of(site.settings.state))

    def cancel(self, target: str) -> list[str]:
        from orchestrator import acts

        with self._site() as site:
            return acts.experiments.cancel(site, user_by(NOTEBOOK), target).cancelled

    def retry(self, target: str) -> list[str]:
        from orchestrator import acts

        with self._site() as site:
            return acts.experiments.retry(site, user_by(NOTEBOOK), target).retried

    @contextmanager
    def _site(self) -> Iterator[Site]:
        with _told(), open_site(settings_of(Path(self.state) if self.state else None)) as site:
            yield site


@contextmanager
def _told() -> Iterator[None]:
    """Raises CommandFailed for any error of the farm, as a command of another machine does."""
    try:
        yield
    except FarmError as e:
        failed = CommandFailed(str(e.args[0]), device=e.device, remedy=e.remedy)
        failed.cause = e.cause
        raise failed from e


def _content(site: Site, row: ExperimentRow, *, layers: bool) -> Content:
    """Gather what is told of an experiment; without the shares that are right, where its labels cannot be read."""
    from orchestrator.report.gathering import gather

    try:
        labels = labels_of(site.settings, row.experiment)
    except ModelFileError:
        labels = None
    return gather(site.ledger, row, labels, layers=layers)
