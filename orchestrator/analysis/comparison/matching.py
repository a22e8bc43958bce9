"""Find the cells that two sides have in common: the same work, in the same way, on the same device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from orchestrator.model.axes import ENGINE, axis_value_text
from orchestrator.model.device import Source
from orchestrator.model.errors import NoData, UnknownName

from .rows import SideRow

Match = Literal["device", "model"]
COLUMNS = ("device", "network", "backend", "precision")
"""Columns of a row by which sides can be told apart, beside the options of its cell."""


class Key(NamedTuple):
    """The facts that make a cell of both sides the same."""

    device: str
    """Serial, or model where that is asked for."""
    source: str
    network: str
    backend: str
    precision: str
    options: tuple[tuple[str, str], ...]


class Pair(NamedTuple):
    """The blocks of one cell; none on a side that lacks it."""

    key: Key
    a: list[SideRow]
    b: list[SideRow]


def pairs_of(a: Iterable[SideRow], b: Iterable[SideRow], match: Match = "device") -> list[Pair]:
    """Every cell of either side, in the order of devices, networks, backends, precisions and options."""
    found: dict[Key, Pair] = {}
    known: dict[tuple[object, ...], Pair] = {}
    for index, side in enumerate((a, b)):
        for row in side:
            device = row.device if match == "device" else row.model or row.device
            columns = device, row.source, row.network, row.backend, row.precision
            told = (*columns, *row.options.items(), *map(type, row.options.values()))
            pair = known.get(told)
            if pair is None:
                key = Key(device, row.source.value, row.network, row.backend, row.precision, _options(row))
                pair = known[told] = found.setdefault(key, Pair(key, [], []))
            (pair.b if index else pair.a).append(row)
    return [found[key] for key in sorted(found)]


def _options(row: SideRow) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, axis_value_text(name, value)) for name, value in row.options.items()))


def sides_of(rows: Iterable[SideRow], axis: str, first: str, second: str) -> tuple[list[SideRow], list[SideRow]]:
    """The rows with each of two values of an axis, or column; what tells them apart is called `first|second` in both.

    Raises UnknownName for an axis or a value that no row has.
    """
    listed = list(rows)
    known: dict[str, list[SideRow]] = {}
    for row in listed:
        if (value := _value(row, axis)) is not None:
            known.setdefault(value, []).append(row)
    if not known:
        names = dict.fromkeys((*COLUMNS, *(name for row in listed for name in row.options)))
        raise UnknownName(f"nothing was measured by {axis!r}", remedy=f"axes: {', '.join(names)}")
    for value in (first, second):
        if value not in known:
            raise UnknownName(f"nothing was measured with {axis}={value}", remedy=f"there is {', '.join(known)}")
    name = f"{first}|{second}"
    return [_renamed(row, axis, name) for row in known[first]], [_renamed(row, axis, name) for row in known[second]]


def _value(row: SideRow, axis: str) -> str | None:
    """Return a row's value of an axis as a command line writes it; None where it has none."""
    if axis in COLUMNS:
        return str(getattr(row, axis))
    usual = ENGINE.default if axis == ENGINE.name and row.source is not Source.IMPORT else None
    value = row.options.get(axis, usual)
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _renamed(row: SideRow, axis: str, name: str) -> SideRow:
    changed: dict[str, Any] = {axis: name} if axis in COLUMNS else {"options": {**row.options, axis: name}}
    return replace(row, **changed)


def of_metrics(rows: Iterable[SideRow], metrics: Collection[str]) -> list[SideRow]:
    """The rows with these metrics alone; with all of them where none is named."""
    if not metrics:
        return list(rows)
    asked = [
        replace(
            row,
            **row.figures(lambda name: name.partition("/")[0] in metrics),
            right=row.right if "accuracy" in metrics else "",
        )
        for row in rows
    ]
    return [row for row in asked if row.values or row.uncertainties or row.right or row.problem or row.excluded]


def only(rows: Iterable[SideRow], where: Mapping[str, str]) -> list[SideRow]:
    """Return the rows with these values. Raises NoData where none is left."""
    listed = list(rows)
    left = [row for row in listed if all(_value(row, name) == value for name, value in where.items())]
    if not left:
        there = {name: sorted({_value(row, name) or "none" for row in listed}) for name in where}
        told = "; ".join(f"{name} is one of {', '.join(values)}" for name, values in there.items())
        raise NoData("nothing is left to compare", remedy=told or "choose another experiment")
    return left
