"""Set everything that an experiment's file has as published beside what its devices measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp

from orchestrator.analysis.agreement import Agreement
from orchestrator.analysis.comparison.backends import PaysFrom
from orchestrator.analysis.limits import Limit
from orchestrator.analysis.statistics import Mode
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.experiment import Finding, Published
from orchestrator.model.job import Cell

from .figure import Figure, OurDevice, figures_of
from .judgement import (
    CIRCULAR,
    Judged,
    Range,
    Verdict,
    around,
    expected,
    judge_all_same,
    judge_best,
    judge_by_memory,
    judge_crossing,
    judge_ratio,
)
from .ours import Finder, Ours, ratio


class Beside(Model):
    """One published figure, and what one of our devices has to set against it."""

    table: str
    """Its title; empty of a finding."""
    row: str
    column: str = ""
    metric: str
    unit: str = ""
    published_on: str = ""
    """The device; empty where it is not said."""
    published: float | None = None
    """None of a finding."""
    logged: bool = False
    """True if theirs is from the authors' own logs, which the text does not have."""
    serial: str
    """Ours."""
    source: str = ""
    same_model: bool = False
    """True if ours is of the model that was published, real or virtual."""
    ours: float | None = None
    """Our figure in the published unit."""
    cell: str = ""
    ratio: float | None = None
    """Ours over theirs."""
    verdict: str
    """A `Verdict`, or one of `CIRCULAR`, which count in no score."""
    why: str


class Reproduction(Model):
    """Everything that was published beside everything of ours that it can be set against."""

    beside: tuple[Beside, ...]
    counts: dict[str, dict[Verdict, int]]
    """The figures and findings of each verdict, by our device and source."""


def reproduce(
    published: Published | None,
    blocks: Iterable[BlockFigures],
    cells: Mapping[str, Cell],
    mode: Mode = "steady",
    *,
    pays: Sequence[PaysFrom] = (),
    agreements: Sequence[Agreement] = (),
    limits: Sequence[Limit] = (),
) -> Reproduction | None:
    """None where nothing with keys is published.

    A device of a published model is set beside that one's figures only, any other beside everything. `pays`: for
    findings of a crossover. `agreements`: for predictions that stay the same. `limits`: for those of devices.
    """
    if published is None or not (published.tables or published.findings):
        return None
    finder = Finder(blocks, cells, mode, limits)
    judge = _Judge(published, finder, cells, agreements, pays)
    found = [each for device in finder.devices for each in (*judge.figures(device), *judge.findings(device))]
    counts: dict[str, Counter[Verdict]] = {f"{one.serial} {one.source}": Counter() for one in finder.devices}
    for each in found:
        if each.verdict not in CIRCULAR and not each.logged:
            counts[f"{each.serial} {each.source}"][each.verdict] += 1  # type: ignore[index]
    return Reproduction(beside=tuple(found), counts={name: dict(own) for name, own in counts.items()})


