"""Activations of 8 bits between their least and greatest number, and 0, found in each run."""

from __future__ import annotations

import numpy as np
import onnx

from kernels.frontend.onnx.context import AnyArray, OnnxNode
from kernels.frontend.onnx.nodes import OPSET, Nodes
from kernels.frontend.onnx.operators.recurrent import IN_EIGHT_BITS
from kernels.frontend.spelling import spelled


def matmul(n: Nodes) -> None:
    """DynamicQuantizeMatMul: the first factor is rounded so."""
    a, b, b_scale, b_zero, bias = (*n.node.inputs, "", "")[:5]
    whole, scale, zero = n.several("dynamic_quantize_linear", 3, a)
    y = n.cast(n.matmul_integer(whole, b, zero, *([b_zero] if b_zero else [])), to=onnx.TensorProto.FLOAT)
    y = n.mul(y, n.mul(scale, b_scale))
    n.end(n.add(y, bias) if bias else y)


def lstm(n: Nodes) -> None:
    """DynamicQuantizeLSTM: stored weights of 8 bits, (directions, inputs, 4 x hidden) each; the input of all steps and
    each step's state are rounded so."""
    x, _, _, *more = n.node.inputs[:8]
    weights = [n.store(_real(n, index, scale).transpose(0, 2, 1), np.float32) for index, scale in ((1, 8), (2, 10))]
    inputs = (x, *weights, *more)
    attributes = {**n.node.attributes, IN_EIGHT_BITS: 1}
    n.import_(OnnxNode(n.node.name, spelled("lstm"), OPSET, inputs, n.node.outputs, attributes), n.to)


def _real(n: Nodes, index: int, scale: int) -> AnyArray:
    """A weight by its scale and the zero behind that: one of each direction, or of each of its columns."""
    weight, by = n.constant(index), n.constant(scale)
    shape = (len(weight), 1, -1)
    zero = n.constant(scale + 1).reshape(shape) if n.node.input(scale + 1) else 0.0
    real: AnyArray = (weight.astype(np.float32) - np.asarray(zero, np.float32)) * by.reshape(shape)
    return real
