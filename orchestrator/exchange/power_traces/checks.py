"""What can be wrong with any trace, whoever recorded it."""

from __future__ import annotations

from .recording import Recording, TraceDoubt, TraceDoubtCode

SHORT_S = 30.0


def checked(recording: Recording) -> Recording:
    """The recording with the doubts that its readings raise."""
    found = (_gap(recording), _tied(recording), _negative(recording), _short(recording))
    return recording.doubted(*(doubt for doubt in found if doubt is not None))


def _gap(recording: Recording) -> TraceDoubt | None:
    """A pause of more than three periods."""
    facts = recording.facts
    if not facts.pauses or facts.period_s is None:
        return None
    detail = (
        f"pauses of more than three periods of {facts.period_s:.4g} s: {facts.pauses}; the longest, "
        f"{facts.longest_s:.4g} s, begins at {facts.longest_at_s:.4g} s"
    )
    return _doubt(recording, TraceDoubtCode.GAP, detail)


def _tied(recording: Recording) -> TraceDoubt | None:
    tied = recording.facts.tied
    if not tied:
        return None
    return _doubt(recording, TraceDoubtCode.TIED_TIMES, f"{tied} readings have the time of the one before")


def _negative(recording: Recording) -> TraceDoubt | None:
    facts = recording.facts
    if not facts.negative:
        return None
    detail = f"{facts.negative} of {facts.readings} readings are negative"
    return _doubt(recording, TraceDoubtCode.NEGATIVE_POWER, detail)


def _short(recording: Recording) -> TraceDoubt | None:
    if recording.duration_s >= SHORT_S:
        return None
    return _doubt(recording, TraceDoubtCode.SHORT_TRACE, f"it lasts {recording.duration_s:.1f} s")


def _doubt(recording: Recording, code: TraceDoubtCode, detail: str) -> TraceDoubt:
    return TraceDoubt(code=code, detail=detail, file=str(recording.path))
