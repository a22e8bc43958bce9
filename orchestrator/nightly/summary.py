"""The summary of a night, in plain text: what a person has to know first stands first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from orchestrator.analysis.comparison import Compared

from .night import Night, NightRow

MOST_ROWS = 20


def summary(night: Night) -> str:
    """Some lines; the first one is a subject."""
    return "\n".join((headline(night), *_lines(night)))


def headline(night: Night) -> str:
    """`nightly 2026-11-23 02:30: 1 worse, 2 unknown, 1 phone missing`, or that it did not run."""
    when = datetime.fromtimestamp(night.due_at).isoformat(" ", "minutes")
    head = f"{night.suite.name} {when}"
    if night.outcome is None:
        return f"{head}: under way"
    if night.outcome == "not_run":
        return f"{head}: DID NOT RUN"
    names = {"missing": "rows missing"}
    found = {word: count for word, count in counts(night).items() if count and word != "unavailable"}
    parts = [f"{count} {names.get(word, word)}" for word, count in found.items()]
    if night.missing:
        parts.append(f"{len(night.missing)} device{'s' * (len(night.missing) != 1)} missing")
    return f"{head}: {'PARTIAL, ' if night.outcome == 'partial' else ''}{', '.join(parts) or 'nothing was compared'}"


def counts(night: Night) -> dict[str, int]:
    """Rows by what is said of them."""
    words = [word_of(row) for row in night.rows]
    order = ("worse", "worse, not repeated", "better", "better, not repeated", "not confirmed", "unknown", "missing")
    return {word: words.count(word) for word in (*order, "same", "unavailable")}


def word_of(row: NightRow) -> str:
    """Return what is said of a row."""
    return f"{row.said}, not repeated" if row.compared.verdict == "different" and row.confirmed is None else row.said


def _lines(night: Night) -> Iterator[str]:
    yield from (f"  problem: {text}" for text in night.problems)
    yield from (f"  warning: {text}" for text in night.warnings)
    for each in night.missing:
        cells = f" ({each.cells} configurations)" if each.cells else ""
        yield f"  missing: {each.device}{cells}: {each.reason}"
    loud = [row for row in night.rows if row.said not in ("same", "unavailable")]
    order = {"different": 0, "missing": 1, "unknown": 2}
    loud.sort(key=lambda row: (order[row.compared.verdict], not row.compared.worse, row.part, row.compared.device))
    yield from (f"  {_line(row)}" for row in loud[:MOST_ROWS])
    if len(loud) > MOST_ROWS:
        yield f"  and {len(loud) - MOST_ROWS} rows more that are not the same"
    yield from (f"  not told: {each.to}: {each.error}" for each in night.told if each.error)


def _line(row: NightRow) -> str:
    found = row.compared
    options = "".join(f" {name}={value}" for name, value in sorted(found.options.items()))
    metric = " ".join(filter(None, (found.metric, found.basis)))
    cell = f"{found.device}: {found.network} {found.backend} {found.precision}{options}, {metric}"
    text = f"{word_of(row)}: {cell}"
    if change := _change(found):
        text += f": {change}"
    if row.repeated is not None and (again := _change(row.repeated)):
        text += f", repeated: {again}"
    return text + (f"; {found.reason}" if found.reason else "")


def _change(of: Compared) -> str:
    """`+5.1% (+4.2% to +6.0%)`; the interval alone where only that is told; `not resolved (needs 40 blocks)`."""
    if of.unresolved is not None:
        return str(of.unresolved)
    told = () if of.ratio is None else (f"{of.ratio - 1:+.1%}",)
    within = f"{of.interval.low - 1:+.1%} to {of.interval.high - 1:+.1%}" if of.interval else ""
    return " ".join((*told, f"({within})" if told and within else within)).strip()
