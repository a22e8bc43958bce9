"""Expressions, reductions and copies by tables in PyTorch; what they mean: `kernels/reference/`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernels.ir.expressions import LETTERS
from kernels.ir.graph import Node
from kernels.ir.taking import NOTHING, split_table


class Unsupported(Exception):
    """PyTorch, or this interpreter, has no counterpart."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv},
    **{"pow": operator.pow, "neg": operator.neg, "min": torch.minimum, "max": torch.maximum},
    **{"abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "floor": torch.floor},
    **{"sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos},
    **{"atan": torch.atan, "tanh": torch.tanh, "erf": torch.erf, "round": torch.round},
    "less": lambda a, b: torch.lt(a, b).to(a.dtype),
    "equal": lambda a, b: torch.eq(a, b).to(a.dtype),
    "select": lambda chosen, a, b: torch.where(chosen != 0, a, b),
}
REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "min": torch.amin, "max": torch.amax}


def computed(node: Node, inputs: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    """Return each element of an expression. Raises Unsupported."""
    if not inputs:
        raise Unsupported(f"{node.name}: an expression without operands")
    try:
        found: Tensor = _value(node.attributes["expression"], inputs, {})
    except KeyError as e:
        raise Unsupported(f"{node.name}: no counterpart in PyTorch for {e.args[0]}") from e
    return found.expand(tuple(shape))


def _value(part: Any, inputs: Sequence[Tensor], known: dict[Any, Any]) -> Any:
    """Return the value of a part; `known`: those that were computed before. Raises KeyError for a function."""
    if isinstance(part, str):
        return inputs[LETTERS.index(part)]
    if not isinstance(part, tuple):
        return torch.full((), part, dtype=inputs[0].dtype, device=inputs[0].device)
    if part not in known:
        known[part] = FUNCTIONS[part[0]](*(_value(each, inputs, known) for each in part[1:]))
    return known[part]


def reduced(node: Node, inputs: Sequence[Tensor], _: Any) -> Tensor:
    """Return the reduction, its axes kept with one element. Raises Unsupported."""
    a, x = node.attributes, inputs[0]
    if a["kind"] not in REDUCTIONS:
        raise Unsupported(f"{node.name}: no counterpart in PyTorch for {a['kind']}")
    found: Tensor = REDUCTIONS[a["kind"]](x * x if a.get("squared") else x, tuple(range(a["start"], a["stop"])), True)
    return found


def places_of(node: Node, table: np.ndarray[Any, Any], device: str) -> tuple[Tensor, Tensor | None]:
    """Return the place of each element of a `take` in its operand, row-major, and where there is none."""
    shape = node.attributes["shape"]
    places, empty = np.zeros((), np.int64), np.zeros((), bool)
    for axis, part in enumerate(split_table(table, shape)):
        along = part.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + np.where(along == NOTHING, 0, along).astype(np.int64) * node.attributes["strides"][axis]
        empty = empty | (along == NOTHING)
    hidden = torch.from_numpy(np.broadcast_to(empty, shape).copy()).to(device) if empty.any() else None
    return torch.from_numpy(np.broadcast_to(places, shape).copy()).to(device), hidden


def taken(node: Node, inputs: Sequence[Any], _: Any) -> Tensor:
    """Return the elements that the tables name."""
    x, (places, empty) = inputs
    found = torch.take(x.contiguous(), places)
    return found if empty is None else found.masked_fill(empty, node.attributes["value"])
