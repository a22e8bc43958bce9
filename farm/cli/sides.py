"""Read the sides of a comparison: experiments of the ledger, runs before the newest, saved baselines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.errors import NoData, UnknownName

from .farm_access import LATEST, find_measured, labels_of, open_ledger, settings_of

if TYPE_CHECKING:
    from orchestrator.analysis.comparison import SideRow
    from orchestrator.config import Settings
    from orchestrator.ledger import ExperimentRow, Ledger

_EARLIER = re.compile(r"(?P<name>.+)~(?P<first>\d+)(?:-(?P<last>\d+))?")


class Side(NamedTuple):
    """What stands on one side."""

    name: str
    experiments: tuple[str, ...]
    rows: list[SideRow]
    kept: tuple[str, ...]
    """Those of its experiments that the ledger has."""
    serials: frozenset[str]
    """Of the devices of these."""


def read_sides(state: Path | None, texts: Iterable[str]) -> list[Side]:
    """Each text: names by commas; of each an id, a name, `latest`, one of these with `~N` (the run N before the newest)
    or `~M-N`, or a file. The ledger is only opened where a name is no file."""
    with ExitStack() as stack:
        settings = settings_of(state)
        opened: list[Ledger] = []

        def ledger() -> Ledger:
            if not opened:
                opened.append(stack.enter_context(open_ledger(settings)))
            return opened[0]

        return [_side(text, settings, ledger) for text in texts]


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
        for row in _named(ledger(), name):
            experiments.append(row.id)
            kept.append(row.id)
            found = _rows(settings, ledger(), row)
            serials |= {each.serial for each in found}
            rows += found
    if not rows:
        raise NoData(f"{text}: no block of it is over", remedy="wait for it: `farm watch`")
    return Side(text, tuple(experiments), rows, tuple(kept), frozenset(serials))


def _named(ledger: Ledger, name: str) -> list[ExperimentRow]:
    match = _EARLIER.fullmatch(name)
    if match is None:
        return [find_measured(ledger, name)]
    own = [key for key, told in ledger.experiment_names().items() if match["name"] in (told, LATEST)][::-1]
    first = int(match["first"])
    wanted = range(first, int(match["last"] or first) + 1)
    if not wanted or wanted[-1] >= len(own):
        told = f"{len(own)} runs of {match['name']!r}" if own else f"no experiment {match['name']!r}"
        raise UnknownName(
            f"{name}: there are {told} in the ledger", remedy="~1 is the run before the newest, ~1-10 the ten before it"
        )
    return [ledger.experiment(own[number]) for number in wanted]


def _rows(settings: Settings, ledger: Ledger, row: ExperimentRow) -> list[SideRow]:
    from orchestrator.analysis.comparison import alike, answers_of, rows_of

    cells, labels = ledger.cells(row.id), labels_of(settings, row.experiment)
    answers = answers_of(ledger.figures(row.id, ["predictions"]), labels) if labels else {}
    rows = rows_of(ledger.briefs(row.id), cells, row.experiment.sampling.mode, answers)
    return alike(rows, row.experiment)
