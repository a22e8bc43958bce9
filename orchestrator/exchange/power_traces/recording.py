"""A power trace that somebody recorded, as every importer gives it, and what may be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.model.base import Model, Remedied
from orchestrator.model.errors import TableError

from .points import Facts, Points, Series, facts_of

MOST_LEFT_OUT = 0.1
"""Share of the readings that may be left out, where they are more than ..."""
FEW = 3


class TraceDoubtCode(Remedied):
    """A possible fault of a trace or of what was derived from it, with its remedy."""

    FOOTER_DISAGREES = "footer_disagrees", "the file was cut or edited after its recording: export it again"
    FOOTER_OF_OTHER_RUNS = "footer_of_other_runs", "give the files of the other runs too: this one holds a part of them"
    DURATION_DISAGREES = "duration_disagrees", "the file holds more or less than was recorded: export it again"
    GAP = "gap", "record again, or cut the gap out: nobody knows the power in it"
    TIED_TIMES = "tied_times", "none is needed for means over many readings: readings of one time count as their mean"
    TIME_UNIT = "time_unit", "correct the unit in the column's title"
    TIME_UNIT_FOUND = "time_unit_found", "give --time-unit if that is wrong, or write the unit into the title"
    SIGN_FOUND = "sign_found", "check it against a trace of which you know whether the battery was charged"
    CHARGING = "charging", "record with the supply cut: a gauge cannot see what the supply delivers"
    NEGATIVE_POWER = "negative_power", "check the sign of the current: power is positive while the battery discharges"
    SHORT_TRACE = "short_trace", "record for 30 s or more"
    BASELINE_ABOVE_LOAD = "baseline_above_load", "exchange the files, or record the baseline with the screen dimmed"
    UNRESOLVED = "unresolved", "record longer or more often: the interval of the net power includes zero"
    FEW_FILES = "few_files", "record more files: two repetitions say little about their spread"
    ONE_FILE = "one_file", "record more files: one file does not show how much runs differ from each other"
    SAME_READINGS = "same_readings", "give each recording once: a copy is no repetition"
    STUCK = "stuck", "restart the meter, or record again: it said the same whatever was drawn"
    IMPLAUSIBLE_POWER = "implausible_power", "check the unit of the power, or of current and voltage"
    POWER_DISAGREES = "power_disagrees", "check the units of the three columns; the power was taken"
    ALIKE_READINGS = "alike_readings", "record longer: readings wander so slowly that intervals hold less than 95 %"
    MIXED_FORMATS = "mixed_formats", "use one instrument for all of them: figures of different ones do not compare"
    READINGS_LEFT_OUT = "readings_left_out", "see what these values mean: the instrument had no reading then"
    UNIT_FOUND = "unit_found", "check the unit of the current in the phone's kernel, or measure with a meter"
    UNIT_CHANGES = "unit_changes", "see at which reading the unit changed, and save each part as a file of its own"
    SEVERAL_IN_ONE = "several_in_one", "record each device, battery or rail in its own file: their mean is no power"


class TraceDoubt(Model):
    """One doubt, with the file that it is about; empty: it is about all of them."""

    code: TraceDoubtCode
    detail: str
    file: str = ""

    @property
    def remedy(self) -> str:
        return self.code.remedy


@dataclass(frozen=True)
class Told:
    """The user's word on files that do not say it themselves."""

    time_unit: str | None = None
    """`ns`, `us`, `ms`, `s`, `min` or `h`; goes before what a title says."""
    column: str | None = None
    """The title of the column of power; of a perfetto trace `battery` or `rails`."""
    volts: float | None = None
    """The voltage of a trace that has a current alone."""


@dataclass(frozen=True)
class Recording:
    """One run of one file: times in s since its first reading, power in W, positive while energy is drawn."""

    path: Path
    format: str
    column: str
    """The column of the power, as the file's header says."""
    t_s: Series
    power_w: Series
    doubts: tuple[TraceDoubt, ...] = ()
    times: str = "s"
    """The column of the times and the unit in which they were read."""
    facts: Facts = field(default=None)  # type: ignore[assignment]
    """Facts of all readings, or of the points if there are no readings."""

    def __post_init__(self) -> None:
        if self.facts is None:
            object.__setattr__(self, "facts", facts_of(self.t_s, self.power_w))

    @property
    def duration_s(self) -> float:
        return self.facts.duration_s

    def doubt(self, code: TraceDoubtCode, detail: str) -> TraceDoubt:
        return TraceDoubt(code=code, detail=detail, file=str(self.path))

    def doubted(self, *found: TraceDoubt) -> Recording:
        return replace(self, doubts=self.doubts + found)


def recorded(path: Path, form: str, column: str, points: Points, times: str = "s") -> Recording:
    """The recording of readings that were put together. Raises TableError where there are fewer than two."""
    if len(points) < 2:
        what = f"{path}, {column!r}: has {len(points)} readings; at least 2 are needed"
        raise TableError(what, remedy="record for longer, and export all of it")
    left_out = points.left_out
    if left_out.count > FEW and left_out.share > MOST_LEFT_OUT:
        remedy = "export the column that the instrument measured, or record again: too much of it is no reading"
        raise TableError(f"{path}, {column!r}: {left_out.text}", remedy=remedy)
    t_s, power_w, facts = points.finish()
    found = Recording(path, form, column, t_s, power_w, times=times, facts=facts)
    if not left_out.count:
        return found
    return found.doubted(TraceDoubt(code=TraceDoubtCode.READINGS_LEFT_OUT, detail=left_out.text, file=str(path)))