class _Judge:
    def __init__(
        self,
        published: Published,
        finder: Finder,
        cells: Mapping[str, Cell],
        agreements: Sequence[Agreement],
        pays: Sequence[PaysFrom],
    ) -> None:
        self._published, self._finder, self._cells = published, finder, cells
        self._agreements, self._pays = agreements, pays

    def figures(self, device: OurDevice) -> Iterator[Beside]:
        study = self._published.read
        named = device.named_in(study)
        own = [one for one in figures_of(self._published) if not named or one.device in (named, "")]
        for figure in own:
            ours, judged = self._figure(figure, device, own)
            value = None if ours.value is None else figure.in_unit(ours.value)
            others = self._others(figure.place.over, device)[:1]
            verdict = _circular(figure.metric, device, *others) if value is not None else ""
            why = "; ".join(filter(None, (CIRCULAR.get(verdict, judged.why), _against(figure.contradiction(study)))))
            yield Beside(
                table=figure.title, row=_row(figure), column=figure.column, metric=figure.metric, unit=figure.unit,
                published_on=figure.device, published=figure.value, logged=figure.part in study.logs,
                serial=device.serial, source=device.source, same_model=figure.device == (named or None),
                ours=value, cell=ours.cell, ratio=None if value is None or not figure.value else value / figure.value,
                verdict=verdict or judged.verdict, why=why,
            )  # fmt: skip

    def findings(self, device: OurDevice) -> Iterator[Beside]:
        for finding in self._published.findings:
            if "device" in finding.of and not device.is_a(str(finding.of["device"]), self._published.read):
                continue
            for other in self._others(finding.over, device):
                ours, judged = self._finding(finding, device, other)
                verdict = _circular(finding.metric, device, other) if judged.verdict != "not comparable" else ""
                yield Beside(
                    table="", row=finding.text, metric=finding.metric, serial=device.serial, source=device.source,
                    cell=ours.cell, verdict=verdict or judged.verdict, why=CIRCULAR.get(verdict, judged.why),
                )  # fmt: skip

    def _others(self, over: Mapping[str, object], device: OurDevice) -> list[OurDevice | None]:
        """Return what a device is compared with: itself, or those that `over` names; None where there is none."""
        if "device" not in over:
            return [device]
        name, study = str(over["device"]), self._published.read
        return [each for each in self._finder.devices if each != device and each.is_a(name, study)] or [None]

    def _figure(self, figure: Figure, device: OurDevice, line: Sequence[Figure]) -> tuple[Ours, Judged]:
        metric, keys = figure.metric, figure.keys
        if metric == "best":
            best = self._finder.best(device, keys, figure.table.axis)
            if isinstance(best, str):
                return _nothing(best)
            return Ours(float(best.best)), judge_best(figure.value, best)
        if metric == "same_predictions":
            return self._same(figure, device)
        if figure.place.over:
            beside = self._others(figure.place.over, device)[0]
            if beside is None:
                return _nothing(f"no other {figure.place.over['device']} to compare it with in this experiment")
            own, over = self._finder.gain(metric, device, keys, {**keys, **figure.place.over}, beside)
            if own.value is None or over.value is None:
                return _nothing(own.why_not or f"what it is over: {over.why_not}")
            wanted = around(figure.theirs, figure.table.tolerance)
            where = "" if beside == device else f" on {beside.serial}"
            gain = Ours(over.value / own.value, cell=f"{own.cell} over {over.cell}{where}")
            return gain, _proportion(own, over, wanted, figure.theirs, "")
        ours = self._finder.measured(metric, device, keys)
        if ours.value is None:
            return _nothing(ours.why_not)
        base = next((one for one in line if is_base(one, figure)), None)
        if base is None or base is figure:
            is_its_phone = device.source == Source.PHONE and figure.device == device.named_in(self._published.read)
            if ours.blocks and figure.device and is_its_phone:
                theirs = figure.theirs
                there = Ours(theirs, [each._replace(value=theirs) for each in ours.blocks])
                return ours, _proportion(there, ours, around(1, figure.table.tolerance))
            where = "another device" if figure.device else "a device that the text does not name"
            return ours, Judged("not comparable", f"the size of a figure of {where} says nothing")
        other = self._finder.measured(metric, device, base.keys)
        if other.value is None:
            return ours, Judged("not comparable", f"{figure.table.base}: {other.why_not}")
        theirs = figure.value / base.value
        wanted = around(theirs, figure.table.tolerance)
        return ours, _proportion(other, ours, wanted, theirs, f" {figure.table.base}")

    def _same(self, figure: Figure, device: OurDevice) -> tuple[Ours, Judged]:
        """A set that several devices shared out is judged once, with the first of them."""
        for row in (row for one in self._agreements for row in one.rows):
            cell = self._cells.get(row.result.cell_id)
            fits = cell is not None and str(cell.precision) == figure.keys.get("precision")
            if fits and cell and row.comparison and device.serial in row.result.serials:
                if device.serial != row.result.serials[0]:
                    return _nothing(f"counted with {row.result.serials[0]}")
                same = row.comparison.same
                return Ours(float(same.count), cell=cell.label), judge_all_same(same.count, same.of)
        return _nothing("no such predictions, or nothing to compare them with")

    def _finding(self, finding: Finding, device: OurDevice, other: OurDevice | None) -> tuple[Ours, Judged]:
        if not finding.expect:
            return _nothing("told in words; nothing that this experiment measures shows it")
        if finding.expect == "crosses":
            wanted = (finding.operation, str(finding.of.get("backend")), device.serial)
            found = [one for one in self._pays if (one.operation, one.backend, one.serial) == wanted]
            return Ours(None), judge_crossing(found)
        if finding.expect == "by_memory":
            kind = device.circular("limit")
            alike = [each for each in self._finder.devices if each.circular("limit") == kind]
            known = {each: bounds for each in alike if (bounds := self._finder.bounds(each))}
            own = known.pop(device, None)
            if own is None:
                return _nothing("no limit is known yet")
            return Ours(own.ran), judge_by_memory(own, [*known.values()])
        if other is None:
            return _nothing(f"no other {finding.over['device']} to compare it with in this experiment")
        of = self._finder.measured(finding.metric, device, finding.of)
        over = self._finder.measured(finding.metric, other, {**finding.of, **finding.over})
        if finding.than is not None:
            over = Ours(finding.than, [each._replace(value=finding.than) for each in of.blocks])
        if of.value is None or over.value is None:
            return _nothing(of.why_not or f"what it is over: {over.why_not}")
        named = of if other == device else of._replace(cell=f"{of.cell} over {other.serial}")
        return named, _proportion(over, of, expected(finding.expect, finding.times))


def _proportion(base: Ours, own: Ours, wanted: Range, theirs: float | None = None, over: str = "") -> Judged:
    """Ours over what it is compared with, against what agrees with the publication."""
    quotient = (own.value or 0) / (base.value or 1)
    agree = " to ".join(f"{exp(edge):.3g}" for edge in wanted)
    there = "" if theirs is None else f"{theirs:.3g} times{over} there, {agree} agree; "
    return judge_ratio(ratio(base, own), wanted, f"{there}{quotient:.3g} times in ours")


def is_base(one: Figure, figure: Figure) -> bool:
    """Return whether a figure is the one in whose proportion the other is judged."""
    same = one.table is figure.table and one.part is figure.part and not one.place.over and one.metric == figure.metric
    beside = (one.row, figure.column) == (figure.table.base, one.column)
    return same and (beside or (one.column, figure.row) == (figure.table.base, one.row))


def _circular(metric: str, *devices: OurDevice | None) -> str:
    """The verdict on a figure that the device, or the one that it is compared with, may be made from."""
    return next((found for one in devices if one and (found := one.circular(metric))), "")


def _nothing(why: str) -> tuple[Ours, Judged]:
    return Ours(None, why_not=why), Judged("not comparable", why)


def _against(contradiction: str) -> str:
    return f"the text contradicts itself: {contradiction}" if contradiction else ""


def _row(figure: Figure) -> str:
    return f"{figure.part.device}: {figure.row}" if figure.part.device else figure.row
