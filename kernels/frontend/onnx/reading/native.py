"""ONNX's own C++ (shape inference and the inliner) in a process of its own: what a damaged model ends, or keeps busy
for ever, is that process, and the model is refused.

ONNX 1.23 reads past the end of arrays where a Split says fewer outputs than it has, where `batch_dims` of a GatherND is
negative, and where the axis of a LayerNormalization is none. Run as a program, this file is that process. It ends by
itself, and is started again where it is needed.
"""

from __future__ import annotations

import atexit
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

import onnx
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import Message

IDLE_S, LIMIT_S = 5, 10
"""Time without a call, and processor time of a call, after which the process ends."""
MEMORY_BYTES = 4 << 30
KEPT_BYTES = 1 << 12
"""Bytes of a tensor that the inference may look into; larger ones are known by their shape."""


class InferenceFailed(Exception):
    """ONNX has something against a node or a model."""


class TypesDiffer(InferenceFailed):
    """An input has a type that its operator does not take."""


class BrokenDown(InferenceFailed):
    """ONNX's code ended, or would not end."""


_KINDS = {kind.__name__: kind for kind in (InferenceFailed, TypesDiffer)}


def node_types(
    node: onnx.NodeProto, opset: int, ir_version: int, types: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Types of the outputs that ONNX can tell, of a node of ONNX's own: `types` (TypeProto) and contents (TensorProto)
    of its inputs by name. Raises InferenceFailed."""
    found = _call(
        "node_types", node.SerializeToString(), opset, ir_version,
        {name: each.SerializeToString() for name, each in types.items()},
        {name: each.SerializeToString() for name, each in data.items()},
    )  # fmt: skip
    return {name: onnx.TypeProto.FromString(each) for name, each in found.items()}


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without its large constants, with the shapes that ONNX can tell. Raises InferenceFailed."""
    return onnx.ModelProto.FromString(_call("with_types", _without_weights(model).SerializeToString()))


def inlined(model: onnx.ModelProto, kept: Sequence[tuple[str, str]]) -> onnx.ModelProto:
    """The model with functions written out, but those `kept` (domain, operator). Raises InferenceFailed."""
    found = onnx.ModelProto.FromString(_call("inlined", _without_weights(model).SerializeToString(), [*kept]))
    del found.graph.initializer[:]
    found.graph.initializer.extend(model.graph.initializer)
    return found


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large constants are declared only; it never holds them itself."""
    light = onnx.ModelProto()
    _copy(model, light, "graph")
    _copy(model.graph, light.graph, "initializer")
    for tensor in model.graph.initializer:
        if max(tensor.ByteSize(), prod(tensor.dims)) <= KEPT_BYTES:  # the numbers of large ones stay in their file
            light.graph.initializer.append(tensor)
        else:
            light.graph.value_info.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tuple(tensor.dims))
            )
    return light


def _copy(source: Message, target: Message, left_out: str) -> None:
    """All fields but one."""
    for field, value in source.ListFields():
        if field.name == left_out:
            continue
        if hasattr(value, "MergeFrom"):  # a message, or a repeated field
            getattr(target, field.name).MergeFrom(value)
        else:
            setattr(target, field.name, value)


class _Process:
    """The process, as far as there is one now."""

    def __init__(self) -> None:
        self.forget()
        os.register_at_fork(after_in_child=self.forget)
        atexit.register(self._end)

    def forget(self) -> None:
        """There is none: a fork has no part in its parent's, nor in a call that another thread of it was in."""
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def ask(self, request: tuple[Any, ...]) -> tuple[str, Any]:
        """Send a request and return the answer. Raises EOFError where it ends instead."""
        with self._lock:
            connection = self._connection or self._start()
            try:
                connection.send(request)
                answer: tuple[str, Any] = connection.recv()
            except OSError as e:  # EOFError is none
                self._end()
                raise EOFError(str(e)) from e
            except EOFError:
                self._end()
                raise
            return answer

    def _start(self) -> Connection:
        self._connection, theirs = Pipe()
        with theirs:
            command, nowhere = [sys.executable, "-P", str(Path(__file__)), str(theirs.fileno())], subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=nowhere, stdout=nowhere, stderr=nowhere
            )
        return self._connection

    def _end(self) -> None:
        if self._process and self._connection:
            self._connection.close()
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None


_process = _Process()


def _call(name: str, *arguments: Any) -> Any:
    for _ in range(2):  # it may have ended because nobody asked for long
        try:
            kind, value = _process.ask((name, *arguments))
        except EOFError:
            continue
        if kind:
            raise _KINDS[kind](value)
        return value
    raise BrokenDown("ONNX's own shape inference breaks down at it")


def _node_types(
    node: bytes, opset: int, ir_version: int, types: Mapping[str, bytes], data: Mapping[str, bytes]
) -> dict[str, bytes]:
    proto = onnx.NodeProto.FromString(node)
    found = onnx.shape_inference.infer_node_outputs(
        onnx.defs.get_schema(proto.op_type, opset),
        proto,
        {name: onnx.TypeProto.FromString(each) for name, each in types.items()},
        {name: onnx.TensorProto.FromString(each) for name, each in data.items()},
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        ir_version=ir_version,
    )
    return {name: each.SerializeToString() for name, each in found.items()}


def _with_types(model: bytes) -> bytes:
    return bytes(onnx.shape_inference.infer_shapes(model, data_prop=True).SerializeToString())


def _inlined(model: bytes, kept: list[tuple[str, str]]) -> bytes:
    found = onnx.inliner.inline_selected_functions(
        onnx.ModelProto.FromString(model), kept, exclude=True, inline_schema_functions=True
    )
    return bytes(found.SerializeToString())


_CALLS: dict[str, Callable[..., Any]] = {"node_types": _node_types, "with_types": _with_types, "inlined": _inlined}


def _serve(calls: Connection) -> None:
    """Answer calls until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(IDLE_S)
        try:
            name, *arguments = calls.recv()
        except (EOFError, OSError):
            return
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            answer = ("", _CALLS[name](*arguments))
        except onnx.checker.ValidationError as e:
            answer = (TypesDiffer.__name__, str(e))
        except Exception as e:  # whatever its bindings raise of a damaged model
            answer = (InferenceFailed.__name__, str(e).removeprefix("[ShapeInferenceError] ").strip().rstrip("."))
        calls.send(answer)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
