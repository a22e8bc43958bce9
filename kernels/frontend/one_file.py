"""A model whose tensors lie in files beside it, as one file: what is kept or sent elsewhere has no folder."""

from __future__ import annotations

from pathlib import Path

import onnx

from kernels.errors import ModelError

from .onnx.model_file import external_bytes, external_tensors, read_model, stored_bytes

MOST_BYTES = (1 << 31) - 1
"""What protobuf takes as one message."""


def read_whole(path: Path) -> onnx.ModelProto:
    """Parse a model, and put its external data inside. Raises ModelError, also where a file of them cannot be read."""
    model = read_model(path)
    _take_inside(model, path)
    return model


def one_file(model: onnx.ModelProto, path: Path) -> bytes | None:
    """Put the external data of a model that was read from `path` inside, and return its content; None where it has
    none, and is one file already.

    Raises ModelError as `read_whole`, and for more than a file can hold.
    """
    outside = list(external_tensors(model))
    if not outside:
        return None
    try:
        size = model.ByteSize() + sum(map(stored_bytes, outside))
    except ValueError as e:
        raise ModelError(f"{path}: a tensor of its external data: {e}; export the model again") from e
    if size > MOST_BYTES:
        raise ModelError(
            f"{path}: with its external data it has {size} bytes; it is kept as one file, which holds {MOST_BYTES}: "
            "store its weights as FLOAT16, or measure it in parts"
        )
    _take_inside(model, path)
    return bytes(model.SerializeToString())


def _take_inside(model: onnx.ModelProto, path: Path) -> None:
    for tensor in external_tensors(model):
        try:
            tensor.raw_data = external_bytes(tensor, path.parent)
        except ModelError as e:
            raise ModelError(f"{path}: {e}") from e
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
