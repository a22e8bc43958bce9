"""Quantities with units, as people write them in experiment files."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

_NUMBER = re.compile(r"^\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-z%°]*)\s*$")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_WORDS = {"nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "second": "s", "sec": "s", "minute": "min",
          "mins": "min", "hour": "h", "hr": "h", "byte": "B", "percent": "%", "celsius": "C"}  # fmt: skip
"""Units written out, also in the plural, as people write them."""
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_CELSIUS = {"C": 1.0, "°C": 1.0}
_SHARES = {"%": 0.01}
_MOMENT = "a time such as `17:00` or `2026-12-01 08:00`"


def parse_seconds(value: object) -> float:
    """`"90 s"`, `"5 min"`, `"100 ms"` -> seconds. A bare number in a file is refused: it has no unit."""
    return _parse(value, _SECONDS, "a time such as `90 s`")


def _sampled(period_s: float) -> float:
    if not 1e-3 <= period_s <= 60:
        raise ValueError(f"expected `1 ms` to `60 s` between two readings, got {period_s:g} s")
    return period_s


def parse_moment(value: object, now: float | None = None) -> float:
    """`"17:00"` (the next one), `"2026-12-01 08:00"`, in local time -> Unix time. `now`: Unix time; None: the clock's.

    Raises ValueError.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):  # already parsed
        return _finite(value, _MOMENT)
    text, start = str(value).strip(), datetime.fromtimestamp(time.time() if now is None else now)
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}", text):
            of_day = datetime.strptime(text, "%H:%M").time()
            today = datetime.combine(start.date(), of_day)
            return (today if today > start else today + timedelta(days=1)).timestamp()
        return datetime.strptime(text.replace("T", " "), "%Y-%m-%d %H:%M").timestamp()
    except (ValueError, OverflowError, OSError) as e:
        raise ValueError(f"expected {_MOMENT}, got {text[:40]!r}") from e


def parse_date(value: object) -> float:
    """`"2026-12-01 08:00"`, in local time -> Unix time: the same on whatever day it is read."""
    if isinstance(value, str) and ":" in value and "-" not in value:
        raise ValueError(f"expected a day and a time such as `2026-12-01 08:00`, got {value[:40]!r}")
    return parse_moment(value)


def parse_bytes(value: object) -> int:
    """`"1 GiB"`, `"200 MB"` -> bytes."""
    return int(_parse(value, _BYTES, "a size such as `1 GiB`"))


def size_text(size_bytes: int) -> str:
    """Bytes in the largest unit of which they are a whole number, as `parse_bytes` reads them: `7 MB`, `16 MiB`."""
    unit = max((unit for unit in _BYTES if size_bytes % _BYTES[unit] == 0), key=lambda unit: _BYTES[unit])
    return f"{size_bytes // _BYTES[unit]} {unit}"


def parse_celsius(value: object) -> float:
    """`"38 C"` -> degrees Celsius."""
    return _parse(value, _CELSIUS, "a temperature such as `38 C`")


def parse_share(value: object) -> float:
    """`"5 %"` -> 0.05."""
    return _parse(value, _SHARES, "a share such as `5 %`")


def _parse(value: object, units: dict[str, float] | dict[str, int], wanted: str) -> float:
    if type(value) is float and math.isfinite(value):  # already parsed: a stored model is validated again
        return value
    if isinstance(value, bool):
        raise ValueError(f"expected {wanted}, got {value!r}")
    if isinstance(value, int | float):
        return _finite(value, wanted)
    match = _NUMBER.match(str(value))
    if match is None:
        raise ValueError(f"expected {wanted}, got {value!r}")
    number, unit = match.groups()
    if not unit:
        raise ValueError(f"{str(value).strip()} has no unit; expected {wanted}; units: {', '.join(units)}")
    unit = unit if unit in units else _WORDS.get(unit.lower(), _WORDS.get(unit.lower().removesuffix("s"), unit))
    if unit not in units:
        words = [word for word, of in _WORDS.items() if of in units]
        near = get_close_matches(unit.lower(), [*units, *words, *(f"{word}s" for word in words)], n=1)
        meant = f"did you mean `{number} {near[0]}`? " if near else ""
        raise ValueError(f"unit {unit!r} is not known here; {meant}expected {wanted}; units: {', '.join(units)}")
    return _finite(float(number) * units[unit], wanted)


def _finite(value: float, wanted: str) -> float:
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"expected {wanted}, got {str(value)[:40]}")
    return found


Seconds = Annotated[float, BeforeValidator(parse_seconds, json_schema_input_type=float | str), Field(gt=0)]
SamplingPeriod = Annotated[Seconds, AfterValidator(_sampled)]
"""The time between two readings of a gauge: the agent counts in ms."""
Rest = Annotated[float, BeforeValidator(parse_seconds, json_schema_input_type=float | str), Field(ge=0)]
Share = Annotated[float, BeforeValidator(parse_share, json_schema_input_type=float | str), Field(gt=0, lt=1)]
Celsius = Annotated[float, BeforeValidator(parse_celsius, json_schema_input_type=float | str)]
Bytes = Annotated[int, BeforeValidator(parse_bytes, json_schema_input_type=float | str), Field(ge=0)]


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 cell`, `2 cells`, `1,000 jobs`; `1 row is`, `0 rows are` where `many` has words of its own."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
