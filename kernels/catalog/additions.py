"""Algorithms of adding (and multiplying) two tensors number by number (study P's vector addition)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernels.options import Choice, Limits, Options

from .named import Named, Untiled, asked_or_tuned, check_asked
from .words import numbers

_VECTORS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Addition:
    """Two tensors of `pictures` x `vectors` vectors of four."""

    pictures: int
    vectors: int
    by_channel: bool = False
    """The second is one vector a stack of channels."""

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        return f"addition n{self.pictures} v{self.vectors}{' by channel' if self.by_channel else ''}"


@dataclass(frozen=True)
class AdditionCall:
    """The dispatch of an algorithm."""

    kernel: str
    tunables: dict[str, int]
    ints: dict[str, int]
    work_items: tuple[int, int, int]


class AdditionAlgorithm(Named[Addition], Protocol):
    """One way to add."""

    def lower(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> AdditionCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        ...


class Naive(Untiled[Addition]):
    """As a first attempt is written."""

    name = "naive"
    summary = "one number a work-item; tensors of one shape"

    def why_not(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does."""
        if sizes.by_channel:
            return "one operand is a number a channel"
        if options.layout == "image":
            return "it writes number by number, an image is written by four"
        return super().why_not(sizes, options, limits, tile)

    def lower(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> AdditionCall:
        """The dispatch."""
        del options, limits, tile
        return AdditionCall("binary_naive", {}, {}, (4 * sizes.vectors, 1, sizes.pictures))


class Vectors:
    """Vectors of four; more of them a work-item for fewer, longer work-items."""

    name = "vectors"
    summary = "vectors of four; tile: vectors a work-item, e.g. 2"

    def why_not(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        del sizes, options, limits
        if tile and _parse(tile) > max(_VECTORS):
            return f"a work-item adds {max(_VECTORS)} vectors at most"
        return None

    def tiles(self, sizes: Addition, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        del options, limits
        return [str(count) for count in _VECTORS if count == 1 or count <= sizes.vectors]

    def lower(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> AdditionCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        del options, limits
        count = _parse(tile or "1")
        ints = {"by_channel": int(sizes.by_channel)}
        return AdditionCall("binary", {"EACH": count}, ints, (-(-sizes.vectors // count), 1, sizes.pictures))


ADDITIONS: dict[str, AdditionAlgorithm] = {entry.name: entry for entry in (Naive(), Vectors())}


def choose_addition(options: Options, limits: Limits, layer: str, sizes: Addition) -> Choice:
    """The algorithm of one addition: the asked one where it fits, else the tuned one, else vectors."""
    found = asked_or_tuned(ADDITIONS, options.addition, (layer, sizes.key), sizes, options, limits)
    return found or Choice("vectors")


def check_addition(options: Options, limits: Limits, cases: Sequence[tuple[str, Addition]]) -> None:
    """Raise OptionError where the asked one is unknown or fits nowhere."""
    check_asked(ADDITIONS, "addition", options.addition, cases, options, limits)


def _parse(tile: str) -> int:
    (count,) = numbers(tile, "vectors a work-item", "2")
    return count
