"""The farm of this machine: acts are done and answers are asked in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from dashboards.answers import answers
from dashboards.answers.asked import Asked, Sources
from farm.access import connect, find_experiment, site_of

if TYPE_CHECKING:
    from dashboards.answers.answers import Brief
    from dashboards.answers.reading import Page
    from orchestrator.acts import Actor, Done, Site
    from orchestrator.answers.fleet import Snapshot
    from orchestrator.ledger import Ledger
    from orchestrator.model.record import Record
    from orchestrator.system.config import Settings

T = TypeVar("T")
ALL = 10**9


@dataclass(frozen=True)
class Here:
    """A farm of this machine; its ledger is open."""

    settings: Settings
    ledger: Ledger
    actor: Actor

    @cached_property
    def site(self) -> Site:
        return site_of(self.settings, self.ledger)

    @cached_property
    def _asked(self) -> Asked:
        return Asked(Sources(lambda: self.ledger, lambda: connect(self.settings), lambda: self.site, ""), self.actor)

    def ask(self, answer: Callable[..., T], **given: Any) -> T:
        return answer(self._asked, **given)

    def every(self, answer: Callable[..., Page[T]], **given: Any) -> list[T]:
        return self.ask(answer, most=ALL, **given).items

    def act(self, does: Callable[..., Done], *args: Any, **options: Any) -> Done:
        return does(self.site, self.actor, *args, **options)

    def submit(self, file: Path, *, again: bool, project: str) -> Done:
        from orchestrator import acts, spec
        from orchestrator.model.errors import ModelFileError, SpecError

        try:
            return self.act(acts.submit, spec.load(file), file.parent, again=again, project=project)
        except (SpecError, ModelFileError) as e:
            raise spec.located(e, file) from e

    def find(self, name: str) -> Brief:
        row = find_experiment(self.ledger, name)
        return answers.briefs(self._asked, [row])[0]

    def looks(self, experiment_id: str | None, limit_s: float | None) -> Iterator[Snapshot]:
        from farm.following import looks
        from orchestrator.coordination.inventory import Inventory
        from orchestrator.coordination.leases import Leases

        redis = connect(self.settings)
        return looks(self.ledger, Inventory(redis), Leases(redis), experiment_id, limit_s=limit_s)

    def table(self, experiment_id: str, form: str, what: str | None, file: IO[bytes]) -> tuple[str, int]:
        from orchestrator.exchange import export

        row = self.ledger.experiment(experiment_id)
        made = what or export.measured(self.ledger, experiment_id)
        labels = answers.labels_of(self._asked, row) if made == "predictions" else None
        return made, export.export(self.ledger, experiment_id, form, made, file, labels=labels)  # type: ignore[arg-type]

    def report(self, experiment_id: str) -> tuple[str, int]:
        from farm import endpoints
        from orchestrator.report.gathering import report_page

        content = self.ask(answers.content, id=experiment_id, layers=True)
        pages = endpoints.pages_of(self.settings.state)
        return report_page(content, self.ledger, pages), len(content.summaries)

    def records(self, experiment_id: str) -> list[Record]:
        return list(self.ledger.records(experiment_id))

    def pruned(self, experiment_id: str) -> Mapping[str, int]:
        return self.ledger.pruned(experiment_id)
