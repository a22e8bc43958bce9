"""Rows of a table of samples, checked and gathered into the blocks that they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple, get_args

from orchestrator.exchange.delimited_table import Table
from orchestrator.model.experiment import Workload
from orchestrator.model.job import ForeignCell, Role
from orchestrator.model.record import Outcome

from .columns import Columns, Value, find_columns

MAX_MS = 1e10
MAX_NAME = 200
ROLES: tuple[Role, ...] = get_args(Role)
PHASES = ("timed", "warmup")


class BlockKey(NamedTuple):
    """The key of a block: rows with the same key are one."""

    device: str
    cell_id: str
    block: int
    role: Role


class SampleRow(NamedTuple):
    """One whole inference; as small as can be, for there may be millions."""

    number: int
    warmup: bool
    start_ns: int
    duration_ns: int


class LayerRow(NamedTuple):
    """One time of one layer."""

    number: int
    layer: str
    program: str
    repeat: int
    duration_ns: int


@dataclass
class Attempt:
    """The rows of one attempt at a block."""

    outcome: Outcome
    cause: str
    source: str
    origin: str
    samples: list[SampleRow] = field(default_factory=list)
    layers: list[LayerRow] = field(default_factory=list)
    _passes: dict[str, int] = field(default_factory=dict)

    def count(self, layer: str) -> int:
        """Return how often this layer has been seen before."""
        seen = self._passes.get(layer, 0)
        self._passes[layer] = seen + 1
        return seen


@dataclass
class Content:
    """A whole table."""

    columns: Columns
    cells: dict[str, ForeignCell] = field(default_factory=dict)
    blocks: dict[BlockKey, dict[int, Attempt]] = field(default_factory=dict)
    rows: int = 0
    digest: str = ""
    """Hash of the values: the same whatever the order of the columns, the quotes, and the ends of lines."""


def gather(table: Table) -> Content:
    """Check and gather every row. Raises TableError at the first that is wrong."""
    content = Content(find_columns(table))
    reader = _Reader(table, content)
    hashed = sha256()
    names = sorted(content.columns.place)
    for line, cells in _data(table, content.columns):
        reader.take(line, cells)
        hashed.update(json.dumps([(name, content.columns.text(cells, name)) for name in names]).encode())
    if not content.rows:
        raise table.error(content.columns.header_line, "", "there is no row below the titles")
    content.digest = hashed.hexdigest()
    return content


def _data(table: Table, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    for line, cells in table.rows():
        if line > columns.header_line and any(cells):
            yield line, cells


class _Reader:
    """Takes rows into a content."""

    def __init__(self, table: Table, content: Content) -> None:
        self._table, self._content, self._columns = table, content, content.columns
        self._cells: dict[tuple[Value, ...], ForeignCell] = {}
        self._layers: dict[tuple[str, str], int] = {}

    def take(self, line: int, cells: Sequence[str]) -> None:
        self._check_width(line, cells)
        cell = self._cell(line, cells)
        role = self._word(line, cells, "role", ROLES, "work")
        block = self._whole(line, cells, "block", 0)
        key = BlockKey(self._name(line, cells, "device"), cell.cell_id, block, "canary" if role == "canary" else "work")
        attempts = self._content.blocks.setdefault(key, {})
        attempt = self._attempt(line, cells, attempts)
        self._content.rows += 1
        layer = self._columns.text(cells, "layer")
        if layer:
            attempt.layers.append(self._layer(line, cells, cell.workload.label, layer, attempt))
        else:
            attempt.samples.append(self._sample(line, cells, attempt))

    def _check_width(self, line: int, cells: Sequence[str]) -> None:
        wide = max(self._columns.place.values()) + 1
        if any(cells[wide:]):
            raise self._table.error(line, str(wide + 1), f"found {len(cells)} cells, allowed: {wide}, as in the titles")

    def _cell(self, line: int, cells: Sequence[str]) -> ForeignCell:
        network, backend, precision = (self._name(line, cells, name) for name in ("network", "backend", "precision"))
        options = self._columns.options(cells)
        key = (network, backend, precision, *(f"{name}={value!r}" for name, value in options.items()))
        if key not in self._cells:
            workload = Workload(network=network)
            cell = ForeignCell(foreign=True, workload=workload, backend=backend, precision=precision, options=options)
            self._cells[key] = self._content.cells[cell.cell_id] = cell
        return self._cells[key]

    def _attempt(self, line: int, cells: Sequence[str], attempts: dict[int, Attempt]) -> Attempt:
        number = self._whole(line, cells, "attempt", 1, least=1)
        outcome = Outcome(self._word(line, cells, "outcome", [each.value for each in Outcome], Outcome.OK.value))
        cause, source, origin = (self._columns.text(cells, name) for name in ("cause", "source", "experiment"))
        attempt = attempts.setdefault(number, Attempt(outcome, cause, source, origin))
        if attempt.outcome is not outcome:
            what = f"found {outcome.value!r}, allowed: {attempt.outcome.value!r}, as in its rows before"
            raise self._table.error(line, "outcome", what)
        return attempt

    def _sample(self, line: int, cells: Sequence[str], attempt: Attempt) -> SampleRow:
        return SampleRow(
            number=self._whole(line, cells, "index", len(attempt.samples)),
            warmup=self._word(line, cells, "phase", PHASES, "timed") == "warmup",
            start_ns=self._whole(line, cells, "start_ns", 0),
            duration_ns=self._duration_ns(line, cells),
        )

    def _layer(self, line: int, cells: Sequence[str], network: str, layer: str, attempt: Attempt) -> LayerRow:
        program = self._columns.text(cells, "program")
        place = self._layers.setdefault((network, f"{layer}\0{program}"), len(self._layers))
        return LayerRow(
            number=self._whole(line, cells, "index", place),
            layer=layer,
            program=program,
            repeat=self._whole(line, cells, "repeat", attempt.count(f"{layer}\0{program}")),
            duration_ns=self._duration_ns(line, cells),
        )

    def _duration_ns(self, line: int, cells: Sequence[str]) -> int:
        text = self._columns.text(cells, "sample_ms")
        value = self._table.number(text, line, "sample_ms") if text else -1.0
        if not 0 <= value <= MAX_MS:
            raise self._table.error(line, "sample_ms", f"found {text!r}, allowed: 0 to {MAX_MS:g} milliseconds")
        return round(value * 1e6)

    def _whole(self, line: int, cells: Sequence[str], name: str, default: int, least: int = 0) -> int:
        text = self._columns.text(cells, name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < least:
            raise self._table.error(line, name, f"found {text!r}, allowed: a whole number from {least} on, or nothing")
        return int(text)

    def _word(self, line: int, cells: Sequence[str], name: str, known: Sequence[str], default: str) -> str:
        text = self._columns.text(cells, name) or default
        if text not in known:
            raise self._table.error(line, name, f"found {text!r}, allowed: {', '.join(known)}, or nothing")
        return text

    def _name(self, line: int, cells: Sequence[str], name: str) -> str:
        text = self._columns.text(cells, name)
        if not text or len(text) > MAX_NAME or not text.isprintable():
            found = f"{text[:40]!r}" if text else "nothing"
            raise self._table.error(line, name, f"found {found}, allowed: 1 to {MAX_NAME} printable characters")
        return text
