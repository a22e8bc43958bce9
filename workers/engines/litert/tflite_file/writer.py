"""The only subgraph of a .tflite file as it is gathered."""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from kernels.ir.graph import Graph, Node

CODE = schema.BuiltinOperator
_LAST_OLD_CODE = 127
"""Codes beyond it are only in the new field."""
_TYPES = {np.dtype(np.float32): schema.TensorType.FLOAT32, np.dtype(np.int32): schema.TensorType.INT32}


class Unsupported(Exception):
    """LiteRT, or this writer, has no counterpart."""


class Writer:
    """Tensors, operators and buffers of the file's only subgraph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._buffers = [schema.BufferT()]
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._codes: dict[int, int] = {}
        self._places: dict[str, int] = {}

    def activation(self, name: str) -> int:
        """Index of a graph's tensor, images as NHWC."""
        if name not in self._places:
            self._places[name] = self.fresh(name, channels_last(self.graph.shapes[name]))
        return self._places[name]

    def fresh(self, name: str, shape: tuple[int, ...]) -> int:
        return self._tensor(name, shape, schema.TensorType.FLOAT32, 0)

    def constant(self, name: str, array: np.ndarray[Any, Any]) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self._buffers.append(buffer)
        return self._tensor(name, array.shape, _TYPES[array.dtype], len(self._buffers) - 1)

    def weight(self, name: str) -> np.ndarray[Any, Any]:
        return np.asarray(self.graph.constants[name], np.float32)

    def bias(self, node: Node, size: int) -> int:
        given = len(node.inputs) > 2 and node.inputs[2]
        array = self.weight(node.inputs[2]) if given else np.zeros(size, np.float32)
        return self.constant(f"{node.name}/bias", array)

    def add(
        self, code: int, inputs: list[int], output: int, options: Any = None, kind: int = schema.BuiltinOptions.NONE
    ) -> None:
        operator = schema.OperatorT()
        operator.opcodeIndex = self._codes.setdefault(code, len(self._codes))
        operator.inputs, operator.outputs = np.asarray(inputs, np.int32), np.asarray([output], np.int32)
        operator.builtinOptionsType, operator.builtinOptions = kind, options
        self._operators.append(operator)

    def finish(self, inputs: list[int], outputs: list[int]) -> bytes:
        subgraph, model = schema.SubGraphT(), schema.ModelT()
        subgraph.tensors, subgraph.operators = self._tensors, self._operators
        subgraph.inputs, subgraph.outputs = np.asarray(inputs, np.int32), np.asarray(outputs, np.int32)
        model.version, model.subgraphs, model.buffers = 3, [subgraph], self._buffers
        model.operatorCodes = [_code(code) for code in self._codes]
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _tensor(self, name: str, shape: tuple[int, ...], kind: int, buffer: int) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = name.encode(), kind, buffer
        tensor.shape = np.asarray(shape, np.int32)
        self._tensors.append(tensor)
        return len(self._tensors) - 1


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """NCHW -> NHWC; others as they are."""
    return (shape[0], shape[2], shape[3], shape[1]) if len(shape) == 4 else tuple(shape)


def _code(code: int) -> Any:
    found = schema.OperatorCodeT()
    found.builtinCode, found.deprecatedBuiltinCode, found.version = code, min(code, _LAST_OLD_CODE), 1
    return found
