"""Times that are dates or times of day: `2026-11-25 10:00:00.123`, `2026/11/25T10:00:00+01:00`, `23:59:59.5`.

The year comes first and hours are 0 to 23, so that each date has one meaning. All dates of a file have the offset of
their zone, or none has it. Times of day go on over midnight: one that is earlier than the one before by more than 12
hours is of the next day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from .points import Series

DAY_S = 86400.0
ALLOWED = (
    "a number, or a date with the year first and hours from 0 to 23 (no AM or PM) such as 2026-11-25 10:00:00.123, in "
    "all rows with the offset of its zone (+01:00) or in none, or a time of day such as 10:00:00.123"
)
_FORM = re.compile(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d)?(?(date)[T ]\s*)(?P<time>\d\d:\d\d:\d\d)([.,](?P<fraction>\d{1,9}))?"
    r"\s*(?P<zone>Z|[+-]\d\d(:?\d\d)?)?"
)
_EPOCH = "1970-01-01"


@dataclass(frozen=True)
class DateForm:
    """The form of the dates of a column."""

    day: bool
    """False: they are times of day."""
    zone: bool
    """The offset of their zone."""

    @property
    def named(self) -> str:
        return f"{'dates' if self.day else 'times of day'}{' with their offset' if self.zone else ''}"

    def text(self, at_s: float) -> str:
        """A time as it could stand in the file, in UTC where it has an offset."""
        found = datetime.fromtimestamp(at_s, UTC)
        return f"{found:%Y-%m-%d %H:%M:%S.%f}" if self.day else f"{found:%H:%M:%S.%f}"


def form_of(text: str) -> DateForm | None:
    """None where it is neither a date nor a time of day."""
    match = _FORM.fullmatch(text)
    return match and DateForm(match["date"] is not None, match["zone"] is not None)


def seconds(text: str, form: DateForm) -> float | None:
    """Return seconds since 1970, or since midnight; None for another form, or where no such day or time exists."""
    match = _FORM.fullmatch(text)
    if match is None or form_of(text) != form:
        return None
    date = (match["date"] or _EPOCH).replace("/", "-")
    try:
        whole = datetime.fromisoformat(f"{date}T{match['time']}{match['zone'] or 'Z'}")
    except ValueError:
        return None
    nanoseconds = round(whole.timestamp()) * 10**9 + int((match["fraction"] or "").ljust(9, "0"))
    return float(nanoseconds) / 1e9


def all_seconds(texts: pa.Array, form: DateForm) -> Series:
    """The same of a whole column. Raises ArrowInvalid where one of them is of another form."""
    plain: Any = compute.utf8_trim_whitespace(texts)
    if form.day:
        plain = compute.replace_substring(compute.replace_substring(plain, "/", "-"), ",", ".")
    else:
        plain = compute.binary_join_element_wise(_EPOCH, plain, " ")
    nanoseconds = plain.cast(pa.timestamp("ns", "UTC" if form.zone else None)).cast(pa.int64())
    return np.asarray(np.asarray(nanoseconds) / 1e9)


def over_midnight(times_s: Series, last_s: float | None) -> Series:
    """Times of day -> times that go on, after `last_s`, which does already."""
    last_s = float(times_s[0]) if last_s is None else last_s
    midnight_s = last_s // DAY_S * DAY_S
    nights = np.cumsum(np.diff(times_s, prepend=last_s - midnight_s) < -DAY_S / 2)
    return np.asarray(midnight_s + times_s + DAY_S * nights)
