"""Whole numbers bit by bit."""

from __future__ import annotations

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.ir.expressions import Expression

from .functions import wrapped
from .steps import Steps

BITWISE = {"BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor"}


def bitwise(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(s.map((BITWISE[node.op], "a", "b"), s.operand(0), s.operand(1)))


def bitwise_not(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(s.map(("bit_not", "a"), s.operand(0)))


def bit_shift(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    left = str(s.attribute("direction")) == "LEFT"
    shifted: Expression = ("shift_left" if left else "shift_right", "a", "b")
    found = s.map(shifted, s.operand(0), s.operand(1))
    s.end(s.map(wrapped("a", to.type_of(s.operand(0))), found) if left else found)
