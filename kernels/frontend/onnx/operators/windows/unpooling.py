"""MaxUnpool: what a max pooling made smaller, put back to where it came from."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.frontend.onnx.context import MAX_TENSOR_BYTES, Context, OnnxNode
from kernels.frontend.onnx.operators.scattering import combined
from kernels.frontend.onnx.steps import Steps

from . import numbers
from .maxima import followed, put_back


def max_unpool(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, places = s.operand(0), s.operand(1)
    n, c, *extents = s.shape(x)
    count = len(extents)
    kernel, strides = numbers(s, "kernel_shape", count, 1), numbers(s, "strides", count, 1)
    pads = numbers(s, "pads", 2 * count, 0)
    follows = [
        (extent - 1) * stride - pads[k] - pads[count + k] + size
        for k, (extent, stride, size) in enumerate(zip(extents, strides, kernel, strict=True))
    ]
    sizes = (s.whole_numbers(2) or [n, c, *follows])[2:]
    known = followed(to, places)
    if known is not None:
        of, added = known
        if of.extents == tuple(sizes) and of.counts == tuple(extents) and of.rows == n * c and not added.any():
            found = put_back(s, of, np.arange(of.rows) * of.plane, places, x, 0.0)
            s.end(s.reshape(found, (n, c, *sizes)))
            return
    if sizes != follows:
        node.reject(
            f"output_shape says {sizes}, and {follows} follows from its attributes: runtimes disagree on the one in "
            "which its places are counted, unless they come from a max pooling whose input has that shape"
        )
    total, given = n * c * prod(sizes), n * c * prod(extents)
    if 4 * total * given > MAX_TENSOR_BYTES:
        node.reject(
            f"its places do not come from a max pooling; then each of {given} elements is looked for at each of "
            f"{total} places, which is too much"
        )
    s.places(total)
    zeros = s.constant(np.zeros((1, total, 1)))
    found = combined(s, zeros, s.reshape(places, (1, given)), s.reshape(x, (1, given, 1)))
    s.end(s.reshape(found, (n, c, *sizes)))
