"""Local response normalisation as PyTorch exports it: spelt out with a pooling over channels, made one LRN again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from kernels.frontend.onnx.context import AnyArray
from kernels.frontend.onnx.reading.graphs import names_read

_BACKWARDS = ("Pow", "Add", "Mul", "Squeeze", "AveragePool", "Pad", "Reshape", "Mul")
"""x / (k + alpha * mean of squares) ** beta, from its divisor to its source."""


def join_lrn(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, AnyArray], outputs: Sequence[str]
) -> list[onnx.NodeProto]:
    """The nodes with each such chain replaced by one LRN in the place of its last node."""
    finder = _Finder(nodes, constants, outputs)
    joined, gone = {}, set()
    for node in nodes:
        found = finder.find(node) if node.op_type == "Div" and len(node.input) == 2 else None
        if found is not None:
            chain, joined[node.output[0]] = found
            gone |= {inner.output[0] for inner in chain}
    kept = [node for node in nodes if not node.output or node.output[0] not in gone]
    return [joined.get(node.output[0], node) if node.output else node for node in kept]


class _Finder:
    def __init__(
        self, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, AnyArray], outputs: Sequence[str]
    ) -> None:
        self._writers = {name: node for node in nodes for name in node.output}
        self._reads = Counter([*names_read(nodes), *outputs])
        self._constants = constants

    def find(self, div: onnx.NodeProto) -> tuple[list[onnx.NodeProto], onnx.NodeProto] | None:
        """The chain that ends in this division, and the LRN that it is."""
        chain, gone = self._chain(div.input[1])
        if len(chain) < len(_BACKWARDS) or set(chain[-1].input) != {div.input[0]}:
            return None
        beta, bias, alpha = (self._number(node) for node in chain[:3])
        size = self._window(*chain[3:6])
        if beta is None or bias is None or alpha is None or size is None:
            return None
        numbers = {"size": size, "alpha": alpha, "beta": beta, "bias": bias}
        return gone, onnx.helper.make_node("LRN", [div.input[0]], list(div.output), name=div.name, **numbers)

    def _chain(self, name: str) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
        """The nodes from the divisor back as far as they match, and these with a reshape that may lie between."""
        chain: list[onnx.NodeProto] = []
        gone: list[onnx.NodeProto] = []
        while len(chain) < len(_BACKWARDS):
            node, wanted = self._writers.get(name), _BACKWARDS[len(chain)]
            if node is None or self._reads[name] != 1:
                break
            if node.op_type == wanted:
                chain.append(node)
            elif not (node.op_type == "Reshape" and wanted == "Squeeze"):
                break
            gone.append(node)
            name = node.input[0]
        return chain, gone

    def _number(self, node: onnx.NodeProto) -> float | None:
        """A node's second operand where it is one constant number."""
        value = self._constant(node, 1)
        return float(value.reshape(())) if value is not None and value.size == 1 else None

    def _window(self, squeeze: onnx.NodeProto, pool: onnx.NodeProto, pad: onnx.NodeProto) -> int | None:
        """Channels of the window, where it is centred and slides over channels only."""
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in pool.attribute}
        size, *others = attributes.get("kernel_shape", (0,))
        pads, axes = self._constant(pad, 1), self._constant(squeeze, 1)
        centred = [0, 0, size // 2, 0, 0] * 2
        plain = others == [1, 1] and set(attributes.get("strides", ())) <= {1} and not any(attributes.get("pads", ()))
        if not plain or size % 2 == 0 or pads is None or pads.tolist() != centred or axes is None:
            return None
        value = self._constant(pad, 2)
        is_zero = len(pad.input) < 3 or not pad.input[2] or (value is not None and not np.any(value))
        return int(size) if axes.reshape(-1).tolist() == [1] and is_zero else None

    def _constant(self, node: onnx.NodeProto, index: int) -> AnyArray | None:
        """An operand's value where it is an initializer or written by a Constant node."""
        name = node.input[index] if index < len(node.input) else ""
        writer = self._writers.get(name)
        if name in self._constants or writer is None or writer.op_type != "Constant":
            return self._constants.get(name)
        values = [onnx.helper.get_attribute_value(a) for a in writer.attribute]
        stored = values[0] if len(values) == 1 else None
        if isinstance(stored, onnx.TensorProto) and stored.data_location == onnx.TensorProto.EXTERNAL:
            return None
        return np.asarray(onnx.numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored)
