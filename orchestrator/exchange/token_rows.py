"""Tokens of answers as rows: when each came, with the temperatures and clocks that were sampled beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from orchestrator.model import telemetry
from orchestrator.model.event import Power
from orchestrator.model.record import Record

MOST_PERIODS = 3.0
"""A reading that is older than so many sampling periods says nothing of a token."""


def token_rows(record: Record) -> Iterator[dict[str, int | float | str | None]]:
    """A row for each token of each text with its time, ms: of the first from the prompt's start, of others from the one
    before. What no reading at most three periods before it tells is None."""
    readings = sorted(record.power, key=lambda each: each.t_ns)
    times = [each.t_ns for each in readings]
    periods = [later - earlier for earlier, later in pairwise(times)]
    oldest_ns = MOST_PERIODS * median(periods) if periods else 0.0
    for sample in record.samples:
        untold = ((None,) * len(sample.token_ns),) * sample.sequences
        for sequence, ids in enumerate(sample.answers if sample.tokens else untold):
            spans = zip(pairwise((sample.start_ns, *sample.token_ns)), ids, strict=True)
            for place, ((before, now), token) in enumerate(spans):
                yield {
                    "phase": sample.phase,
                    "index": sample.index,
                    "sequence": sequence,
                    "place": place,
                    "token": token,
                    "t_ns": now,
                    "token_ms": (now - before) / 1e6,
                    **_beside(readings, times, now, oldest_ns),
                }


def _beside(readings: Sequence[Power], times: Sequence[int], at_ns: int, oldest_ns: float) -> dict[str, float | None]:
    """The temperatures and clocks of the last reading before a time."""
    place = bisect_right(times, at_ns) - 1
    if place < 0 or at_ns - times[place] > oldest_ns:
        return dict.fromkeys(("battery_temp_c", "skin_temp_c", "cpu_hz", "cpu_cap_hz", "gpu_hz", "gpu_cap_hz"))
    found = readings[place]
    return {
        "battery_temp_c": telemetry.celsius_of_tenths(found.temp_dc),
        "skin_temp_c": telemetry.celsius_of_tenths(found.skin_dc),
        "cpu_hz": max(found.cpu_khz, default=0) * 1000 or None,
        "cpu_cap_hz": max(found.cpu_cap_khz, default=0) * 1000 or None,
        "gpu_hz": found.gpu_hz,
        "gpu_cap_hz": found.gpu_cap_hz,
    }
