"""A node's activation as the three scalars that kernels and CPU operations take."""

from __future__ import annotations

from kernels.ir import compositions
from kernels.ir.activations import ACTIVATIONS, activation_of
from kernels.ir.expressions import Expression
from kernels.ir.graph import Node

FLOAT_MAX = 3.4028234663852886e38
AT_END: dict[str, tuple[int, Expression]] = {
    "tanh": (7, ("tanh", "a")),
    "silu": (8, compositions.silu("a")),
    "gelu": (9, compositions.gelu("a")),
    "gelu_tanh": (10, compositions.gelu_tanh("a")),
}
"""Functions at the end of layers, beside `kernels/ir/activations.py`: the code, and the expression."""
BY_FUNCTION = {code: (name, meant) for name, (code, meant) in AT_END.items() if name != "silu"}
"""The ends that GPU programs have as functions, in programs of their own: others would carry them along."""


def activation_scalars(node: Node) -> tuple[int, float, float]:
    """(code, lo, hi) of a node: fused in its attribute, or the node itself is one."""
    if not (activation := activation_of(node)):
        return 0, 0.0, 0.0
    name, *numbers = activation
    if name in AT_END:
        return AT_END[name][0], 0.0, 0.0
    code = ACTIVATIONS[name].code
    lo, hi = (*(max(-FLOAT_MAX, min(FLOAT_MAX, float(number))) for number in numbers), 0.0, 0.0)[:2]
    is_relu = name == "clip" and (lo, hi) == (0.0, FLOAT_MAX)
    return (ACTIVATIONS["relu"].code, 0.0, 0.0) if is_relu else (code, lo, hi)
