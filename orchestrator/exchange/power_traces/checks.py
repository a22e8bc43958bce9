"""What can be wrong with any trace, whoever recorded it."""

from __future__ import annotations

import numpy as np

from .recording import Recording, TraceDoubt, TraceDoubtCode

GAP_PERIODS = 3.0
SHORT_S = 30.0


def checked(recording: Recording) -> Recording:
    """The recording with the doubts that its readings raise."""
    found = (_gap(recording), _tied(recording), _negative(recording), _short(recording))
    return recording.doubted(*(doubt for doubt in found if doubt is not None))


def _gap(recording: Recording) -> TraceDoubt | None:
    """A pause of more than three periods."""
    times = np.unique(recording.t_s)
    steps = np.diff(times)
    if len(steps) < 3:
        return None
    period, longest = float(np.median(steps)), float(steps.max())
    if longest <= GAP_PERIODS * period:
        return None
    count = int((steps > GAP_PERIODS * period).sum())
    at = float(times[int(steps.argmax())])
    detail = f"{count} pauses above three periods of {period:.4g} s; the longest, {longest:.4g} s, begins at {at:.4g} s"
    return _doubt(recording, TraceDoubtCode.GAP, detail)


def _tied(recording: Recording) -> TraceDoubt | None:
    tied = int((np.diff(recording.t_s) == 0).sum())
    if not tied:
        return None
    return _doubt(recording, TraceDoubtCode.TIED_TIMES, f"{tied} readings have the time of the one before")


def _negative(recording: Recording) -> TraceDoubt | None:
    count = int((recording.power_w < 0).sum())
    if not count:
        return None
    return _doubt(
        recording, TraceDoubtCode.NEGATIVE_POWER, f"{count} of {len(recording.power_w)} readings are negative"
    )


def _short(recording: Recording) -> TraceDoubt | None:
    if recording.duration_s >= SHORT_S:
        return None
    return _doubt(recording, TraceDoubtCode.SHORT_TRACE, f"it lasts {recording.duration_s:.1f} s")


def _doubt(recording: Recording, code: TraceDoubtCode, detail: str) -> TraceDoubt:
    return TraceDoubt(code=code, detail=detail, file=str(recording.path))
