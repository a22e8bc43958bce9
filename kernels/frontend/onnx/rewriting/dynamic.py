"""Activations of 8 bits between their least and greatest number, and 0, found in each run."""

from __future__ import annotations

import numpy as np
import onnx

from kernels.frontend.onnx.context import AnyArray, OnnxNode
from kernels.frontend.onnx.nodes import OPSET, Nodes
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.operators.recurrent import IN_EIGHT_BITS
from kernels.frontend.spelling import spelled


def linear(n: Nodes) -> None:
    """DynamicQuantizeLinear, as onnxruntime has it: nothing but zeros has the scale 1, where ONNX divides 0 by 0."""
    scale, at = _scale(n, n.node.input(0))
    zero = n.cast(at, to=onnx.TensorProto.UINT8)
    n.quantize_linear(n.node.input(0), scale, zero, to_output=0)
    n.end(scale, 1)
    n.end(zero, 2)


def matmul(n: Nodes) -> None:
    """DynamicQuantizeMatMul: the first factor is rounded so."""
    a, b, b_scale, b_zero, bias = (*n.node.inputs, "", "")[:5]
    scale, at = _scale(n, a)
    zero, most = n.store(0, np.float32), n.store(255, np.float32)
    steps = n.clip(n.add(n.round(n.div(a, scale)), at), zero, most)
    weight = n.dequantize_linear(b, b_scale, *([b_zero] if b_zero else []), axis=len(n.shape(b)) - 1)
    y = n.mul(n.matmul(n.sub(steps, at), weight), scale)
    n.end(n.add(y, bias) if bias else y)


def _scale(n: Nodes, x: str) -> tuple[str, str]:
    """Return the size of a step, and the step that is 0."""
    zero, most, one = (n.store(number, np.float32) for number in (0, 255, 1))
    low = n.min(n.reduce_min(x, keepdims=0), zero)
    span = n.sub(n.max(n.reduce_max(x, keepdims=0), zero), low)
    scale = n.where(n.equal(span, zero), one, n.div(span, most))
    return scale, n.round(n.clip(n.div(n.neg(low), scale), zero, most))


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


OPERATORS = (Operator("DynamicQuantizeLinear", write=linear),)
