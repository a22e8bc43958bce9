"""Settings of engines: where a command prints its samples, and a user's own files of the model for an engine."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator

from orchestrator.model.base import Model, rule
from orchestrator.model.event import Line

from .several import flat, own_key

NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds of a unit."""


class PrintedSample(NamedTuple):
    """One sample, and when its line came."""

    duration_ns: int
    t_ns: int


class Unread(ValueError):
    """The output holds no samples as they were described, or something else in their place; the message says what."""

    cause = "unread_output"


class Printed(Model):
    """The place of the samples in a program's output; exactly one of regex, path and column."""

    regex: str | None = None
    """Regular expression (RE2) with a group `sample`; each match is one: `took (?P<sample>[0-9.]+) us`."""
    path: str | None = None
    """Path in JSON, of keys, places and `*`, in one object or in one a line: `samples_ns.*`."""
    column: str | None = None
    """Column of a CSV table, by the name in its first line."""
    unit: Literal["ns", "us", "ms", "s"]
    stream: Literal["stdout", "stderr"] | None = None
    """The stream that has them; both where it is not given, for JSON and CSV the standard output."""

    @rule
    def _one_place(self) -> None:
        if sum(each is not None for each in (self.regex, self.path, self.column)) != 1:
            raise ValueError("give exactly one of `regex`, `path` (in JSON) and `column` (of a CSV table)")
        if self.regex is not None:
            _pattern(self.regex)

    def samples(self, lines: Sequence[Line]) -> list[PrintedSample]:
        """Read the samples of one run, in the order in which they were printed. Raises Unread.

        A number is finite and above zero, or the whole output is refused: one that is left out would shift the others.
        """
        stream = self.stream or (None if self.regex is not None else "stdout")
        meant = [line for line in lines if stream is None or line.stream == stream]
        found = list(self._found(meant))
        return [PrintedSample(_ns(value, self.unit), t_ns) for value, t_ns in found]

    def _found(self, lines: Sequence[Line]) -> Iterator[tuple[object, int]]:
        if self.regex is not None:
            pattern = _pattern(self.regex)
            number = pattern.groupindex["sample"]
            return (
                (_ended(match[number], line, match.end(number)), line.t_ns)
                for line in lines
                for match in pattern.finditer(line.text)
            )
        if self.path is not None:
            return _of_json(lines, self.path.split("."))
        return _of_csv(lines, str(self.column))


_Files = Annotated[tuple[str, ...], Field(min_length=1)]


class EngineSettings(Model):
    """The settings of engines."""

    result: Printed | None = None
    """The place of the samples in the output of a command; not given: a sample is a run of it."""
    models: dict[str, _Files] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The files of the same model for an engine that cannot take the workload's, relative to the experiment file:
    `{litert: x.tflite, ncnn: [x.param, x.bin]}`; of several workloads by their names: `{litert: {x: x.tflite}}`. Their
    outputs are held against the workload's."""
    models_sha256: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Filled in at submission: the files by engine, or `ENGINE WORKLOAD`, and name."""
    builds: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Filled in at submission: of each engine of the matrix that a person brought the builds, abi -> SHA-256."""

    def files_of(self, engine: str, workload: str) -> dict[str, str]:
        """Return the files of a workload for an engine, name -> SHA-256; none: the engine's are made of it."""
        return self.models_sha256.get(own_key(engine, workload)) or self.models_sha256.get(engine, {})

    @field_validator("models", mode="before", json_schema_input_type=dict[str, str | _Files | dict[str, str | _Files]])
    @classmethod
    def _one_file_or_several(cls, value: object) -> object:
        return flat(value)

    @field_validator("models")
    @classmethod
    def _of_other_engines(cls, models: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name in (key.partition(" ")[0] for key in models):
            if name in ("pocketfarm", "command", "wait"):
                raise ValueError(f"models: engine {name} runs the workload itself, and reads no file of its own")
        return models


@lru_cache(64)
def _pattern(text: str):  # type: ignore[no-untyped-def]
    """Compile an expression. RE2 reads in linear time, whatever a user's expression is. Raises ValueError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(text, options)
    except re2.error as e:
        said = e.args[0].decode() if e.args and isinstance(e.args[0], bytes) else e
        raise ValueError(f"the expression cannot be used: {said}") from e
    if "sample" not in pattern.groupindex:
        raise ValueError("the expression has no group `sample`: write `(?P<sample>[0-9.]+)` where the number stands")
    return pattern


def _ns(value: object, unit: str) -> int:
    """Raises Unread for what is no time."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError as e:
            raise Unread(f"{value[:40]!r} is no number") from e
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Unread(f"{str(value)[:40]!r} is no number")
    if not (math.isfinite(number) and 0.5 <= number * NS[unit] < 2**62):
        raise Unread(f"{str(value)[:40]} {unit} is no time that a sample can take")
    return round(number * NS[unit])


def _of_json(lines: Sequence[Line], path: Sequence[str]) -> Iterator[tuple[object, int]]:
    """One object over all lines, or one in each line that begins with `{` or `[`."""
    try:
        whole = [(json.loads("\n".join(line.text for line in lines)), lines[-1].t_ns)] if lines else []
    except ValueError:
        whole = [(_loaded(line.text), line.t_ns) for line in lines if line.text.lstrip()[:1] in ("{", "[")]
    for value, t_ns in whole:
        for each in _at(value, path):
            yield each, t_ns


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as e:
        raise Unread(f"a line is no JSON: {text[:60]!r} ({e})") from e


def _at(value: object, path: Sequence[str]) -> Iterator[object]:
    if not path:
        yield value
        return
    name, rest = path[0], path[1:]
    match value:
        case dict():
            inner = list(value.values()) if name == "*" else [value[name]] if name in value else []
        case list():
            inner = value if name == "*" else value[int(name) :][:1] if name.isdecimal() else []
        case _:
            inner = []
    for each in inner:
        yield from _at(each, rest)


def _of_csv(lines: Sequence[Line], column: str) -> Iterator[tuple[object, int]]:
    """Lines before the head are the program's words; the table ends with the output."""
    place = width = None
    for line in lines:
        cells = next(csv.reader([line.text], skipinitialspace=True), [])
        if place is None:
            place, width = (cells.index(column), len(cells)) if column in cells else (None, None)
        elif cells and len(cells) != width:
            raise Unread(f"a row has {len(cells)} cells, and the head {width}: {line.text[:60]!r}")
        elif cells:
            yield _ended(cells[place], line, len(line.text)), line.t_ns


def _ended(number: str, line: Line, end: int) -> str:
    """Return a number that is all there. Raises Unread where the output ends with it, in mid-line."""
    if not line.whole and end == len(line.text):
        raise Unread(f"the output ends within a line, behind {number!r}")
    return number
