"""A power trace that somebody recorded, as every importer gives it, and what may be wrong with it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from orchestrator.model.base import Model

Series = npt.NDArray[np.float64]


class TraceDoubtCode(StrEnum):
    """What may be wrong with a trace or with what was derived from it; each has a remedy in `REMEDIES`."""

    FOOTER_DISAGREES = "footer_disagrees"
    FOOTER_OF_OTHER_RUNS = "footer_of_other_runs"
    DURATION_DISAGREES = "duration_disagrees"
    GAP = "gap"
    TIED_TIMES = "tied_times"
    TIME_UNIT = "time_unit"
    CHARGING = "charging"
    NEGATIVE_POWER = "negative_power"
    SHORT_TRACE = "short_trace"
    BASELINE_ABOVE_LOAD = "baseline_above_load"
    UNRESOLVED = "unresolved"
    FEW_FILES = "few_files"
    MIXED_FORMATS = "mixed_formats"


REMEDIES: dict[TraceDoubtCode, str] = {
    TraceDoubtCode.FOOTER_DISAGREES: "the file was cut or edited after its recording: export it again",
    TraceDoubtCode.FOOTER_OF_OTHER_RUNS: "give the files of the other runs too: this one holds only a part of them",
    TraceDoubtCode.DURATION_DISAGREES: "the file holds more or less than was recorded: export it again",
    TraceDoubtCode.GAP: "record again, or cut the gap out: nobody knows the power in it",
    TraceDoubtCode.TIED_TIMES: "none is needed for means over many readings: readings of one time count as their mean",
    TraceDoubtCode.TIME_UNIT: "correct the unit in the column's title",
    TraceDoubtCode.CHARGING: "record with the supply cut: a gauge cannot see what the supply delivers",
    TraceDoubtCode.NEGATIVE_POWER: "check the sign of the current: power is positive while the battery discharges",
    TraceDoubtCode.SHORT_TRACE: "record for 30 s or more",
    TraceDoubtCode.BASELINE_ABOVE_LOAD: "exchange the files, or record the baseline again with the screen dimmed",
    TraceDoubtCode.UNRESOLVED: "record longer or more often: the interval of the net power holds zero",
    TraceDoubtCode.FEW_FILES: "record more files: two repetitions say little about their spread",
    TraceDoubtCode.MIXED_FORMATS: "use one instrument for all of them: figures of different ones do not compare",
}


class TraceDoubt(Model):
    """One doubt, with the file that it is about; empty: it is about all of them."""

    code: TraceDoubtCode
    detail: str
    file: str = ""

    @property
    def remedy(self) -> str:
        return REMEDIES[self.code]


@dataclass(frozen=True)
class Recording:
    """One run of one file: times in s since its first reading, power in W, positive while energy is drawn."""

    path: Path
    format: str
    column: str
    """Where the power comes from, as the file's header says."""
    t_s: Series
    power_w: Series
    doubts: tuple[TraceDoubt, ...] = ()

    @property
    def duration_s(self) -> float:
        return float(self.t_s[-1] - self.t_s[0])

    def doubted(self, *found: TraceDoubt) -> Recording:
        return replace(self, doubts=self.doubts + found)


class Readings:
    """Collects readings in 16 bytes each, so that a long file needs no more than that."""

    def __init__(self) -> None:
        self._t_s, self._power_w = array("d"), array("d")
        self.last_s = float("-inf")
        """Time of the newest; no later reading may have an earlier one."""

    def __len__(self) -> int:
        return len(self._t_s)

    def add(self, t_s: float, power_w: float) -> None:
        self._t_s.append(t_s)
        self._power_w.append(power_w)
        self.last_s = t_s

    def series(self) -> tuple[Series, Series]:
        """Times since the first reading, and powers."""
        times = np.frombuffer(self._t_s, dtype=np.float64)
        return times - times[0], np.frombuffer(self._power_w, dtype=np.float64)
