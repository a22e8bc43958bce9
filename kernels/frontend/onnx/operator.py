"""Entries of operators: all that the import knows of one, beside the functions that it names (`operators/`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import STANDARD_DOMAINS, AnyArray, Context, OnnxNode

if TYPE_CHECKING:
    from .counted_rows.rows import Rows
    from .nodes import Nodes

Values = list[Any]
Fold = Callable[[OnnxNode, Values], AnyArray]
AXES = ("...", "k")
CHANNELS = ("N C ...",)


def always(*_: object) -> bool:
    return True


def some_computed(node: OnnxNode, to: Context) -> bool:
    """Return whether an input is no constant."""
    return any(name and name not in to.constants for name in node.inputs)


def broadcast_bytes(_: OnnxNode, values: Values) -> int:
    """Memory of a result that has the shape to which the values broadcast, and the first one's type."""
    return prod(map(int, np.broadcast_shapes(*(value.shape for value in values)))) * int(values[0].itemsize)


def no_bytes(*_: object) -> int:
    """A view takes no memory."""
    return 0


@dataclass(frozen=True)
class Operator:
    """An operator, in the order in which the import asks."""

    name: str
    domain: str = ""
    operands: tuple[str, ...] = ("...",)
    """The shape of each input by its place (`kernels/ir/operands.py`); the last one stands for all further inputs."""
    choices: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    """Attribute -> the values that ONNX allows, where they are other ones than of other operators."""
    may_be_infinite: bool = False
    """Its attributes may hold infinite numbers."""
    write: Callable[[Nodes], None] | None = None
    """Imports the node as other nodes of ONNX, which treat counted rows by themselves."""
    writes: Callable[[OnnxNode, Context], bool] = some_computed
    """True of a node that `write` is for; the other fields are for the rest."""
    sizes: tuple[int, ...] = ()
    """Inputs that are sizes: they become counts where they are computed and bounded."""
    counts_from: int | None = None
    """The first input that may hold counts; those before become tensors. None: there is no such input."""
    follow: Callable[[OnnxNode, Context], bool] | None = None
    """Computes whole numbers of which some are counts; False where the node makes something else."""
    rows: Callable[[Rows], None] | None = None
    """Imports a node of tensors of which some axes are padded."""
    fold: Fold | None = None
    """Computes the result of constants; without it ONNX's reference implementation does."""
    fold_bytes: Callable[[OnnxNode, Values], int] = broadcast_bytes
    """Memory that the folded result takes."""
    most_times: int = 0
    """The most elements that a result of constants has, in multiples of theirs; 0: shape inference tells them."""
    direct: Callable[[OnnxNode, Context], bool] | None = None
    """Imports a node of one output as one operation with kernels of its own; False, before it emits anything, where the
    node is not one."""
    import_: Callable[[OnnxNode, Context], None] | None = None
    """Imports any node. Raises ModelError, and UnsupportedNode with what is known instead."""


class Operators:
    """The operators that the import knows."""

    def __init__(self, entries: Iterable[Operator]) -> None:
        self._known = {(each.domain, each.name): each for each in entries}

    def find(self, name: str, domain: str = "") -> Operator | None:
        return self._known.get(("" if domain in STANDARD_DOMAINS else domain, name))

    def names(self, domain: str = "") -> frozenset[str]:
        return frozenset(name for own, name in self._known if own == domain)
