"""Specialisation of a kernel: the numbers that it is compiled for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, overload


class derived:  # noqa: N801  around a formula, or a decorator, as `property` is
    """A number that follows from a tile's fields and that the kernel's body reads as well."""

    def __init__(self, compute: Callable[[Any], int]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, tile: None, owner: type) -> derived: ...
    @overload
    def __get__(self, tile: object, owner: type) -> int: ...
    def __get__(self, tile: object | None, owner: type) -> derived | int:
        return self if tile is None else self._compute(tile)


@dataclass(frozen=True)
class Tile:
    """The numbers that one kernel is compiled for; a kernel that is the same for all sizes takes this one, which has
    none.

    The fields are what is chosen. A body reads the fields and the `derived` numbers, each by its name in capitals.
    """

    @property
    def chosen(self) -> dict[str, int]:
        """The fields; they name the program."""
        return {field.name.upper(): getattr(self, field.name) for field in fields(self)}

    @property
    def constants(self) -> dict[str, int]:
        """All that the body reads."""
        names = [
            name for part in type(self).__mro__ for name, value in vars(part).items() if isinstance(value, derived)
        ]
        return {**self.chosen, **{name.upper(): getattr(self, name) for name in names}}


UNTILED = Tile()
"""The tile of kernels that are the same for all sizes."""


@dataclass(frozen=True)
class SharedSum(Tile):
    """A work-group of `cx` x `ky` work-items: each adds up a part of a sum, the `ky` parts meet in local memory."""

    cx: int
    ky: int

    shared = derived(lambda tile: tile.cx * tile.ky)
    sums = derived(lambda _: 1)
