"""A model's inputs: their types, and their shapes, which are static but for the batch."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from kernels.errors import ModelError
from kernels.ir.shapes import Shape

INPUT_TYPES = (
    onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL,
    onnx.TensorProto.INT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.UINT16,
    onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE,
)  # fmt: skip
"""All are given, and computed, as fp32, which holds whole numbers up to 2^24."""


def input_shapes(ports: Iterable[onnx.ValueInfoProto], batch: int | None) -> tuple[dict[str, Shape], dict[str, str]]:
    """Shapes of the inputs that can be taken, and why each other one cannot, both by name."""
    found: dict[str, Shape] = {}
    refused: dict[str, str] = {}
    for port in ports:
        try:
            found[port.name] = _shape(port, batch)
        except ModelError as e:
            refused[port.name] = str(e)
    return found, refused


def changed_batch(ports: Iterable[onnx.ValueInfoProto], batch: int | None) -> tuple[int, int] | None:
    """(in the file, asked) where a fixed batch size is replaced."""
    if batch is None:
        return None
    shapes = [port.type.tensor_type.shape.dim for port in ports]
    fixed = {shape[0].dim_value for shape in shapes if shape and shape[0].dim_value > 0} - {batch}
    return (min(fixed), batch) if fixed else None


def _shape(port: onnx.ValueInfoProto, batch: int | None) -> Shape:
    """Raises ModelError for a type that is not known and extents that are open or none."""
    tensor, name, type_name = port.type.tensor_type, port.name, onnx.TensorProto.DataType.Name
    if tensor.elem_type not in INPUT_TYPES:
        known = onnx.TensorProto.DataType.items()
        given = next((word for word, number in known if number == tensor.elem_type), f"type {tensor.elem_type}")
        mend = "compute numbers from the text before the model" if given == "STRING" else "cast it before the model"
        raise ModelError(
            f"input {name!r} is {given}; only tensors of {', '.join(map(type_name, INPUT_TYPES))} are supported: "
            f"{mend}, and export what follows"
        )
    if not tensor.HasField("shape"):
        raise ModelError(f"input {name!r} has no shape; export the model with static shapes")
    extents = tensor.shape.dim
    empty = [axis for axis, d in enumerate(extents) if axis and d.HasField("dim_value") and d.dim_value < 1]
    if empty:
        raise ModelError(f"input {name!r}: dimension {empty[-1]} is not positive; export the model with a real size")
    dynamic = [(axis, d.dim_param or "?") for axis, d in enumerate(extents) if axis and d.dim_value < 1]
    if dynamic:
        words = ", ".join(f"dimension {axis} ({extent!r})" for axis, extent in dynamic)
        raise ModelError(
            f"input {name!r} is dynamic in {words}; only the first, the batch, may be: "
            "export the model with static shapes, or fix them with onnx.tools.update_model_dims"
        )
    first = [batch or max(1, extents[0].dim_value)] if extents else []
    return (*first, *(d.dim_value for d in extents[1:]))
