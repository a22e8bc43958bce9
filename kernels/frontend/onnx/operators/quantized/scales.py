"""Scales and zero points of quantized tensors: one for all elements, one for each place along an axis, or of blocks."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
import onnx

from kernels.frontend.onnx.context import AnyArray, OnnxNode


def shape_along(node: OnnxNode, given: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which one scale, or one for each place along the node's axis, broadcasts to a tensor.

    Raises ModelError for as many as there are no places.
    """
    if prod(given) == 1:
        return ()
    axis = node.axis(node.attributes.get("axis", 1), len(shape))
    if given != (shape[axis],):
        node.damaged(f"scales of shape {given} for {shape[axis]} places along axis {axis}")
    return (shape[axis],) + (1,) * (len(shape) - axis - 1)


def spread(node: OnnxNode, value: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Scales or zero points, constants, in a shape that broadcasts to a tensor; those of blocks are repeated."""
    block = int(node.attributes.get("block_size", 0))
    if not block:
        return value.reshape(shape_along(node, value.shape, shape))
    axis = check_blocks(node, value.shape, shape)
    return np.take(value, np.arange(shape[axis]) // block, axis)


def check_blocks(node: OnnxNode, given: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """The axis that is in blocks. Raises ModelError where there is not one scale for each."""
    axis, block = node.axis(node.attributes.get("axis", 1), len(shape)), int(node.attributes["block_size"])
    if block < 1 or given != (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :]):
        node.damaged(f"scales of shape {given} for blocks of {block} of {shape}")
    return axis


def dequantized(node: OnnxNode, x: AnyArray, scale: AnyArray, zero: AnyArray | None = None) -> AnyArray:
    """A constant in fp32, by its scale and zero point."""
    whole = x.astype(np.float32)
    if zero is not None:
        whole -= spread(node, zero, x.shape).astype(np.float32)
    whole *= spread(node, scale, x.shape).astype(np.float32)
    return whole


def limits(node: OnnxNode, kind: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest number of a type that is quantized to. Raises UnsupportedNode for no whole numbers."""
    name = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(kind))
    found = re.fullmatch(r"(U?)INT(2|4|8|16)", name)
    if found is None:
        node.reject(f"quantized to {name}; supported: INT8, UINT8, and those of 2, 4 and 16 bits")
    bits = int(found[2])
    return (0.0, 2.0**bits - 1) if found[1] else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
