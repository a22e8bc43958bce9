"""The parts of a report that compare: backends, a GPU with the CPU by size, and ours with what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import get_args

from orchestrator.analysis.comparison.backends import Counting, PaysFrom, SideBySide, side_by_side
from orchestrator.analysis.comparison.backends import pays_from as found_pays_from
from orchestrator.analysis.reproduction import Beside, Verdict
from orchestrator.model.device import OURS, Api, Source

from . import wording
from .content import Content
from .parts.answer import pairs_of, way_name, ways_of
from .section import Column, Section


def backends(content: Content) -> Section:
    """Medians of the same work by several backends of a device, or several engines."""
    rows, names = _rows(content), wording.naming(content.summaries)
    used = ways_of(rows)
    if not set(used) <= set(Api):
        return _engines(rows, used, names)
    pairs = pairs_of(used)
    columns = (
        Column("device"), Column("configuration"), *(Column(f"{way} ms", True) for way in used),
        *(Column(f"speed-up of\n{way_name(one, used)} over {way_name(other, used)}", True, other == Api.CPU)
          for other, one in pairs),
    )  # fmt: skip
    note = (
        "Medians of the same work on one device. Speed-up: how many times as fast; below one it is slower. It is the "
        "quotient of the two medians beside it, with the 95 % interval that `farm compare --sides backend=...` tells."
    )
    texts = tuple(
        (
            *_place(row, names),
            *(wording.ms(row.ms[way]) if way in row.ms else "" for way in used),
            *(_speed_up(row, one, other) for other, one in pairs),
        )
        for row in rows
    )
    return Section("backends", "Backends side by side", note, columns, texts)


def _engines(rows: Sequence[SideBySide], used: Sequence[str], names: wording.Naming) -> Section:
    """A row for each engine and backend: there may be many."""
    over = {other: one for other, one in pairs_of(used) if other not in set(Api)}
    texts = tuple(
        (
            *_place(row, names), way_name(way, used), wording.ms(ms),
            _speed_up(row, over[way], way) if way in over else "",
        )
        for row in rows
        for way, ms in sorted(row.ms.items(), key=itemgetter(1))
    )  # fmt: skip
    note = (
        "Medians of the same work on one device, the fastest first. Speed-up: how many times as fast our own engine is "
        "on the same backend, the quotient of the two medians, with the 95 % interval of `farm compare`."
    )
    heads = ("device", "configuration", "engine")
    columns = (*map(Column, heads), Column("median ms", True), Column(f"speed-up\nof {OURS.name}", True))
    return Section("backends", "Engines side by side", note, columns, texts)


def _place(row: SideBySide, names: wording.Naming) -> tuple[str, str]:
    rest = f"{row.workload} {row.rest}" if names.workload else row.rest
    return _device(row.serial, row.source), wording.without(rest, names.shared)


def _speed_up(row: SideBySide, one: str, other: str) -> str:
    found = row.speed_up(one, other)
    return "" if found is None else wording.times_of(found)


def _rows(content: Content, counting: Counting = "inference") -> list[SideBySide]:
    return side_by_side(content.summaries, content.blocks, content.experiment.sampling.mode, counting)


def pays_from(content: Content) -> Section:
    """Study P's question, for each operation that ran at several sizes."""
    names = wording.naming(content.summaries)
    found = [
        (counting, one)
        for counting in get_args(Counting)
        for one in found_pays_from(_rows(content, counting))
        if one.over == Api.CPU or counting != "inference"  # others' times have their copies inside
    ]
    ways = [one.over for _, one in found]
    columns = (
        Column("device"), Column("operation"), Column("backend"), Column("over"), Column("time of"), Column("sizes"),
        Column("faster than the CPU"), Column("smallest", True), Column("largest", True),
    )  # fmt: skip
    rows = tuple(
        (
            _device(one.serial, one.source), wording.without(f"{one.operation} {one.rest}", names.shared), one.backend,
            way_name(one.over, ways), counting, f"{one.sizes[0]} to {one.sizes[-1]}", _from(one),
            wording.times_of(one.ratios[0]), wording.times_of(one.ratios[-1]),
        )
        for counting, one in found
    )  # fmt: skip
    note = (
        "From which size on a GPU backend is faster than the CPU, by our engine or another, at every larger size that "
        "was measured; and its speed over the CPU's at the smallest and at the largest size. With copies: writing the "
        "input and reading the output count too; with set-up: everything from a fresh process to its first result. "
        "Faster: the 95 % interval of the ratio leaves 1 out."
    )
    return Section("pays-from", "When the GPU pays", note, columns, rows)


