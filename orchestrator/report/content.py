"""The content of a report, independent of its form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from orchestrator.analysis.agreement import Agreement, AnswerRow, agreements, answer_rows
from orchestrator.analysis.comparison.backends import pays_from, side_by_side
from orchestrator.analysis.comparison.one_thread import with_gains
from orchestrator.analysis.limits import Limit, limits
from orchestrator.analysis.reproduction import Reproduction, reproduce
from orchestrator.analysis.statistics import CanaryVerdict, Summary, canary_verdicts, newest_attempts, summarise
from orchestrator.analysis.stopping_rule import StoppingDecision, decide_all
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Api, Source
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell, labels_of
from orchestrator.model.stopped import Stopped


class DoubtCount(Model):
    """A doubt with the results that it touches."""

    code: str
    remedy: str
    results: int
    """Number of cells on devices that have it."""
    details: tuple[str, ...]
    """A few examples."""


class CellDecision(Model):
    """The reason why sequential sampling stopped for a cell on a device, or that it goes on."""

    serial: str
    label: str
    decision: StoppingDecision


class Content(Model):
    """Everything that a report shows, derived from the figures of one experiment's blocks."""

    experiment_id: str
    experiment: Experiment
    origin: str = ""
    """The lab in which it was measured, in words; empty: here."""
    outcomes: dict[str, int]
    """Jobs by outcome; those without a record are `waiting` or `running`."""
    summaries: tuple[Summary, ...]
    blocks: tuple[BlockFigures, ...]
    """The attempt that counts of each job, oldest first."""
    exclusions: tuple[Exclusion, ...]
    doubts: tuple[DoubtCount, ...]
    canaries: tuple[CanaryVerdict, ...] = ()
    """The verdict on each device that ran some."""
    decisions: tuple[CellDecision, ...] = ()
    """The decision for each cell and device, where the experiment has a target interval."""
    silent: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Devices that had jobs of their own and gave no result: serial -> those jobs by outcome or state."""
    agreements: tuple[Agreement, ...] = ()
    """The agreement of each workload that has a set."""
    answers: tuple[AnswerRow, ...] = ()
    """The answers of language models, each beside that of another result."""
    reproduction: Reproduction | None = None
    """Published figures beside ours, where the experiment's file has any with keys."""
    limits: tuple[Limit, ...] = ()
    """The limit of each cell and device, where the experiment searches them."""
    stopped: tuple[Stopped, ...] = ()
    """Strategies that ended without what they were asked for."""
    between_runs: float | None = None
    """The share by which the same cells on the same devices differ from run to run; None: not known."""
    generated_at: float
    """Unix time."""

    @property
    def unreal(self) -> tuple[Source, ...]:
        """Sources among the results that say nothing of the phone they are named after."""
        found = {summary.source for summary in self.summaries}
        return tuple(sorted(found & {Source.VIRTUAL, Source.REPLAY}))

    @property
    def imported(self) -> bool:
        """Return whether results were measured elsewhere, and are as somebody wrote them down."""
        return any(summary.source is Source.IMPORT for summary in self.summaries)


def build(
    experiment_id: str,
    experiment: Experiment,
    *,
    cells: Mapping[str, Cell],
    blocks: Iterable[BlockFigures],
    outcomes: Mapping[str, int],
    exclusions: Iterable[Exclusion] = (),
    made: Mapping[tuple[str, str], int] | None = None,
    jobs: Mapping[str, Mapping[str, int]] | None = None,
    labels: Sequence[int] | None = None,
    stopped: Sequence[Stopped] = (),
    between_runs: float | None = None,
    origin: str = "",
    now: float,
) -> Content:
    """Derive a report's content. `cells` must hold the cell of every block. `blocks`: with what rows hold apart.

    `made`: blocks that are over of each (serial, cell id), those without a record included. `jobs`: those of each
    device that no other may run, by outcome or state. `labels`: the right class of each example, where the workload
    has a set. `origin`: the lab in which it was measured, in words.
    """
    newest = sorted(newest_attempts(blocks), key=lambda block: (block.started_at, block.job_id))
    mode, watched = experiment.sampling.mode, experiment.sampling.is_watched
    summaries = tuple(with_gains(summarise(newest, cells, mode=mode, watched=watched), newest, cells))
    measured = {summary.serial for summary in summaries}
    decisions = decide_all(experiment, newest, made or {})
    agreed = agreements(newest, cells, experiment, labels)
    searched, names = limits(experiment, newest, cells), labels_of(cells)
    found = pays_from(side_by_side(summaries, newest, mode)) if experiment.published else ()
    return Content(
        experiment_id=experiment_id,
        experiment=experiment,
        origin=origin,
        outcomes=dict(outcomes),
        summaries=summaries,
        blocks=tuple(newest),
        exclusions=tuple(exclusions),
        doubts=count_doubts(summaries),
        canaries=canary_verdicts(newest),
        decisions=tuple(
            CellDecision(serial=serial, label=names[cell_id], decision=decision)
            for (serial, cell_id), decision in sorted(decisions.items())
            if cell_id in names  # a job that cannot be read has none
        ),
        silent={serial: dict(own) for serial, own in (jobs or {}).items() if serial not in measured},
        agreements=agreed,
        answers=answer_rows(newest, cells),
        reproduction=reproduce(
            experiment.published,
            newest,
            cells,
            mode,
            pays=[each for each in found if each.over == Api.CPU],
            agreements=agreed,
            limits=searched,
        ),
        limits=searched,
        stopped=tuple(stopped),
        between_runs=between_runs,
        generated_at=now,
    )


def count_doubts(summaries: Iterable[Summary]) -> tuple[DoubtCount, ...]:
    """Doubts of all results, the most frequent first, with up to three different details each."""
    results: Counter[str] = Counter()
    details: dict[str, dict[str, None]] = {}
    remedies: dict[str, str] = {}
    for summary in summaries:
        results.update({doubt.code for doubt in summary.doubts})
        for doubt in summary.doubts:
            remedies[doubt.code] = doubt.remedy
            if doubt.detail:
                details.setdefault(doubt.code, {})[doubt.detail] = None
    return tuple(
        DoubtCount(code=code, remedy=remedies[code], results=count, details=tuple(details.get(code, {}))[:3])
        for code, count in sorted(results.items(), key=lambda item: (-item[1], item[0]))
    )
