"""Read the sides of a comparison: experiments of the ledger, runs before the newest, saved baselines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from farm.access import LATEST, labels_of, open_ledger, settings_of
from farm.cli.measured import find_measured
from orchestrator.model.errors import NoData, UnknownName

if TYPE_CHECKING:
    from orchestrator.analysis.comparison import SideRow
    from orchestrator.ledger import ExperimentRow, Ledger
    from orchestrator.nightly import Night
    from orchestrator.system.config import Settings

_EARLIER = re.compile(r"(?P<name>.+)~(?P<first>\d+)(?:-(?P<last>\d+))?")


class Side(NamedTuple):
    """One side of a comparison."""

    name: str
    experiments: tuple[str, ...]
    rows: list[SideRow]
    kept: tuple[str, ...]
    """The side's experiments that the ledger has."""
    serials: frozenset[str]
    """The serials of these experiments' devices."""


def read_sides(state: Path | None, texts: Iterable[str]) -> list[Side]:
    """Each text: names by commas; of each an id, a name, `latest`, a suite, a night of one, a name with `~N` (the run N
    before the newest) or `~M-N`, or a file. The ledger is only opened where a name is no file."""
    with ExitStack() as stack:
        settings = settings_of(state)
        opened: list[Ledger] = []

        def ledger() -> Ledger:
            if not opened:
                opened.append(stack.enter_context(open_ledger(settings)))
            return opened[0]

        sides = [_side(text, settings, ledger) for text in texts]
        for each in opened:
            _name_times(sides, each)
        return sides


def _name_times(sides: Iterable[Side], ledger: Ledger) -> None:
    """Rename times in baselines of older versions: all are called `latency`; the ledger may know their mode."""
    from orchestrator.analysis.comparison import time_of

    there = ledger.experiment_names()
    for side in sides:
        known = [ledger.experiment(each).experiment for each in side.experiments if each in there]
        names = {time_of(each.sampling.mode, trains=each.workload.training is not None) for each in known}
        for row in side.rows if len(names) == 1 and names != {"latency"} else ():
            if row.time == "latency":
                (row.time,) = names
                row.values = {row.time if name == "latency" else name: value for name, value in row.values.items()}


def _side(text: str, settings: Settings, ledger: Callable[[], Ledger]) -> Side:
    experiments: list[str] = []
    kept: list[str] = []
    serials: set[str] = set()
    rows: list[SideRow] = []
    for name in filter(None, (each.strip() for each in text.split(","))):
        if Path(name).is_file() or name.endswith(".json"):
            from orchestrator.exchange import baselines

            baseline = baselines.read(Path(name))
            experiments += baseline.experiments
            rows += baseline.rows
            continue
        for ids, found in _named(settings, ledger(), name):
            experiments += ids
            kept += ids
            serials |= {each.serial for each in found}
            rows += found
    if not rows:
        raise NoData(f"{text}: no block of it is over", remedy="wait for it: `farm watch`")
    return Side(text, tuple(experiments), rows, tuple(kept), frozenset(serials))


def _named(settings: Settings, ledger: Ledger, name: str) -> Iterator[tuple[list[str], list[SideRow]]]:
    """Yield, for each run that a name means (of an experiment, else of a suite), its experiments and its blocks."""
    match = _EARLIER.fullmatch(name)
    told, first = (match["name"], int(match["first"])) if match else (name, 0)
    last = int(match["last"] or first) if match else first
    names = ledger.experiment_names()
    own = [key for key, each in names.items() if told in (each, key, LATEST)][::-1]
    nights = [] if own else _nights(ledger, told)
    if match is None and not nights:
        row = find_measured(ledger, name)
        yield [row.id], _rows(settings, ledger, row)
        return
    if first > last or last >= len(own or nights):
        count = len(own or nights)
        runs = f"is 1 run of {told!r}" if count == 1 else f"are {count} runs of {told!r}"
        runs = runs if count else f"is no experiment and no suite {told!r}"
        remedy = "~1 is the run before the newest, ~1-10 the ten before it"
        raise UnknownName(f"{name}: there {runs} in the ledger", remedy=remedy)
    for number in range(first, last + 1):
        if own:
            row = ledger.experiment(own[number])
            yield [row.id], _rows(settings, ledger, row)
        else:
            from orchestrator.nightly.past import rows_of_night

            yield [wave.experiment_id for wave in nights[number].waves], rows_of_night(ledger, nights[number])


def _nights(ledger: Ledger, name: str) -> list[Night]:
    """Return the nights of a suite that measured something, the newest first; or the one with this id."""
    from orchestrator.nightly.past import nights_of

    suite, _, at = name.partition("@")
    found = nights_of(ledger, suite, None)[::-1]
    return [night for night in found if night.waves and (not at or night.night_id == name)]


def _rows(settings: Settings, ledger: Ledger, row: ExperimentRow) -> list[SideRow]:
    from orchestrator.report.compared.gathering import side_rows

    return side_rows(ledger, row, labels_of(settings, row.experiment))
