"""The content of a comparison beside its rows: counts, how to read it, provenance that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from orchestrator.analysis.comparison import METRICS, Compared, Rules
from orchestrator.model.device import Source
from orchestrator.report import wording

TITLES = {
    "worse": "Worse", "missing": "On one side only", "better": "Better", "unknown": "Unknown", "same": "Same",
    "unavailable": "Cannot be had",
}  # fmt: skip
"""Words of a row, in the order in which they are told, with the titles over such rows."""
RANKS = tuple(TITLES)


class Content(NamedTuple):
    """A comparison with the names of its sides."""

    a: str
    b: str
    rows: tuple[Compared, ...]
    rules: Rules = Rules()
    experiments: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The experiments of each side that the ledger has."""
    serials: frozenset[str] = frozenset()
    """The serials of the devices that they ran on: a row may be of a model, or of a pair of devices."""


def word(row: Compared) -> str:
    """The verdict, a difference with its direction; `unavailable` is what cannot be had."""
    if row.verdict == "missing" and not row.expected:
        return "unavailable"
    return row.verdict if row.verdict != "different" else "worse" if row.worse else "better"


def ordered(rows: Sequence[Compared]) -> list[Compared]:
    """Return rows with what is told first in front; else in their own order."""
    return sorted(rows, key=lambda row: RANKS.index(word(row)))


def fails(row: Compared, on: Collection[str]) -> bool:
    """Return whether a row is to stop a build. What only A lacks is new, and stops none."""
    if word(row) == "missing":
        return "missing" in on and row.missing_on != "A"
    return word(row) in on


def headline(content: Content) -> list[tuple[str, str]]:
    """Number of rows by verdict, as `(name, number)`."""
    counts = Counter(map(word, content.rows))
    told = [each for each in RANKS if counts[each] or each != "unavailable"]
    return [("rows", str(len(content.rows))), *((each, str(counts[each])) for each in told)]


def usable(content: Content) -> str:
    """The first line: `usable`, `usable with care`, `not usable`, and why."""
    counts, rows = Counter(map(word, content.rows)), len(content.rows)
    decided = counts["worse"] + counts["better"] + counts["same"]
    if not any(map(_on_both, content.rows)):
        return "not usable: nothing was measured on both sides"
    told = [
        f"{counts[each]} of {wording.counted(rows, 'row')} {'is' if counts[each] == 1 else 'are'} {each}"
        for each in ("unknown", "missing")
        if counts[each]
    ]
    return f"usable with care: {'; '.join(told)}" if told else f"usable: {wording.counted(decided, 'row')} decided"


def answer(content: Content) -> str:
    """The second line: in what B differs, metric by metric, or that nothing is proven."""
    told = []
    for metric in METRICS:
        own = [row for row in content.rows if row.metric == metric and _on_both(row)]
        for worse in (True, False):
            found = [row for row in own if row.verdict == "different" and row.worse is worse]
            if found:
                how = "worse" if worse else "better"
                where = f"{len(found)} of {wording.counted(len(own), 'row')}"
                ratios = [row.ratio for row in found if row.ratio is not None]
                times = wording.times(ratios, [row.interval for row in found])
                told.append(f"{metric.capitalize()} of B is {how} in {where}: {times} times A's.")
    return " ".join(told) or "No difference between A and B is proven."


def _on_both(row: Compared) -> bool:
    return row.ratio is not None or row.interval is not None or row.unresolved is not None


def notes(content: Content) -> list[str]:
    """Return what must be known to read the table."""
    return [*_how(content), *_provenance(content.rows)]


def _how(content: Content) -> Iterator[str]:
    rows, rules = content.rows, content.rules
    used = [name for name in METRICS if any(row.metric == name for row in rows)]
    margins = ", ".join(f"{name} {_share(rules.margin(name))}" for name in used)
    yield (
        "A, B: medians of blocks. Ratio: B over A, with its 95 % interval. Same: the interval lies within the "
        f"margin ({margins}). Different: beyond chance in a table of so many rows (Holm, {_share(rules.level)}). "
        "Unknown: neither; so many blocks more on each side would settle it 4 times in 5, if the ratio is as it seems."
    )
    methods = Counter(row.method for row in rows if row.method)
    if methods["paired"]:
        yield f"{wording.counted(methods['paired'], 'row is', 'rows are')} paired: both sides ran in the same rounds."
    if methods["nights"]:
        rows_word = wording.counted(methods["nights"], "row compares", "rows compare")
        yield f"{rows_word} nights: how much nights differ is measured."
    if methods["blocks"]:
        assumed = ", ".join(f"{name} {_share(rules.between_nights(name))}" for name in used if name != "accuracy")
        rows_word = wording.counted(methods["blocks"], "row has", "rows have")
        yield (
            f"{rows_word} too few nights to measure how much nights differ. Assumed is a standard "
            f"deviation of {assumed}. Five nights in all measure it, and sides in one night do not need it."
        )
    if any(row.source in (Source.VIRTUAL, Source.REPLAY) for row in rows):
        yield "VIRTUAL and REPLAY rows were not measured on the phones that they are named after."


def _provenance(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield what differs, each once, with how many rows it is said of."""
    found = Counter((name, *sides) for row in rows for name, sides in row.differs.items())
    for (name, a, b), count in found.most_common(MOST_DIFFERENCES):
        rows_word = "all rows" if count == len(rows) else f"{count} of {wording.counted(len(rows), 'row')}"
        yield f"{name} differs in {rows_word}: A {_cut(a)}, B {_cut(b)}"
    if len(found) > MOST_DIFFERENCES:
        yield f"... {len(found) - MOST_DIFFERENCES} more differences of provenance: each row of --json has its own"


MOST_DIFFERENCES = 12
LONGEST = 90


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _share(value: float) -> str:
    return f"{100 * value:g} %"


def device(row: Compared) -> str:
    """Return the device's name, with what is no phone in capitals."""
    told = wording.source_word(Source(row.source))
    return f"{row.device} {told}" if told.isupper() else row.device


def cell(row: Compared, unsaid: Collection[tuple[str, str]] = ()) -> str:
    """Network, backend, precision and options. `unsaid`: options that stand elsewhere."""
    options = "".join(f" {name}={value}" for name, value in row.options.items() if (name, value) not in unsaid)
    return f"{row.network} {row.backend} {row.precision}{options}"
