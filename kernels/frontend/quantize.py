"""Quantize a model's layers: its weights by channels to int8, their inputs by one scale to uint8, as QDQ nodes.

Method: B. Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference
(2018): the range of an activation is the least and the largest number that it had, with 0 among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from kernels.errors import ModelError
from kernels.ir.graph import Array, Graph
from kernels.reference import evaluate

from .examples import Examples
from .one_file import with_data
from .onnx.reading.graphs import every_node, names_read
from .onnx.reading.inputs import type_name
from .onnx.reading.model_file import ModelFile, opset, tensor_array
from .spelling import spelled

OLDEST = 13
"""Opset from which a weight has a scale for each channel."""
LAYERS = tuple(map(spelled, ("conv", "gemm", "matmul")))
Ranges = dict[str, tuple[float, float]]


def activations(graph: Graph, examples: Examples, which: range) -> Iterable[Mapping[str, Array]]:
    """Every activation by its name, of one inference after another, by the reference in fp32."""
    for given in examples.inferences(which).values():
        for inputs in given:
            yield evaluate(graph, {graph.inputs[0]: inputs}, dtype=np.float32, keep=True)


def ranges(found: Iterable[Mapping[str, Array]]) -> Ranges:
    """Return the least and the largest number of each activation."""
    known: Ranges = {}
    for values in found:
        for name, array in values.items():
            low, high = known.get(name, (0.0, 0.0))
            known[name] = min(low, float(array.min())), max(high, float(array.max()))
    return known


def check_quantizable(file: ModelFile) -> None:
    """Raises ModelError for a model that is too old. Its external data are not read."""
    if opset(file.proto, file.name) < OLDEST:
        raise ModelError(f"{file.name}: scales by channels need opset {OLDEST} or newer; export the model with it")


class Quantizer:
    """One model, to whose layers QDQ nodes are added."""

    def __init__(self, file: ModelFile, known: Ranges) -> None:
        """Take a model, which is the quantizer's from now on. Raises ModelError for one that is too old, or has no
        layer with a constant weight."""
        check_quantizable(file)
        self._model = with_data(file, file.path)
        self.bytes_before = self._model.ByteSize()
        """Bytes of the model, with its external data."""
        self._known, self._folder = known, file.path.parent
        self._stored = {tensor.name: tensor for tensor in self._model.graph.initializer}
        nodes = [*every_node(self._model.graph.node)]
        self._names = {*names_read(nodes), *(name for node in nodes for name in node.output), *self._stored}
        self._done: dict[tuple[str, int | None], str] = {}
        self._nodes: list[onnx.NodeProto] = []
        self.layers: list[str] = []
        """Outputs of those that were quantized."""
        for node in self._model.graph.node:
            self._add(node)
        if not self.layers:
            raise ModelError(
                f"{file.name}: no {', '.join(LAYERS)} has an fp32 weight that is stored; nothing to quantize: "
                f"{self._mend()}"
            )

    def _mend(self) -> str:
        """Tell what the one who brings the model can do."""
        weights = [node.input[1] for node in self._model.graph.node if node.op_type in LAYERS and len(node.input) > 1]
        stored = {self._stored[name].data_type for name in weights if name in self._stored}
        if types := stored - {onnx.TensorProto.FLOAT}:
            names = ", ".join(map(type_name, sorted(types)))
            return f"weights are stored as {names}; export the model in fp32"
        if weights:
            return "weights are computed by nodes, as in a model that is quantized already; bring it as it was before"
        return "measure it in fp32 or fp16"

    def write(self, path: Path) -> None:
        """Write the model; what no node reads any more is left out, and all data lie in the one file."""
        graph = self._model.graph
        del graph.node[:]
        graph.node.extend(self._nodes)
        read = {*names_read(self._nodes), *(port.name for port in graph.output)}
        kept = [tensor for name, tensor in self._stored.items() if name in read]
        ports = [port for port in graph.input if port.name in read or port.name not in self._stored]
        del graph.initializer[:], graph.input[:]
        graph.initializer.extend(kept)
        graph.input.extend(ports)
        path.write_bytes(self._model.SerializeToString())

    def _add(self, node: onnx.NodeProto) -> None:
        weight = self._stored.get(node.input[1]) if node.op_type in LAYERS and len(node.input) > 1 else None
        fits = weight is not None and weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) > 1
        if weight is not None and fits and node.input[0] in self._known:
            node.input[0] = self._activation(node.input[0])
            node.input[1] = self._weight(weight, _channels(node, len(weight.dims)))
            self.layers.append(node.output[0])
        self._nodes.append(node)

    def _activation(self, name: str) -> str:
        """Return the activation's name after a step to uint8 and back."""
        if (name, None) not in self._done:
            low, high = self._known[name]
            scale = np.float32((high - low) / 255 or 1.0)
            zero = np.uint8(np.clip(np.rint(-low / float(scale)), 0, 255))
            by = [self._store(f"{name}.scale", np.asarray(scale)), self._store(f"{name}.zero", np.asarray(zero))]
            whole, real = self._fresh(f"{name}.uint8"), self._fresh(f"{name}.dequantized")
            self._nodes.append(helper.make_node(spelled("quantize_linear"), [name, *by], [whole], name=whole))
            self._nodes.append(helper.make_node(spelled("dequantize_linear"), [whole, *by], [real], name=real))
            self._done[name, None] = real
        return self._done[name, None]

    def _weight(self, tensor: onnx.TensorProto, axis: int) -> str:
        """Return the weight's name after storage in int8, by a scale for each place along an axis."""
        name = tensor.name
        if (name, axis) not in self._done:
            array = tensor_array(tensor, self._folder)
            others = tuple(each for each in range(array.ndim) if each != axis)
            most = np.abs(array).max(axis=others, keepdims=True)
            scale = np.where(most > 0, most / np.float32(127), np.float32(1)).astype(np.float32)
            whole = np.clip(np.rint(array / scale), -127, 127).astype(np.int8)
            stored = [
                self._store(f"{name}.int8", whole),
                self._store(f"{name}.scale", scale.reshape(-1)),
                self._store(f"{name}.zero", np.zeros(scale.size, np.int8)),
            ]
            real = self._fresh(f"{name}.dequantized")
            self._nodes.append(helper.make_node(spelled("dequantize_linear"), stored, [real], name=real, axis=axis))
            self._done[name, axis] = real
        return self._done[name, axis]

    def _store(self, base: str, array: npt.NDArray[np.generic]) -> str:
        name = self._fresh(base)
        self._stored[name] = numpy_helper.from_array(array, name)
        return name

    def _fresh(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _channels(node: onnx.NodeProto, rank: int) -> int:
    """The axis of a weight along which lie what a layer computes."""
    turned = any(each.name == "transB" and each.i for each in node.attribute)
    return 0 if node.op_type == LAYERS[0] or turned else rank - 1
