"""Roundings of a layer's input to 8 bits: by steps that the model gives, or by its own range.

Method: ONNX's QuantizeLinear, q = saturate(round(x / scale) + zero), DequantizeLinear, (q - zero) * scale, and
DynamicQuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernels.ir.compositions import BACK, ROUNDED, SCALE, ZERO
from kernels.ir.graph import Graph, Node

_LEVELS = 255
"""Steps between the least and the largest number of 8 bits."""
Steps = tuple[float, int]
"""Scale, and 0 as uint8."""


@dataclass(frozen=True)
class Input:
    """The tensor that was rounded, and its steps."""

    name: str
    steps: Steps | None
    """None: its own range gives them."""
    scale: str = ""
    """The tensor that holds the scale of its own range."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the layer that rounds it itself; `own_range`: as DynamicQuantizeLinear does."""
        return {"own_range": True} if self.steps is None else {"input_steps": self.steps}


def counted(by: Mapping[str, Node], name: str) -> str:
    """Return the tensor whose elements reshapes only count in another way."""
    while (node := by.get(name)) is not None and node.op == "reshape":
        name = node.inputs[0]
    return name


def qdq_pair(by: Mapping[str, Node], tensor: str) -> tuple[str, Steps] | None:
    """Return what a QDQ pair before a tensor read, and its steps; None: there is no pair."""
    back = by.get(tensor)
    there = by.get(back.inputs[0]) if back is not None and back.op == "map" and back.inputs else None
    if back is None or there is None or there.op != "map":
        return None
    match there.attributes["expression"], back.attributes["expression"]:
        case (
            ("min", ("max", ("add", ("round", ("div", "a", float(scale))), float(zero)), float(low)), float(high)),
            ("mul", ("sub", "a", float(same_zero)), float(same_scale)),
        ) if (scale, zero) == (same_scale, same_zero) and scale > 0 and high - low == _LEVELS:
            return there.inputs[0], (scale, int(zero - low))
    return None


def rounded_input(graph: Graph, by: Mapping[str, Node], tensor: str) -> Input | None:
    """Return what the rounding before a tensor read, which may have another shape; None: there is none."""
    name = counted(by, tensor)
    if (pair := qdq_pair(by, name)) is not None:
        return Input(*pair)
    back = by.get(name)
    if back is None or back.op != "map":
        return None
    names, there = back.inputs, by.get(counted(by, back.inputs[0]))
    if back.attributes["expression"] == ("mul", ("sub", "a", "b"), "c") and there is not None and there.op == "map":
        same = [counted(by, name) for name in (*there.inputs[2:], *there.inputs[1:2])]
        if there.attributes["expression"] != ROUNDED or same != [counted(by, name) for name in back.inputs[1:]]:
            return None
        names = there.inputs
    elif back.attributes["expression"] != BACK:
        return None
    return Input(names[0], None, names[1]) if is_own_range(graph, by, *names) else None


def is_own_range(graph: Graph, by: Mapping[str, Node], x: str, scale: str, zero: str) -> bool:
    """Return whether a scale and a zero are those of the range of all of a tensor."""
    makers = [by.get(counted(by, name)) for name in (scale, zero)]
    if any(node is None or node.op != "map" for node in makers):
        return False
    of_scale, of_zero = (node for node in makers if node is not None)
    if (of_scale.attributes["expression"], of_zero.attributes["expression"]) != (SCALE, ZERO):
        return False
    ends = [(of_scale.inputs[0], "max"), (of_scale.inputs[1], "min"), (of_zero.inputs[0], "min")]
    return counted(by, of_zero.inputs[1]) == counted(by, scale) and all(
        _is_end(graph, by, x, name, kind) for name, kind in ends
    )


def _is_end(graph: Graph, by: Mapping[str, Node], x: str, name: str, kind: str) -> bool:
    node = by.get(counted(by, name))
    if node is None or node.op != "reduce" or counted(by, node.inputs[0]) != counted(by, x):
        return False
    a, rank = node.attributes, len(graph.shapes[node.inputs[0]])
    return (a["kind"], a["start"], a["stop"]) == (kind, 0, rank) and not a.get("squared")
