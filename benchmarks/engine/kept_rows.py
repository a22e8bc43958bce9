"""Rows of a benchmark in a JSON file: written as a whole after every row, read again by `--resume`.

kept = kept_rows(arguments, {"machine": describe_machine(), "repeats": 5}, same=("repeats",))
if not kept.has(network="lenet", api="cpu"):
    kept.add({"network": "lenet", "api": "cpu", "ms": [1.5]})
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
ROWS = "found"
RESUMED = "resumed"
"""The place where a file says what `about` was when it was gone on with."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """`-o` and `--resume`."""
    parser.add_argument("-o", "--out", "--output", type=Path, help="JSON file, written after every step")
    parser.add_argument("--resume", action="store_true", help="keep what the file has, measure the rest")


class KeptRows:
    """The rows of a file; without a path they are only in memory."""

    def __init__(self, path: Path | None, about: dict[str, Any], rows: Sequence[Row] = ()) -> None:
        self._path, self.about, self.rows = path, about, list(rows)

    def has(self, **key: Any) -> bool:
        """Return whether there is a row with these values."""
        return bool(self.of(**key))

    def of(self, **key: Any) -> list[Row]:
        """All rows with these values, in order."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in key.items())]

    def add(self, row: Row) -> None:
        """Append and write."""
        self.rows.append(row)
        self.write()

    def write(self) -> None:
        """Write the file, if there is a path."""
        if self._path:
            write_whole(self._path, json.dumps({**self.about, ROWS: self.rows}, indent=1) + "\n")


def kept_rows(arguments: argparse.Namespace, about: dict[str, Any], same: Sequence[str] = ()) -> KeptRows:
    """Return rows of the options above. `same`: names in `about` that earlier rows must share; else SystemExit."""
    path: Path | None = arguments.out
    if not (arguments.resume and path and path.is_file()):
        return KeptRows(path, about)
    earlier = json.loads(path.read_text())
    for name in same:
        if earlier.get(name) != about[name]:
            raise SystemExit(
                f"{path} was measured with {name} {earlier.get(name)!r}, not {about[name]!r}: give another file"
            )
    rows = earlier.pop(ROWS)
    return KeptRows(path, {**earlier, RESUMED: [*earlier.get(RESUMED, []), about]}, rows)


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old file or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
