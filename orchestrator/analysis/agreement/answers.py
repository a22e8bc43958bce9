"""Compare the answers of language models: how many tokens two results have in common before the first that differs.

Behind a token that differs the texts are two, so that nothing later is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from orchestrator.analysis.statistics import newest_attempts
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import OURS, Precision, Source
from orchestrator.model.job import Cell, labels_of


class AnswerRow(Model):
    """The answer of a cell on a device, beside the base's behind the same text."""

    cell_id: str
    label: str
    workload: str
    serial: str
    source: Source
    base: str
    """The base's label and serial; empty of the base itself."""
    tokens: int
    """Tokens that could be compared."""
    same: int
    """Tokens before the first that differs."""
    this_token: int | None = None
    """The number of that token; None where all are the same."""
    base_token: int | None = None


def answer_rows(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> tuple[AnswerRow, ...]:
    """Return a row for each cell and device with an answer, those behind the same text of the same model together.

    The base is our own engine's in fp32, else our own engine's, else any; of several the longest. A device's blocks of
    a cell answer alike; the first of them stands for all. `cells`: those of all jobs, by id.
    """
    names = labels_of(cells)
    texts: dict[tuple[object, ...], dict[tuple[str, str], BlockFigures]] = {}
    for block in newest_attempts(blocks):
        cell = cells.get(block.cell_id)
        if cell is not None and cell.text is not None and block.answer and block.role == "work":
            key = (cell.workload, cell.text.context, cell.text.prompt)
            texts.setdefault(key, {}).setdefault((block.cell_id, block.serial), block)
    return tuple(row for found in texts.values() for row in _rows(list(found.values()), cells, names))


def _rows(blocks: list[BlockFigures], cells: Mapping[str, Cell], names: Mapping[str, str]) -> Iterable[AnswerRow]:
    places = list(cells)
    blocks.sort(key=lambda each: (places.index(each.cell_id), each.serial))
    base = min(blocks, key=lambda each: (*_rank(cells[each.cell_id]), -len(each.answer)))
    for each in blocks:
        pairs = list(zip(each.answer, base.answer, strict=False))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        this, other = pairs[same] if same < len(pairs) else (None, None)
        yield AnswerRow(
            cell_id=each.cell_id, label=names[each.cell_id], workload=cells[each.cell_id].workload.label,
            serial=each.serial, source=each.source,
            base="" if each is base else f"{names[base.cell_id]} on {base.serial}",
            tokens=len(pairs), same=same, this_token=this, base_token=other,
        )  # fmt: skip


def _rank(cell: Cell) -> tuple[bool, bool]:
    return cell.engine != OURS.name, cell.precision != Precision.FP32
