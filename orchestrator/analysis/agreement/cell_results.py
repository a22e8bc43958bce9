"""Put together what each result predicts: the shards of a cell, from the blocks that count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from orchestrator.analysis.statistics import newest_attempts
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.model.job import Cell, labels_of
from orchestrator.model.record import InvalidCode, Outcome
from orchestrator.spec.expansion.expand import cells_of

from .proportion import Proportion, proportion

TOP = 5


class Gap(Model):
    """Examples in a row that have no prediction."""

    first: int
    last: int


class CellResult(Model):
    """A cell on a device; the cell alone where its devices shared the set out among themselves."""

    cell_id: str
    label: str
    workload: str
    precision: str
    serials: tuple[str, ...]
    """Devices that gave predictions, or tried to; empty where no block is over."""
    sources: tuple[Source, ...]
    examples: int
    """The number of examples with a prediction."""
    of: int
    """Examples of the set."""
    failed: int
    """The number without one because their block did not go well; the others were not run yet."""
    gaps: tuple[Gap, ...]
    top1: Proportion | None
    """Right, where there are labels."""
    top5: Proportion | None
    """Right class among the best five; None for networks with fewer than five classes."""

    @property
    def missing(self) -> int:
        return self.of - self.examples


class Answer(NamedTuple):
    """The prediction for one example."""

    top: tuple[int, ...]
    margin: float


class Answered(NamedTuple):
    """A result with its answers by the example's place in the set."""

    result: CellResult
    answers: Mapping[int, Answer]


def answered(
    blocks: Iterable[BlockFigures], cells: Mapping[str, Cell], experiment: Experiment, labels: Sequence[int] | None
) -> dict[Workload, list[Answered]]:
    """Results of each workload with a set: cells in the experiment's order, each by device in order of serial.

    `cells`: those of all jobs, by id. Of several attempts at a block the newest counts, if it went well.
    """
    known = _in_order(cells, experiment)
    work = [block for block in newest_attempts(blocks) if block.role == "work" and block.cell_id in known]
    groups: dict[tuple[str, str], list[BlockFigures]] = {}
    for block in work:
        groups.setdefault((block.cell_id, _own_device(block, experiment)), []).append(block)
    for cell_id in known.keys() - {cell_id for cell_id, _ in groups}:
        groups[cell_id, ""] = []
    places, names = list(known), labels_of(known)
    found: dict[Workload, list[Answered]] = {}
    for (cell_id, _), own in sorted(groups.items(), key=lambda item: (places.index(item[0][0]), item[0][1])):
        found.setdefault(known[cell_id].workload, []).append(_result(known[cell_id], names[cell_id], own, labels))
    return found


def _in_order(cells: Mapping[str, Cell], experiment: Experiment) -> dict[str, Cell]:
    """Cells with a set, as the axes order them."""
    own = {cell_id: cell for cell_id, cell in cells.items() if (of := cell.workload.dataset) and of.size is not None}
    order = [cell.cell_id for cell in cells_of(experiment)] if own else []
    return {cell_id: own[cell_id] for cell_id in dict.fromkeys([*order, *own]) if cell_id in own}


def _own_device(block: BlockFigures, experiment: Experiment) -> str:
    return "" if experiment.devices.count == "any" else block.serial


def _result(cell: Cell, label: str, blocks: Sequence[BlockFigures], labels: Sequence[int] | None) -> Answered:
    dataset = cell.workload.dataset
    assert dataset is not None and dataset.size is not None
    answers: dict[int, Answer] = {}
    tried: set[int] = set()
    for block in blocks:
        tried.update(dataset.examples(block.block))
        if _counts(block) and (predictions := block.predictions) is not None:
            answers.update(enumerate(map(Answer, predictions.top, predictions.margins), predictions.first))
    result = CellResult(
        cell_id=cell.cell_id,
        label=label,
        workload=cell.workload.label,
        precision=str(cell.precision),
        serials=tuple(sorted({block.serial for block in blocks})),
        sources=tuple(sorted({block.source for block in blocks})),
        examples=len(answers),
        of=dataset.size,
        failed=len(tried - answers.keys()),
        gaps=gaps(place for place in range(dataset.size) if place not in answers),
        top1=_right(answers, labels, 1),
        top5=_right(answers, labels, TOP),
    )
    return Answered(result, answers)


def _counts(block: BlockFigures) -> bool:
    """A block whose times were spoilt (a hot phone, a charger) has predicted as well as any; a wrong output has not."""
    if block.outcome is Outcome.INVALID:
        return all(reason.code is not InvalidCode.WRONG_OUTPUT for reason in block.invalid)
    return block.outcome is Outcome.OK


def _right(answers: Mapping[int, Answer], labels: Sequence[int] | None, best: int) -> Proportion | None:
    """Examples whose label is among the best classes."""
    if labels is None or any(len(answer.top) < best for answer in answers.values()):
        return None
    return proportion(sum(labels[place] in answer.top[:best] for place, answer in answers.items()), len(answers))


def gaps(places: Iterable[int]) -> tuple[Gap, ...]:
    """Ascending places, those in a row put together."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return tuple(Gap(first=first, last=last) for first, last in found)
