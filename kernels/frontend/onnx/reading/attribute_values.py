"""The values that ONNX's specification allows for attributes; its schemas know their types alone."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from kernels.errors import ModelError
from kernels.frontend.onnx.operator import Operators

FLAGS = frozenset((
    "align_corners", "antialias", "ceil_mode", "center_point_box", "count_include_pad", "detect_negative",
    "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved", "inverse", "is_causal",
    "keepdims", "largest", "layout", "linear_before_reset", "noop_with_empty_axes", "onesided", "reverse",
    "select_last_index", "sorted", "storage_order", "transA", "transB", "upper",
))  # fmt: skip
"""0 or 1, of whatever operator."""
CHOICES: Mapping[str, tuple[str | int, ...]] = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "padding_mode": ("zeros", "border", "reflection"),
    **dict.fromkeys(FLAGS, (0, 1)),
}
"""Attribute -> values, of whatever operator; an operator's entry may have others."""
_REDUCED = {"reduction": ("none", "mean", "sum")}
_OF_FUNCTIONS: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    "NegativeLogLikelihoodLoss": _REDUCED,
    "SoftmaxCrossEntropyLoss": _REDUCED,
}
"""Operators that have no entry, because they are written out."""


def check_values(node: onnx.NodeProto, operators: Operators) -> None:
    """Raise ModelError for a value that the node's operator does not have; the types were checked."""
    entry = operators.find(node.op_type)
    own = entry.choices if entry else _OF_FUNCTIONS.get(node.op_type, {})
    for attribute in node.attribute:
        allowed = own.get(attribute.name) or CHOICES.get(attribute.name, ())
        given = attribute.s.decode(errors="replace") if attribute.type == onnx.AttributeProto.STRING else attribute.i
        if allowed and given not in allowed:
            name, known = node.name or next(filter(None, node.output), ""), ", ".join(map(str, allowed))
            raise ModelError(f"node {name!r} ({node.op_type}): {attribute.name} is {given!r}; ONNX knows {known}")
