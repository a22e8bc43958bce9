"""Links from a report to the farm's pages: of experiments, nights, devices, jobs; plain text where none is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from orchestrator.figures import BlockFigures
from orchestrator.model.record import Outcome


@dataclass(frozen=True)
class Links:
    """The links to the pages of one farm."""

    pages: str = ""
    """Their address, with a slash at its end; `/` in a report that the pages themselves serve; empty: not known."""

    def experiment(self, experiment_id: str, text: str = "") -> Markup:
        return self._to("experiments", experiment_id, text)

    def night(self, night_id: str, text: str = "") -> Markup:
        """`night_id`: of a suite's night; or of an experiment, with `/` and the number of a later night behind it."""
        if "@" in night_id:
            return self._to("nights", night_id, text)
        return self.experiment(night_id.partition("/")[0], text or night_id)

    def device(self, serial: str, text: str = "") -> Markup:
        return self._to("devices", serial, text)

    def job(self, job_id: str, text: str = "") -> Markup:
        return self._to("jobs", job_id, text)

    def some(self, experiments: Sequence[str], most: int) -> Markup:
        """The first of some experiments, and how many more there are; empty without pages."""
        if not self.pages:
            return Markup()
        more = Markup(" and {} more").format(len(experiments) - most) if len(experiments) > most else Markup()
        return Markup(", ").join(map(self.experiment, experiments[:most])) + more

    def _to(self, what: str, name: str, text: str) -> Markup:
        if not self.pages or not name:
            return Markup("{}").format(text or name)
        address = f"{self.pages}{what}/{quote(name, safe='')}"
        return Markup('<a class="to-farm" href="{}">{}</a>').format(address, text or name)


def typical_jobs(blocks: Iterable[BlockFigures]) -> dict[tuple[str, str], str]:
    """(serial, cell id) -> the job of its middle block by median; of none that went well, of the newest."""
    by_result: dict[tuple[str, str], list[BlockFigures]] = defaultdict(list)
    for block in blocks:
        if block.role == "work":
            by_result[block.serial, block.cell_id].append(block)
    return {key: _middle(found).job_id for key, found in by_result.items()}


def _middle(blocks: list[BlockFigures]) -> BlockFigures:
    good = [(block.times.median_ms, block) for block in blocks if block.outcome is Outcome.OK and block.times]
    ordered = sorted(good, key=lambda each: each[0])
    return ordered[(len(ordered) - 1) // 2][1] if ordered else max(blocks, key=lambda block: block.started_at)
