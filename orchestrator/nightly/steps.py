"""Decide what a night needs next. Pure: whoever reads the same night and the same ledger decides the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from orchestrator.model.base import content_hash
from orchestrator.spec.expansion.run_order import PERIOD

from .night import CellOnDevice, Kind, Night, NightRow, Wave

PATIENCE_S, PATIENCE = 300.0, 0.1
"""The wait for a phone that is away: so many seconds, and this share of the budget at most."""
FOR_MORE = 0.7
"""Share of the budget after which no further blocks begin: what changed has to be repeated, too."""


@dataclass(frozen=True)
class Begin:
    """Write these waves into the night: from then on they are to be submitted."""

    waves: tuple[Wave, ...]


@dataclass(frozen=True)
class Submit:
    """Put a wave's jobs into the ledger."""

    wave: Wave


@dataclass(frozen=True)
class Cancel:
    """Cancel jobs, or all open ones of an experiment."""

    targets: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Judge:
    """Write rows, missing devices and the outcome into the night."""


@dataclass(frozen=True)
class Tell:
    """Tell how it went; then it is over."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do now."""


@dataclass(frozen=True)
class Over:
    """Nothing to do ever."""


Step = Begin | Submit | Cancel | Judge | Tell | Wait | Over


@dataclass(frozen=True)
class Row:
    """A row of the night's table so far, with the cells that it is of."""

    row: NightRow
    cells: tuple[CellOnDevice, ...]


@dataclass(frozen=True)
class View:
    """The facts of a night from the ledger and the devices."""

    now: float
    submitted: frozenset[str] = frozenset()
    """Experiments of the night that the ledger has."""
    unfinished: tuple[str, ...] = ()
    """The submitted experiments that have open jobs."""
    stuck: tuple[str, ...] = ()
    """Open jobs of devices that are away, and have been for the patience."""
    ready: frozenset[str] = frozenset()
    """Serials of devices that may be given work."""
    probing: bool = False
    """True if a device is just being found out about."""
    table: Sequence[Row] = field(default=())
    """Once nothing is open: the rows so far, without the repetition's blocks."""


def next_step(night: Night, view: View) -> Step:
    """Return what to do now; done, it is asked again."""
    if night.is_judged:
        return Tell() if night.ended_at is None else Over()
    late = view.now >= night.ends_at
    if late and view.unfinished:
        return Cancel(view.unfinished, "the budget was over")
    waiting = [wave for wave in night.waves if not wave.refused and wave.experiment_id not in view.submitted]
    if late:
        return Judge()
    if waiting:
        return Submit(waiting[0]) if waiting[0].kind != "first" or _is_here(night, view) else Wait()
    if view.stuck:
        return Cancel(view.stuck, "its device was away")
    if view.unfinished:
        return Wait()
    waves = _more(night, view) or _repetition(night, view)
    return Begin(waves) if waves else Judge()


def patience_s(night: Night) -> float:
    """Return how long a device that is away is waited for."""
    return min(PATIENCE_S, PATIENCE * night.suite.budget)


def first_waves(night: Night) -> tuple[Wave, ...]:
    """Every cell of every part, once for each round."""
    return tuple(_wave(night, "first", part.name, night.suite.rounds) for part in night.parts)


def rounds_of(night: Night, part: str, cell: CellOnDevice) -> int:
    """Blocks of a cell on each side that were asked for so far, without the repetition's."""
    own = (wave for wave in night.waves if wave.part == part and wave.kind != "repeat")
    return sum(wave.blocks for wave in own if wave.cells is None or cell in wave.cells)


def _is_here(night: Night, view: View) -> bool:
    """Return whether devices need no more waiting: a farm that has just begun finds them one after the other."""
    assert night.began_at is not None
    if view.now >= night.began_at + patience_s(night):
        return True
    return bool(view.ready) and not view.probing and set(night.expected) <= view.ready


def _more(night: Night, view: View) -> tuple[Wave, ...]:
    """Further blocks of what is unknown, as many as it seems to need, and at most as many as it has."""
    assert night.began_at is not None
    if any(wave.kind == "repeat" for wave in night.waves):
        return ()
    if view.now >= night.began_at + FOR_MORE * (night.ends_at - night.began_at):
        return ()
    wanted: dict[str, dict[CellOnDevice, int]] = {}
    for each in view.table:
        needs = each.row.compared.needs_blocks
        if each.row.compared.verdict != "unknown" or needs is None:
            continue
        for cell in each.cells:
            if blocks := _further(night, each.row.part, cell, needs):
                cells = wanted.setdefault(each.row.part, {})
                cells[cell] = max(blocks, cells.get(cell, 0))
    return _waves(night, "more", {part: (_blocks(night, part, cells), cells) for part, cells in wanted.items()})


def _blocks(night: Night, part: str, cells: Mapping[CellOnDevice, int]) -> int:
    """Return the blocks of a wave, the same for its cells: what most of them is wanted, as far as each may have it."""
    return min(max(cells.values()), *(_left(night, part, cell) for cell in cells))


def _further(night: Night, part: str, cell: CellOnDevice, needs: int) -> int:
    whole = PERIOD * ceil(min(needs, rounds_of(night, part, cell)) / PERIOD)
    return min(max(whole, PERIOD), _left(night, part, cell))


def _left(night: Night, part: str, cell: CellOnDevice) -> int:
    """Rounds that it may still have, in whole periods of their order: a part of one favours a side."""
    return (night.suite.most_rounds - rounds_of(night, part, cell)) // PERIOD * PERIOD


def _repetition(night: Night, view: View) -> tuple[Wave, ...]:
    """Return waves that measure once more what changed, before it is told."""
    if any(wave.kind == "repeat" for wave in night.waves):
        return ()
    changed: dict[str, list[CellOnDevice]] = {}
    for each in view.table:
        if each.row.compared.verdict == "different":
            changed.setdefault(each.row.part, []).extend(each.cells)
    return _waves(night, "repeat", {part: (night.suite.rounds, cells) for part, cells in changed.items()})


def _waves(night: Night, kind: Kind, wanted: Mapping[str, tuple[int, Iterable[CellOnDevice]]]) -> tuple[Wave, ...]:
    return tuple(
        _wave(night, kind, part, blocks, tuple(sorted(set(cells)))) for part, (blocks, cells) in wanted.items()
    )


def _wave(night: Night, kind: Kind, part: str, blocks: int, cells: tuple[CellOnDevice, ...] | None = None) -> Wave:
    number = 1 + max((wave.number for wave in night.waves), default=-1)
    mark = content_hash({"night": night.night_id, "part": part})[:8]
    experiment_id = f"{part}-{mark}" + (f"-{number + 1}" if number else "")
    return Wave(kind=kind, part=part, experiment_id=experiment_id, number=number, blocks=blocks, cells=cells)
