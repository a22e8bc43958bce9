"""What a comparison has to say beside its rows: counts, how to read it, provenance that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from orchestrator.analysis.comparison import METRICS, Compared, Rules
from orchestrator.model.device import Source
from orchestrator.report import wording

FailOn = Literal["worse", "missing", "better", "unknown"]
RANKS = ("worse", "missing", "better", "unknown", "same")
"""Words of a row, in the order in which they are told."""


class Content(NamedTuple):
    """A comparison with the names of its sides."""

    a: str
    b: str
    rows: tuple[Compared, ...]
    rules: Rules = Rules()
    experiments: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Of each side, those that the ledger has."""
    serials: frozenset[str] = frozenset()
    """Of the devices that they ran on: a row may be of a model, or of a pair of devices."""


def word(row: Compared) -> str:
    """The verdict, a difference with its direction."""
    return row.verdict if row.verdict != "different" else "worse" if row.worse else "better"


def ordered(rows: Sequence[Compared]) -> list[Compared]:
    """What is told first comes first; else in their own order."""
    return sorted(rows, key=lambda row: RANKS.index(word(row)))


def fails(row: Compared, on: Collection[str]) -> bool:
    """Whether a row is to stop a build. What only A lacks is new, and stops none."""
    if row.verdict == "missing":
        return "missing" in on and row.missing_on != "A"
    return word(row) in on


def headline(content: Content) -> list[tuple[str, str]]:
    """Number of rows by verdict, as `(name, number)`."""
    counts = Counter(map(word, content.rows))
    names = {"worse": "worse", "missing": "on one side only", "better": "better", "unknown": "unknown", "same": "same"}
    return [("rows", str(len(content.rows))), *((names[each], str(counts[each])) for each in RANKS)]


def notes(content: Content) -> list[str]:
    """What must be known to read the table."""
    return [*_how(content), *_provenance(content.rows)]


def _how(content: Content) -> Iterator[str]:
    rows, rules = content.rows, content.rules
    used = [name for name in METRICS if any(row.metric == name for row in rows)]
    margins = ", ".join(f"{name} {_share(rules.margin(name))}" for name in used)
    yield (
        "A, B: geometric means of blocks. Ratio: B over A, with its 95 % interval. Same: the interval lies within the "
        f"margin ({margins}). Different: beyond chance in a table of so many rows (Holm, {_share(rules.level)}). "
        "Unknown: neither; so many blocks more on each side would settle it 4 times in 5, if the ratio is as it seems."
    )
    methods = Counter(row.method for row in rows if row.method)
    if methods["paired"]:
        yield f"{methods['paired']} rows are paired: both sides ran in the same rounds of a night."
    if methods["nights"]:
        yield f"{methods['nights']} rows compare nights: how much nights differ is measured."
    if methods["blocks"]:
        assumed = ", ".join(f"{name} {_share(rules.between_nights(name))}" for name in used if name != "accuracy")
        yield (
            f"{methods['blocks']} rows have too few nights to measure how much nights differ. Assumed is a standard "
            f"deviation of {assumed}. Five nights in all measure it, and sides in one night do not need it."
        )
    if any(row.source in (Source.VIRTUAL, Source.REPLAY) for row in rows):
        yield "VIRTUAL and REPLAY rows were not measured on the phones that they are named after."


def _provenance(rows: Sequence[Compared]) -> Iterator[str]:
    """What differs, each once, with how many rows it is said of."""
    found = Counter((name, *sides) for row in rows for name, sides in row.differs.items())
    for (name, a, b), count in found.most_common(MOST_DIFFERENCES):
        rows_word = "all rows" if count == len(rows) else f"{count} of {len(rows)} rows"
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
    """With what is no phone in capitals."""
    told = wording.source_word(Source(row.source))
    return f"{row.device} {told}" if told.isupper() else row.device


def cell(row: Compared) -> str:
    options = "".join(f" {name}={value}" for name, value in row.options.items())
    return f"{row.network} {row.backend} {row.precision}{options}"
