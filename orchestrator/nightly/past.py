"""Read the nights of a suite, or the runs of an experiment, from the ledger: what a history is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from orchestrator.analysis.comparison import Compared, SideRow, alike, excluded_rows, rows_of
from orchestrator.analysis.history import Figure, History, history, of_sides
from orchestrator.analysis.history import Night as Column
from orchestrator.analysis.history.series import facts_of
from orchestrator.ledger import Ledger, NightText
from orchestrator.ledger.packed import readable_rows
from orchestrator.model.axes import SIDE, axis_value_text
from orchestrator.model.errors import FarmError, NoData, UnknownName
from orchestrator.model.experiment import BASELINE, CANDIDATE, Experiment

from .night import Night, NightRow, Wave
from .table import PART, unsided

MOST_NIGHTS = 60
Facts = dict[tuple[str, str], tuple[dict[str, str], dict[str, str]]]
"""Device and cell -> what ran on side A, and on side B."""


def past(ledger: Ledger, name: str, last: int = MOST_NIGHTS) -> History:
    """The history of a suite, else of the experiments of a name; of its last nights. Raises NoData, UnknownName."""
    nights = nights_of(ledger, name, last)
    return of_suite(ledger, name, nights) if nights else _of_experiment(ledger, name, last)


def nights_of(ledger: Ledger, suite: str, last: int | None = MOST_NIGHTS) -> list[Night]:
    """Its nights that have been judged, the oldest first."""
    return [night for night in reversed(readable_nights(ledger.nights.of(suite, limit=last))) if night.is_judged]


def readable_nights(texts: Iterable[NightText]) -> list[Night]:
    """Return the nights that can be read; the log tells of the others."""
    return readable_rows("night", texts, lambda text: Night.model_validate_json(text.body))


def rows_of_night(ledger: Ledger, night: Night) -> list[SideRow]:
    """Its blocks of all waves, those of the repetition too, as of one night on each device, with their sides as they
    are: rounds one after the other. Of several parts each row says which one."""
    parts = {part.name: part for part in night.parts}
    rows: list[SideRow] = []
    begun: Counter[str] = Counter()
    for wave in sorted(night.waves, key=lambda wave: wave.number):
        first = begun[wave.part]
        begun[wave.part] += wave.blocks
        part = {PART: wave.part} if len(parts) > 1 else {}
        with suppress(UnknownName):
            for row in _rows_of_wave(ledger, wave, parts[wave.part]):
                night_id, turn = f"{night.night_id}/{row.device}", first + row.round
                rows.append(replace(row, night=night_id, round=turn, options={**row.options, **part}))
    return rows


def of_suite(ledger: Ledger, suite: str, nights: Sequence[Night]) -> History:
    """Return a suite's history; what ran is read only of nights in which something changed, and those before them."""
    columns = [Column(id=night.night_id, at=night.due_at) for night in nights]
    figures = [figure for night in nights for figure in figures_of(night)]
    first = history(suite, columns, figures)
    places = {column.id: place for place, column in enumerate(first.nights)}
    changed = {place for _, change in first.changes for place in _since(figures, change.night, places)}
    if not changed:
        return first
    facts = {nights[place].night_id: _facts(ledger, nights[place]) for place in changed}
    return history(suite, columns, [_with_facts(figure, facts.get(figure.night)) for figure in figures])


def figures_of(night: Night) -> Iterator[Figure]:
    """The levels of both sides, as the night was judged."""
    parts = {row.part for row in night.rows}
    for row in night.rows:
        found = row.compared
        if found.a is None and found.b is None:
            continue
        yield Figure(
            night=night.night_id,
            device=found.device,
            source=found.source,
            cell=cell_of(row, with_part=len(parts) > 1),
            metric=found.metric,
            basis=found.basis,
            unit=found.unit,
            a=found.a,
            b=found.b,
        )


def cell_of(row: NightRow, *, with_part: bool) -> str:
    """Network, backend, precision and options; the part of the suite too, where it has several."""
    return f"{row.part}: {_cell(row.compared)}" if with_part else _cell(row.compared)


def _cell(row: SideRow | Compared) -> str:
    told = {name: axis_value_text(name, value) for name, value in sorted(row.options.items()) if name != SIDE.name}
    options = "".join(f" {name}={text}" for name, text in told.items())
    return f"{row.network} {row.backend} {row.precision}{options}"


def _since(figures: Sequence[Figure], night: str, places: dict[str, int]) -> set[int]:
    """The place of a night, and of the one before it that has figures."""
    place = places[night]
    before = {places[figure.night] for figure in figures if places[figure.night] < place}
    return {place, max(before, default=place)}


def _with_facts(figure: Figure, facts: Facts | None) -> Figure:
    if facts is None:
        return figure
    cell = figure.cell.rpartition(": ")[2]
    a, b = facts.get((figure.device, cell), ({}, {}))
    return figure.model_copy(update={"facts_a": a, "facts_b": b})


def _facts(ledger: Ledger, night: Night) -> Facts:
    """Return the facts of a night whose records are still there; nothing else."""
    parts = {part.name: part for part in night.parts}
    rows: dict[tuple[str, str], tuple[list[SideRow], list[SideRow]]] = {}
    for wave in night.waves:
        with suppress(FarmError):
            for row in _rows_of_wave(ledger, wave, parts[wave.part]):
                sides = rows.setdefault((row.device, _cell(row)), ([], []))
                sides[row.options.get(SIDE.name) == CANDIDATE].append(row)
    return {key: (facts_of(a), facts_of(b)) for key, (a, b) in rows.items()}


def _of_experiment(ledger: Ledger, name: str, last: int) -> History:
    ids = [key for key, told in ledger.experiment_names().items() if name in (told, key)][-last:]
    if not ids:
        raise UnknownName(f"there is no suite and no experiment {name!r}", remedy="`farm status` shows the experiments")
    columns, figures = [], []
    for experiment_id in ids:
        rows = list(_rows(ledger, experiment_id, ledger.experiment(experiment_id).experiment))
        for night, its_rows in _by_night(rows).items():
            columns.append(Column(id=night, at=min(row.started_at for row in its_rows)))
            a = [row for row in its_rows if row.options.get(SIDE.name, BASELINE) == BASELINE]
            b = [row for row in its_rows if row.options.get(SIDE.name) == CANDIDATE]
            figures += of_sides(night, [unsided(row) for row in a], [unsided(row) for row in b])
    if not figures:
        raise NoData(f"{name}: no block of it is over", remedy="wait for it: `farm watch`")
    return history(name, columns, figures)


def _by_night(rows: Sequence[SideRow]) -> dict[str, list[SideRow]]:
    """An experiment and, where its devices rested in between, the number of its night."""
    found: dict[str, list[SideRow]] = {}
    for row in rows:
        experiment_id, _, number = row.night.replace(f"/{row.device}/", "//", 1).partition("//")
        found.setdefault(experiment_id if number == "0" else f"{experiment_id}/{number}", []).append(row)
    return found


def _rows(ledger: Ledger, experiment_id: str, experiment: Experiment) -> list[SideRow]:
    briefs, cells, sampling = ledger.briefs(experiment_id), ledger.cells(experiment_id), experiment.sampling
    return alike(rows_of(briefs, cells, sampling.mode, watched=sampling.is_watched), experiment)


def _rows_of_wave(ledger: Ledger, wave: Wave, part: Experiment) -> list[SideRow]:
    """The rows of its blocks, and of what was excluded from it."""
    own = _rows(ledger, wave.experiment_id, part)
    return [*own, *alike(excluded_rows(ledger.experiment(wave.experiment_id).exclusions, own), part)]
