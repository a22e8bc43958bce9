"""The values that ONNX's specification allows for attributes; its schemas know their types alone."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from kernels.errors import ModelError

FLAGS = frozenset((
    "align_corners", "antialias", "ceil_mode", "center_point_box", "count_include_pad", "detect_negative",
    "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved", "inverse", "is_causal",
    "keepdims", "largest", "layout", "linear_before_reset", "noop_with_empty_axes", "onesided", "reverse",
    "select_last_index", "sorted", "storage_order", "transA", "transB", "upper",
))  # fmt: skip
"""0 or 1, of whatever operator."""
_SCATTERED = ("none", "add", "mul", "max", "min")
_REDUCED = ("none", "mean", "sum")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_INTERPOLATED = ("nearest", "linear", "cubic")
CHOICES: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    "approximate": {"Gelu": ("none", "tanh")},
    "auto_pad": {"": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")},
    "coordinate_transformation_mode": {
        "Resize": (
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_half_pixel_for_nn", "tf_crop_and_resize",
        ),
        "RoiAlign": ("half_pixel", "output_half_pixel"),
    },
    "direction": {
        "BitShift": ("LEFT", "RIGHT"), "GRU": _DIRECTIONS, "LSTM": _DIRECTIONS, "RNN": _DIRECTIONS,
    },
    "keep_aspect_ratio_policy": {"": ("stretch", "not_larger", "not_smaller")},
    "mode": {
        "DepthToSpace": ("DCR", "CRD"), "GridSample": ("bilinear", "bicubic", *_INTERPOLATED),
        "Pad": ("constant", "reflect", "edge", "wrap"), "Resize": _INTERPOLATED, "RoiAlign": ("avg", "max"),
        "TensorScatter": ("linear", "circular"), "Upsample": _INTERPOLATED,
    },
    "nearest_mode": {"": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    "p": {"LpNormalization": (1, 2)},
    "padding_mode": {"": ("zeros", "border", "reflection")},
    "reduction": {
        "NegativeLogLikelihoodLoss": _REDUCED, "ScatterElements": _SCATTERED, "ScatterND": _SCATTERED,
        "SoftmaxCrossEntropyLoss": _REDUCED,
    },
}  # fmt: skip
"""Attribute -> operator, or '' for every one that has it -> values."""


def check_values(node: onnx.NodeProto) -> None:
    """Raise ModelError for a value that the node's operator does not have; the types were checked."""
    for attribute in node.attribute:
        if attribute.name in FLAGS:
            allowed: tuple[str | int, ...] = (0, 1)
        else:
            of = CHOICES.get(attribute.name, {})
            allowed = of.get(node.op_type, of.get("", ()))
        given = attribute.s.decode(errors="replace") if attribute.type == onnx.AttributeProto.STRING else attribute.i
        if allowed and given not in allowed:
            name, known = node.name or next(filter(None, node.output), ""), ", ".join(map(str, allowed))
            raise ModelError(f"node {name!r} ({node.op_type}): {attribute.name} is {given!r}; ONNX knows {known}")
