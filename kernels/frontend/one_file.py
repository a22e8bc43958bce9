"""A model whose tensors lie in files beside it, as one file: what is kept or sent elsewhere has no folder."""

from __future__ import annotations

from pathlib import Path

import onnx

from kernels.errors import ModelError

from .onnx.reading.large_weights import stored_bytes
from .onnx.reading.model_file import ModelFile, external_bytes, external_tensors

MOST_BYTES = (1 << 31) - 1
"""The most bytes that protobuf takes as one message."""


def one_file(model: ModelFile, path: Path) -> bytes | None:
    """Put the external data that lie beside `path` into a model, and return its content; None where it has none, and
    is one file already.

    Raises ModelError as `with_data`, and for more than a file can hold.
    """
    outside = list(external_tensors(model.proto))
    if not outside:
        return None
    try:
        size = model.path.stat().st_size + sum(map(stored_bytes, outside))
    except ValueError as e:
        raise ModelError(f"{path}: a tensor of its external data: {e}; export the model again") from e
    if size > MOST_BYTES:
        raise ModelError(
            f"{path}: with its external data it has {size} bytes; it is kept as one file, which holds {MOST_BYTES}: "
            "store its weights as FLOAT16, or measure it in parts"
        )
    return bytes(with_data(model, path).SerializeToString())


def with_data(model: ModelFile, path: Path) -> onnx.ModelProto:
    """Put the external data beside `path` into a model. Raises ModelError where a file of them cannot be read."""
    for tensor in external_tensors(model.proto):
        try:
            tensor.raw_data = external_bytes(tensor, path.parent)
        except ModelError as e:
            raise ModelError(f"{path}: {e}") from e
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return model.whole()
