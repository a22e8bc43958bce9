"""The parts of a report on what networks predict: agreement with a base, examples missing, examples changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from orchestrator.analysis.agreement import Agreement, CellResult, Changed, Comparison, Gap, Row, rule_of_three
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

FEWEST_FOR_A_BOUND = 30
COLUMNS = (
    Column("device"), Column("configuration"), Column("examples", True), Column("top-1 %", True),
    Column("95 %", True, True), Column("top-5 %", True), Column("95 %", True, True), Column("agrees %", True),
    Column("95 % interval", True), Column("same five %", True, True), Column("changed", True),
    Column("right : wrong", True),
    Column("p", True, True),
)  # fmt: skip
RIGHT = (3, 4, 5, 6, 11, 12)
"""Columns that need labels. That of devices is left out where the title says it for all."""
NOTE = (
    "Agreement: the best class is that of the base, for the same example. Right : wrong: examples that became so by "
    "the change; p: exact McNemar test of the two. Intervals are Wilson's, over examples. With no change the bound in "
    "brackets is three over the number of examples."
)


def sections(agreements: Sequence[Agreement]) -> Iterator[Section]:
    """One table for each workload, and one of what is missing."""
    names = naming(agreements)
    for index, agreement in enumerate(agreements):
        if agreement.base is not None:
            yield _section(agreement, f"agreement-{index}", names)
    yield missing([row.result for agreement in agreements for row in agreement.rows], names)


def naming(agreements: Sequence[Agreement]) -> wording.Naming:
    return wording.naming(row.result for agreement in agreements for row in agreement.rows)


def name(result: CellResult, names: wording.Naming) -> str:
    """`cpu fp32 on A`."""
    return f"{wording.cell(result, names)} on {devices(result)}"


def devices(result: CellResult) -> str:
    """`A VIRTUAL`, `3 devices`: the serial or how many, and in capitals what is no device's own."""
    own = {0: "no device yet", 1: "".join(result.serials)}.get(len(result.serials), f"{len(result.serials)} devices")
    return " ".join([own, *(word for source in result.sources if (word := wording.source_word(source)).isupper())])


def _section(agreement: Agreement, section_name: str, names: wording.Naming) -> Section:
    assert agreement.base is not None
    rows = [_row(row, row.result == agreement.base, names) for row in agreement.rows]
    hidden = {*(() if agreement.labelled else RIGHT), *(() if len({row[0] for row in rows}) > 1 else (0,))}
    shown = [i for i, _ in enumerate(COLUMNS) if i not in hidden]
    return Section(
        name=section_name,
        title=f"Agreement of predictions with {name(agreement.base, names)}",
        note=NOTE,
        columns=tuple(COLUMNS[i] for i in shown),
        rows=tuple(tuple(row[i] for i in shown) for row in rows),
    )


def _row(row: Row, is_base: bool, names: wording.Naming) -> tuple[str, ...]:
    result, found = row.result, row.comparison
    accuracy = [
        text
        for share in (result.top1, result.top5)
        for text in ((wording.percent(share), wording.percent_interval(share)) if share else ("", ""))
    ]
    called = f"{wording.cell(result, names)}{' (base)' if is_base else ''}".strip()
    head = (devices(result), called, _examples(result, found), *accuracy)
    if found is None:
        return *head, *[""] * 6
    return (
        *head,
        wording.percent(found.same),
        wording.percent_interval(found.same),
        wording.percent(found.same_five) if found.same_five else "",
        _changed(found),
        "" if found.became_right is None else f"{found.became_right} : {found.became_wrong}",
        "" if found.mcnemar_p is None else f"{found.mcnemar_p:.2g}",
    )


def _examples(result: CellResult, found: Comparison | None) -> str:
    """`10000`, `900 of 1000`; with those that could be compared where these are fewer."""
    text = str(result.examples) if not result.missing else f"{result.examples} of {result.of}"
    return text if found is None or found.same.of == result.examples else f"{text}, {found.same.of} compared"


def _changed(found: Comparison) -> str:
    if found.changed or found.same.of < FEWEST_FOR_A_BOUND:
        return str(len(found.changed))
    return f"0 (< {_up(100 * rule_of_three(found.same.of))} %)"


def _up(percent: float) -> str:
    """Two digits, never less than it is: it is a bound."""
    step: float = 10.0 ** (floor(log10(percent)) - 1)
    return f"{ceil(round(percent / step, 6)) * step:.2g}"


def missing(results: Sequence[CellResult], names: wording.Naming) -> Section:
    """Examples for which a result predicts nothing, or nothing yet."""
    rows = tuple(
        (
            devices(one), wording.cell(one, names), str(one.missing), str(one.failed),
            str(one.missing - one.failed), wording.few([_places(gap) for gap in one.gaps]),
        )
        for one in results if one.missing
    )  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("missing", True), Column("not ok", True),
        Column("not run yet", True), Column("which"),
    )  # fmt: skip
    note = "Not ok: their block did not go well. Nothing is said of missing examples: comparisons are over the others."
    bad = frozenset(range(len(rows)))
    return Section("missing-examples", "Examples without a prediction", note, columns, rows, bad)


def _places(gap: Gap) -> str:
    return str(gap.first) if gap.first == gap.last else f"{gap.first}-{gap.last}"


class Change(NamedTuple):
    """An example that a result changes."""

    result: CellResult
    changed: Changed


def changes(agreements: Sequence[Agreement]) -> list[Change]:
    """Return the changes of all results; those of which the base was surest first."""
    found = [
        Change(row.result, one)
        for agreement in agreements
        for row in agreement.rows
        if row.comparison
        for one in row.comparison.changed
    ]
    return sorted(found, key=lambda change: -change.changed.base_margin)


def changed(found: Sequence[Change], most: int, names: wording.Naming) -> Section:
    """The first of the changes, example by example."""
    rows = tuple(
        (
            devices(result), wording.cell(result, names), str(one.example), str(one.base_class), str(one.this_class),
            "" if one.label is None else str(one.label), _verdict(one), f"{one.base_margin:.3g}", f"{one.margin:.3g}",
        )
        for result, one in found[:most]
    )  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("example", True), Column("base's class", True),
        Column("this class", True), Column("label", True), Column("change"), Column("base's margin", True),
        Column("margin", True),
    )  # fmt: skip
    note = "Margin: the best score less the second best. Examples are counted from 0; the base's surest come first."
    return Section("changed", f"{min(most, len(found))} of {len(found)} changes", note, columns, rows)


def _verdict(one: Changed) -> str:
    if one.label is None:
        return ""
    return {one.this_class: "became right", one.base_class: "became wrong"}.get(one.label, "both wrong")