def _from(one: PaysFrom) -> str:
    if one.lead_at == len(one.sizes):
        return "at none of them"
    if one.lead_at == 0:
        return f"from {one.sizes[0]} or less"
    before = one.ratios[one.lead_at - 1].interval
    unsure = before is None or before.high >= 1
    word = "not proven" if unsure else "not yet"
    return f"from {one.sizes[one.lead_at]}, {word} at {one.sizes[one.lead_at - 1]}"


def published(content: Content) -> Iterator[Section]:
    """Yield what the experiment's file has as published: how much of it ours reproduces, then table by table."""
    asked = content.experiment.published
    if asked is None:
        return
    note = f"{asked.note} Other devices, other days: figures of theirs, none of ours.".strip()
    title = f"Published, not measured here: {asked.read.source}"
    words = get_args(Verdict)
    found = content.reproduction
    counts = {} if found is None else found.counts
    rows = tuple(
        (_of(name), *(str(own.get(word, 0)) for word in words)) for name, own in sorted(counts.items(), key=_stands_in)
    )
    heads = (Column("device"), *(Column(word, True) for word in words))
    if not rows:
        heads, rows = (Column("beside ours"),), ((("nothing of it" if found is None else "no result yet"),),)
    yield Section("published", title, f"{note} {RULE}" if found else note, heads, rows, terminal_note=note)
    beside = () if found is None else found.beside
    for number, table in enumerate(dict.fromkeys(one.table for one in beside)):
        own_rows = [one for one in beside if one.table == table]
        yield _beside(f"published-{number}", table or "findings", own_rows)


def _stands_in(counted: tuple[str, object]) -> bool:
    """Return whether something stood in for the device; those that measured come first."""
    return counted[0].endswith((" virtual", " replay", " import"))


RULE = (
    "Ours has a 95 % interval, theirs a tolerance: 1.25 times a proportion, and never past half the way to no "
    "difference. Reproduced: the interval lies within. Different: it lies outside. Not decided: neither, or too few "
    "blocks. Not comparable: the reason is beside it. What was modelled from such figures, or played back, is counted "
    "nowhere."
)


def _beside(name: str, title: str, found: Sequence[Beside]) -> Section:
    theirs = "logged" if found[0].logged else "published"
    columns = (
        Column("device"), Column("row"), Column("column"), Column(theirs, True), Column("ours", True),
        Column("ratio", True), Column("verdict"), Column("because"), Column("our configuration", page_only=True),
    )  # fmt: skip
    rows = [
        (
            _of(f"{one.serial} {one.source}") + (" (the published model)" if one.same_model else ""),
            one.row, one.column,
            "" if one.published is None else f"{one.published:g} {one.unit}".strip(),
            "" if one.ours is None else f"{_figure(one.ours)} {one.unit}".strip(),
            "" if one.ratio is None else f"{one.ratio:.3g}", one.verdict, one.why, one.cell,
        )
        for one in found
    ]  # fmt: skip
    title = f"{theirs.capitalize()} and ours: {title}"
    if all(one.verdict == "not comparable" for one in found):  # said once, and not in each row
        reasons = {one.why for one in found}
        silent = {"verdict", "because"} if len(reasons) == 1 else {"verdict"}
        shown = [n for n, column in enumerate(columns) if column.name not in silent and any(row[n] for row in rows)]
        note = f"Nothing of it is compared: {reasons.pop()}." if len(reasons) == 1 else "Nothing of it is compared."
        texts = tuple(tuple(row[n] for n in shown) for row in rows)
        return Section(name, title, note, tuple(columns[n] for n in shown), texts, terminal_note=note)
    bad = frozenset(number for number, one in enumerate(found) if one.verdict == "different")
    return Section(name, title, "", columns, tuple(rows), bad)


def _figure(value: float) -> str:
    """Three digits, and never by a power of ten where a person would write the number."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def _of(name: str) -> str:
    """`phone-1 VIRTUAL`: a device with the source of its figures, as all tables word it; the source is always said."""
    serial, _, source = name.rpartition(" ")
    return f"{serial} {wording.source_word(Source(source))}" if serial else name


def _device(serial: str, source: Source) -> str:
    word = wording.source_word(source)
    return f"{serial} {word}" if word.isupper() else serial
