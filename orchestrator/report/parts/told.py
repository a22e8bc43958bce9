"""The parts of a report that follow from the declarations of quantities: a column each, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analysis.statistics import QUANTITIES, Summary, told_of
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

TOKENS_NOTE = (
    "Tokens of a prompt over the time to the first token of its answer; tokens behind that one over the time from "
    "it to the last. Of `p99` so many times from one token to the next are shorter. Energies are net of the idle "
    f"power, by the first source. Medians over blocks. {wording.LEVELS}."
)


def tokens(summaries: Sequence[Summary]) -> Section:
    """Prompt and generation of language models, each with its interval."""
    return _section("tokens", "Tokens of language models", TOKENS_NOTE, summaries)


def further(summaries: Sequence[Summary]) -> Section:
    """The quantities that no other part tells."""
    names = names_of("further", summaries)
    note = " ".join(f"`{name}`: {QUANTITIES[name].says(wording.sample(summaries))}" for name in names)
    return _section("further", "Further quantities", f"{note} Medians over blocks. {wording.LEVELS}.", summaries)


def names_of(part: str, summaries: Sequence[Summary]) -> list[str]:
    """Return the quantities of a part that any of the results has, as they are declared."""
    found = {told.metric for summary in summaries for told in told_of(summary)}
    return [name for name, each in QUANTITIES.items() if name in found and each.table == part]


def columns(names: Sequence[str]) -> Iterator[Column]:
    """Yield two for each quantity: itself and its interval, where it has one."""
    for name in names:
        of = QUANTITIES[name]
        yield Column(of.column or (name if of.unit in wording.WITH_UNIT else of.field(name).replace("_", " ")), True)
        if of.has_interval:
            yield Column("interval", True, not of.wide)


def texts(summary: Summary, names: Sequence[str]) -> Iterator[str]:
    """Yield a result's texts for these columns; of several sources of power the first one's."""
    told = {each.metric: wording.told(each) for each in reversed(told_of(summary))}
    for name in names:
        yield from told.get(name, ("", ""))[: 1 + QUANTITIES[name].has_interval]


def _section(name: str, title: str, note: str, summaries: Sequence[Summary]) -> Section:
    labels, names = wording.naming(summaries), names_of(name, summaries)
    rows = [(wording.device(each), wording.cell(each, labels), *texts(each, names)) for each in summaries]
    heads = (Column("device"), Column("configuration"), *columns(names))
    return Section(name, title, note, heads, tuple(row for row in rows if any(row[2:])))
