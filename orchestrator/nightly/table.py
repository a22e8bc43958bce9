"""Compare the two sides of a night by the figures of its blocks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from orchestrator.analysis.comparison import Compared, Rules, SideRow, alike, compare, excluded_rows, rows_of, sides_of
from orchestrator.figures import BlockFigures
from orchestrator.figures.brief import brief_of
from orchestrator.model.axes import SIDE, axis_value_text
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import BASELINE, CANDIDATE
from orchestrator.model.job import Cell

from .night import CellOnDevice, Kind, Night, NightRow, Wave
from .steps import Row

PART = "part"
"""Option by which the cells of the parts of a night are told apart while they are compared."""


class Key(NamedTuple):
    """A cell on a device, whichever side it is of."""

    part: str
    device: str
    network: str
    backend: str
    precision: str
    options: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Measured:
    """The blocks of a wave."""

    wave: Wave
    cells: Mapping[str, Cell]
    blocks: tuple[BlockFigures, ...]
    exclusions: tuple[Exclusion, ...] = ()


def table(night: Night, measured: Iterable[Measured]) -> list[Row]:
    """Every metric of every cell by all blocks of the night but the repetition's; verdicts hold for the table, and for
    all looks at it: a cell that got more blocks is judged once more."""
    rows, cells = _gathered(night, measured, ("first", "more"))
    return [Row(NightRow(part=key.part, compared=found), cells[key]) for key, found in _compared(night, rows)]


def repeated(night: Night, measured: Iterable[Measured], rows: Iterable[NightRow]) -> list[NightRow]:
    """The rows, those that are different with what the repetition says of them."""
    rows = list(rows)
    changed = {(_key(row.part, row.compared), _name(row.compared)) for row in rows if _is_different(row)}
    again, _ = _gathered(night, measured, ("repeat",), lambda key, name: (key, name) in changed)
    found = {(key, _name(each)): each for key, each in _compared(night, again)}
    return [
        row.model_copy(update={"repeated": found.get((_key(row.part, row.compared), _name(row.compared)))})
        if _is_different(row)
        else row
        for row in rows
    ]


def _is_different(row: NightRow) -> bool:
    return row.compared.verdict == "different"


def _gathered(
    night: Night,
    measured: Iterable[Measured],
    kinds: tuple[Kind, ...],
    wanted: Callable[[Key, str], bool] = lambda *_: True,
) -> tuple[list[SideRow], dict[Key, tuple[CellOnDevice, ...]]]:
    """The blocks of these waves as rows of one night on each device, their rounds one after the other."""
    parts = {part.name: part for part in night.parts}
    rows: list[SideRow] = []
    cells: dict[Key, dict[CellOnDevice, None]] = {}
    looks: Counter[Key] = Counter()
    first_round: dict[str, int] = {}
    for one in sorted((one for one in measured if one.wave.kind in kinds), key=lambda one: one.wave.number):
        part = parts[one.wave.part]
        start = first_round.get(part.name, 0)
        first_round[part.name] = start + one.wave.blocks
        seen: set[Key] = set()
        began = len(rows)
        for cell_id, blocks in _by_cell(one.blocks).items():
            found = rows_of(map(brief_of, blocks), one.cells, part.sampling.mode, watched=part.sampling.is_watched)
            for row in alike(found, part):
                key = _key(part.name, row)
                cells.setdefault(key, {})[row.device, cell_id] = None
                seen.add(key)
                figures = row.figures(partial(_is_asked, night, partial(wanted, key)))
                its_night, turn = f"{night.night_id}/{row.device}", start + row.round
                options = {**row.options, PART: part.name}
                rows.append(replace(row, night=its_night, round=turn, options=options, **figures))
        if one.wave.kind == "first":
            excluded = alike(excluded_rows(one.exclusions, rows[began:]), part)
            rows += [replace(row, options={**row.options, PART: part.name}) for row in excluded]
        looks.update(seen)
    if "more" in kinds:
        rows = [replace(row, look=looks[_key(str(row.options[PART]), row)]) for row in rows]
    return rows, {key: tuple(found) for key, found in cells.items()}


def _is_asked(night: Night, wanted: Callable[[str], bool], name: str) -> bool:
    return (not night.suite.metrics or name.partition("/")[0] in night.suite.metrics) and wanted(name)


def _by_cell(blocks: Iterable[BlockFigures]) -> dict[str, list[BlockFigures]]:
    found: dict[str, list[BlockFigures]] = {}
    for block in blocks:
        if block.role == "work":
            found.setdefault(block.cell_id, []).append(block)
    return found


def _compared(night: Night, rows: list[SideRow]) -> list[tuple[Key, Compared]]:
    """Judged as one table; the options that only told parts and sides apart are gone from the rows."""
    of_side = {side: [row for row in rows if row.options.get(SIDE.name) == side] for side in (BASELINE, CANDIDATE)}
    if not all(of_side.values()):
        first, second = ([unsided(row) for row in of_side[side]] for side in (BASELINE, CANDIDATE))
    else:
        first, second = sides_of(rows, SIDE.name, BASELINE, CANDIDATE)
    found = []
    for each in compare(first, second, Rules(margins=night.suite.margins)):
        options = {name: text for name, text in each.options.items() if name not in (PART, SIDE.name)}
        plain = replace(each, options=options)
        found.append((_key(each.options[PART], plain), plain))
    return found


def unsided(row: SideRow) -> SideRow:
    """Return a row without the option that tells its side."""
    options = {name: value for name, value in row.options.items() if name != SIDE.name}
    return replace(row, options=options)


def _key(part: str, row: SideRow | Compared) -> Key:
    own = {name: value for name, value in row.options.items() if name not in (SIDE.name, PART)}
    options = frozenset((name, axis_value_text(name, value)) for name, value in own.items())
    return Key(part, row.device, row.network, row.backend, row.precision, options)


def _name(row: Compared) -> str:
    """Return the metric's name in a block's figures."""
    return f"{row.metric}/{row.basis}" if row.basis else row.metric
