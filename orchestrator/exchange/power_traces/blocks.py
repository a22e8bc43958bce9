"""The columns of a long table, block by block, by pyarrow's reader of CSV: some 15 times as fast as row by row.

It is strict: anything but numbers in rows of one length raises `NotPlain`, and the table is then read row by row, which
knows what else is allowed and tells the line of what is not. What it does read, it reads to the same figures.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from orchestrator.exchange.delimited_table import Table

from .points import Series

BLOCK_BYTES = 1 << 23


class NotPlain(Exception):
    """Something other than rows of numbers."""


Texts = Mapping[int, Callable[[pa.Array], Series]]
"""The readers of a column's texts, by its place; they raise ArrowInvalid."""


def blocks(
    table: Table, header_line: int, indices: Sequence[int], texts: Texts = MappingProxyType({})
) -> Iterator[tuple[Series, ...]]:
    """The wanted columns of all rows below the titles; numbers but for `texts`. Raises NotPlain."""
    width = table.width(header_line)
    if width <= max(indices):
        raise NotPlain
    names = [str(index) for index in range(width)]
    wanted = [names[index] for index in indices]
    source = _source(table)
    try:
        with nullcontext() if isinstance(source, Path) else source:
            reader = csv.open_csv(
                source,
                read_options=csv.ReadOptions(column_names=names, skip_rows=header_line, block_size=BLOCK_BYTES),
                parse_options=csv.ParseOptions(
                    delimiter=table.dialect.delimiter,
                    invalid_row_handler=lambda row: "skip" if row.text.startswith("#") else "error",
                ),
                convert_options=csv.ConvertOptions(
                    column_types={names[each]: pa.string() if each in texts else pa.float64() for each in indices},
                    include_columns=list(dict.fromkeys(wanted)),
                    decimal_point=table.dialect.decimal,
                    null_values=[""],
                ),
            )
            for batch in reader:
                yield _columns(batch, indices, texts)
    except (pa.ArrowInvalid, EOFError, OSError, zlib.error) as e:
        raise NotPlain from e


def _columns(batch: pa.RecordBatch, indices: Sequence[int], texts: Texts) -> tuple[Series, ...]:
    found = [(index, batch.column(str(index))) for index in indices]
    columns = tuple(texts[index](column) if index in texts else np.asarray(column) for index, column in found)
    finite = all(bool(np.isfinite(column).all()) for column in columns)
    if not finite or any(column.null_count for _, column in found):
        raise NotPlain
    return columns


def without_units(texts: pa.Array, unit: str, table: Table) -> Series:
    """The numbers of `65.2 W`. Raises ArrowInvalid."""
    plain: Any = compute.replace_substring_regex(compute.utf8_trim_whitespace(texts), rf"\s*{unit}$", "")
    if table.dialect.decimal == ",":
        plain = compute.replace_substring(plain, ",", ".")
    return np.asarray(plain.cast(pa.float64()))


def _source(table: Table) -> Path | BinaryIO | io.RawIOBase:
    """The file; without the names of NumPy's numbers (`np.float64(1.5)`) where its first rows have them, and without
    compression."""
    if any("np." in text for _, cells in table.head()[-1:] for text in cells):
        return _Unwrapped(table.open())
    return table.open() if table.compressed else table.path


class _Unwrapped(io.RawIOBase):
    """A file without `np.float64(` and `)`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Whole lines, so that no name is cut in two; a little more or less than asked for."""
        text = self._file.read(size)
        if text:
            text += self._file.readline()
        return text.replace(b"np.float64(", b"").replace(b")", b"")

    def close(self) -> None:
        self._file.close()
        super().close()
