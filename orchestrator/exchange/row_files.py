"""Writes rows into a file as Parquet, CSV or JSON, a part at a time: any number of rows in bounded memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Literal, get_args

import pyarrow as pa
from pyarrow import parquet

from orchestrator.model.foreign import cleaned

from .long_rows import Kind, Row, Value

Form = Literal["parquet", "csv", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
PART = 20_000
"""Rows of one part: one row group of a Parquet file."""
TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_(),
}  # fmt: skip


def write(form: Form, columns: Mapping[str, Kind], rows: Iterable[Row], file: IO[bytes]) -> int:
    """Write all rows; how many there were."""
    writers: dict[Form, Callable[[Mapping[str, Kind], Iterable[Row], IO[bytes]], int]] = {
        "parquet": _parquet,
        "csv": _csv,
        "json": _json,
    }
    return writers[form](columns, map(_cleaned, rows), file)


def _cleaned(row: Row) -> Row:
    return {name: cleaned(value) if isinstance(value, str) else value for name, value in row.items()}


def _parquet(columns: Mapping[str, Kind], rows: Iterable[Row], file: IO[bytes]) -> int:
    schema = pa.schema([(name, TYPES[kind]) for name, kind in columns.items()])
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for part in _parts(rows):
            arrays = [
                pa.array([_fitting(row.get(name), kind) for row in part], TYPES[kind]) for name, kind in columns.items()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(part)
    return count


def _fitting(value: Value, kind: Kind) -> Value:
    """An axis whose cells have values of several kinds is text."""
    if value is None or kind != "text":
        return value
    return _word(value)


def _csv(columns: Mapping[str, Kind], rows: Iterable[Row], file: IO[bytes]) -> int:
    count = 0
    writer = csv.writer(_Encoded(file), lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_word(row.get(name)) for name in columns])
        count += 1
    return count


def _word(value: Value) -> str:
    """Return a value as a cell of CSV says it; nothing for what is not known."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _json(columns: Mapping[str, Kind], rows: Iterable[Row], file: IO[bytes]) -> int:
    """One array of objects, one a line; what is not known is null."""
    count = 0
    file.write(b"[")
    for row in rows:
        ordered = {name: row.get(name) for name in columns}
        text = json.dumps(ordered, allow_nan=False, separators=(",", ":"))
        file.write((",\n" if count else "\n").encode() + text.encode())
        count += 1
    file.write(b"\n]\n")
    return count


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while part := list(islice(iterator, PART)):
        yield part


class _Encoded:
    """A file for `csv` that takes text as bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())
