"""Reading an ONNX file: the protobuf, its structure, and its tensors, also those kept in files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from kernels.errors import ModelError

from .large_weights import stored_bytes, without_weights

OLDEST_OPSET = 7
VERIFIED_OPSET, NEWEST_OPSET = 26, 28
"""Operators are checked against onnxruntime up to the first, against ONNX's own tests up to the second; in a newer
opset those that have not changed since pass."""


@dataclass(frozen=True)
class ModelFile:
    """A model that was read once; its large weights stay in the file until an import takes them."""

    proto: onnx.ModelProto
    path: Path
    name: Path
    """Calls the file so in messages."""
    places: Mapping[str, int]
    """Large weight -> where its numbers begin in the file."""

    def array(self, tensor: onnx.TensorProto) -> npt.NDArray[Any]:
        """The content of an initializer. Raises ModelError."""
        if tensor.name not in self.places:
            return tensor_array(tensor, self.path.parent)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        return np.frombuffer(self._stored(tensor), dtype).reshape(tuple(tensor.dims))

    def whole(self) -> onnx.ModelProto:
        """The model with its large weights inside, which it holds from now on. Raises ModelError."""
        for tensor in self.proto.graph.initializer:
            if tensor.name in self.places:
                tensor.raw_data = self._stored(tensor)
        return self.proto

    def _stored(self, tensor: onnx.TensorProto) -> bytes:
        size = stored_bytes(tensor)
        try:
            with self.path.open("rb") as file:
                file.seek(self.places[tensor.name])
                content = file.read(size)
        except OSError as e:
            raise ModelError(f"{self.name}: cannot be read: {e.strerror or e}") from e
        if len(content) != size:
            raise ModelError(f"{self.name}: it was written to while it was read; try again")
        return content


def read_model(path: Path, name: Path | None = None) -> ModelFile:
    """Parse a model, without its external data. Raises ModelError for what is no complete ONNX model.

    `name`: as messages call it, where that is not its path.
    """
    name = name or path
    places: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            try:
                model = onnx.load_model_from_string(without_weights(file, places))
            except (ValueError, DecodeError):  # a pipe, or damaged, which is told of the whole
                places.clear()
                if file.seekable():
                    file.seek(0)
                content = file.read()
                model = onnx.load_model_from_string(content)
    except OSError as e:
        raise ModelError(f"{name}: cannot be read: {e.strerror or e}; give the path of an .onnx file") from e
    except DecodeError as e:
        raise ModelError(
            f"{name}: truncated, or no ONNX model ({len(content)} bytes): {e}; copy or export it again"
        ) from e
    if not model.HasField("graph") or not model.opset_import or not model.graph.output:
        raise ModelError(f"{name}: no ONNX model: it has no graph, opset or output; copy or export it again")
    if (broken := next(_broken_texts(model), None)) is not None:
        raise ModelError(f"{name}: damaged: {broken!r} stands where a name is expected; copy or export it again")
    return ModelFile(model, path, name, places)


def _broken_texts(message: Message) -> Iterator[bytes]:
    """Yield each name of a model that is no UTF-8: protobuf hands such a text on as bytes."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else (value,)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in values:
                yield from _broken_texts(each)
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield from (each for each in values if isinstance(each, bytes))


def opset(model: onnx.ModelProto, path: Path) -> int:
    """Version of the standard operators. Raises ModelError outside of the range that is supported."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    if version is None:
        if any(node.domain in ("", "ai.onnx") for node in model.graph.node):
            raise ModelError(f"{path}: does not import the standard ONNX operators")
        return VERIFIED_OPSET
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= version <= newest:
        raise ModelError(
            f"{path}: opset {version} is not supported; convert it (onnx.version_converter) or export it again "
            f"with an opset from {OLDEST_OPSET} to {newest}"
        )
    return int(version)


def tensor_array(tensor: onnx.TensorProto, folder: Path) -> npt.NDArray[Any]:
    """The content of a stored tensor; external data is read from files below `folder`. Raises ModelError."""
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"tensor {tensor.name!r} has shape {tuple(tensor.dims)}; an extent cannot be negative")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        stored = onnx.TensorProto()
        stored.CopyFrom(tensor)
        stored.data_location = onnx.TensorProto.DEFAULT
        stored.raw_data = external_bytes(tensor, folder)
        tensor = stored
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as e:
        raise ModelError(
            f"tensor {tensor.name!r} of shape {tuple(tensor.dims)} is damaged: {e}; copy or export the model again"
        ) from e


def external_tensors(message: Message) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of which the data lie in another file: weights, attributes, also of inner graphs and
    functions."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if field.is_repeated else (value,):
                if not isinstance(each, onnx.TensorProto):
                    yield from external_tensors(each)
                elif each.data_location == onnx.TensorProto.EXTERNAL:
                    yield each


def external_bytes(tensor: onnx.TensorProto, folder: Path) -> bytes:
    """The data of a tensor that lie in a file below `folder`. Raises ModelError."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    root = folder.resolve()
    path = root if "\0" in location else (root / location).resolve()
    if not location or path == root or not path.is_relative_to(root):
        raise ModelError(f"tensor {tensor.name!r}: external data {location!r} lies outside of the folder {root}")
    try:
        offset, size = int(entries.get("offset", 0)), stored_bytes(tensor)
        length = int(entries.get("length", size))
        if length != size:
            raise ModelError(
                f"tensor {tensor.name!r} of shape {tuple(tensor.dims)} takes {size} bytes; its external data has "
                f"{length}: export the model again"
            )
        if path.exists() and not path.is_file():
            raise OSError("it is no regular file")
        with path.open("rb") as file:
            file.seek(offset)
            content: bytes = file.read(length)
    except (OSError, ValueError, OverflowError, MemoryError) as e:
        raise ModelError(
            f"tensor {tensor.name!r}: external data file {path} cannot be read: {e}; put it beside the model"
        ) from e
    if length != len(content):
        raise ModelError(f"tensor {tensor.name!r}: {path} ends after {len(content)} of {length} bytes; copy it again")
    return content
