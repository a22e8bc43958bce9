"""A model's inputs: their types, and their shapes, of which the file may leave sizes open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from kernels.errors import InputError, ModelError, OptionError
from kernels.frontend.input_file import Given

INPUT_TYPES = (
    onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL,
    onnx.TensorProto.INT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.UINT16,
    onnx.TensorProto.UINT32, onnx.TensorProto.UINT64, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.DOUBLE,
)  # fmt: skip
"""Halves and doubles are given, and computed, as fp32."""


def fixed_inputs(ports: Sequence[onnx.ValueInfoProto], sizes: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The inputs that `sizes` names as it names a size: constants that hold the number, so that all that depends on
    them alone is known. Raises OptionError for a number that an input does not hold."""
    tensors = {port.name: port for port in ports if port.type.tensor_type.HasField("shape")}
    declared = {name: declared_sizes(port) for name, port in tensors.items()}
    found: dict[str, npt.NDArray[Any]] = {}
    for name in sizes.keys() & tensors.keys() - {size for shape in declared.values() for size in shape}:
        if (kind := tensors[name].type.tensor_type.elem_type) not in INPUT_TYPES:
            continue
        shape = tuple(size if isinstance(size, int) else 1 for size in declared[name])
        try:
            value = np.asarray(sizes[name])
            found[name] = np.broadcast_to(value.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)), shape)
            holds = bool((found[name] == value).all())
        except (OverflowError, ValueError):
            holds = False
        if not holds:
            there = f"{type_name(kind)} of {_words(declared[name])}"
            raise OptionError(f"{name}={sizes[name]}: the input {name!r} is {there}: give a number that it holds")
    return found


def input_shapes(
    ports: Sequence[onnx.ValueInfoProto], batch: int | None, sizes: Mapping[str, int], given: Given
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Shapes of the inputs that can be taken, and why each other one cannot, both by name.

    An open size is what `sizes` says, what the `given` arrays have, `batch` in front, and 1 there without one. Raises
    OptionError for sizes that the model has not, InputError where two that are one size differ.
    """
    declared = {port.name: declared_sizes(port) for port in ports if port.type.tensor_type.HasField("shape")}
    found = _Sizes(declared, sizes)
    found.take_given(given)
    found.take_batch(batch)
    shapes: dict[str, tuple[int, ...]] = {}
    refused: dict[str, str] = {}
    for port in ports:
        try:
            shapes[port.name] = _shape(port, declared.get(port.name), found)
        except ModelError as e:
            refused[port.name] = str(e)
    return shapes, refused


def declared_sizes(port: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    """Each size as the file fixes it, or the name of an open one: its own, or that of its place, `input.axis`.

    A first one of 0, as some exporters write an open batch, is open.
    """
    return tuple(
        extent.dim_value
        if extent.dim_value > 0 or (axis and extent.HasField("dim_value") and not extent.dim_value)
        else extent.dim_param or f"{port.name}.{axis}"
        for axis, extent in enumerate(port.type.tensor_type.shape.dim)
    )


class _Sizes:
    """The open sizes of a model's inputs, and who says them."""

    def __init__(self, declared: Mapping[str, tuple[int | str, ...]], sizes: Mapping[str, int]) -> None:
        self._declared = declared
        self._known: dict[str, tuple[int, str]] = {}
        names = dict.fromkeys(size for shape in declared.values() for size in shape if isinstance(size, str))
        for name, value in sizes.items():
            if name not in names:
                close = get_close_matches(name, (*names, *declared), n=1)
                hint = f", did you mean {close[0]!r}?" if close else ""
                there = ", ".join(names) or "none"
                raise OptionError(
                    f"the model has no open size and no input {name!r}{hint}; the open sizes of its inputs: {there}"
                )
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"size {name}={value}: give a whole number from 1 on; no tensor here may be empty")
            self._known[name] = value, f"size {name}={value} was asked"

    def __getitem__(self, size: int | str) -> int | None:
        """Return a declared size, or None where nothing says it."""
        return size if isinstance(size, int) else self._known.get(size, (None,))[0]

    def take_given(self, given: Given) -> None:
        """The sizes of arrays that were given."""
        for name, declared in self._declared.items():
            shape = given.shape(name, len(self._declared))
            if shape is None:
                continue
            told = f"{given.source}: input {name!r} is {_words(shape)}"
            if not _fits(shape, declared):
                if given.is_set:  # of which `Examples` tells more
                    continue
                raise InputError(f"{told}; the model takes {_words(declared)}")
            if 0 in shape:
                raise InputError(f"{told}: it holds no number, and there is nothing to compute; give one that does")
            for open_size, value in zip(declared, shape, strict=True):
                if isinstance(open_size, str) and value is not None:
                    self._take(open_size, value, told)

    def take_batch(self, batch: int | None) -> None:
        """Set the open first dimensions that nothing else says. Raises ModelError where no input then has that many."""
        first = {name: shape[0] for name, shape in self._declared.items() if shape}
        for size in first.values():
            if isinstance(size, str) and size not in self._known:
                self._known[size] = batch or 1, f"the batch is {batch or 1}"
        if batch is None or (batch == 1 and not first) or batch in (self[size] for size in first.values()):
            return
        there = "; ".join(f"{name!r} has {self[size]} ({self._who(size)})" for name, size in first.items())
        mend = "take the batch that it has, or export the model with an open first dimension (PyTorch: dynamic_shapes)"
        if any(isinstance(size, str) for size in first.values()):
            mend = "give inputs or sizes of that batch, or none"
        raise ModelError(
            f"a batch of {batch} was asked, and no input has that many in its first dimension: "
            f"{there or 'none'}; {mend}"
        )

    def _who(self, size: int | str) -> str:
        return "the file fixes it" if isinstance(size, int) else self._known[size][1]

    def _take(self, name: str, value: int, told: str) -> None:
        known, other = self._known.setdefault(name, (value, told))
        if known != value:
            raise InputError(f"{name!r} is {known} and {value}, and must be one number: {other}; {told}")


def _fits(shape: Sequence[int | None], declared: Sequence[int | str]) -> bool:
    if len(shape) != len(declared):
        return False
    both = zip(shape, declared, strict=True)
    return all(given in (None, size) for given, size in both if isinstance(size, int))


def type_name(number: int) -> str:
    """Return ONNX's name of an element type; a damaged file may hold any number."""
    return next((str(name) for name, known in onnx.TensorProto.DataType.items() if known == number), f"type {number}")


def _words(shape: Sequence[int | str | None]) -> str:
    return f"({', '.join('any' if each is None else str(each) for each in shape)})"


def _shape(port: onnx.ValueInfoProto, declared: tuple[int | str, ...] | None, sizes: _Sizes) -> tuple[int, ...]:
    """Raises ModelError for a type that is not known and sizes that are open or 0."""
    tensor, name = port.type.tensor_type, port.name
    if tensor.elem_type not in INPUT_TYPES:
        given = type_name(tensor.elem_type)
        mend = "compute numbers from the text before the model" if given == "STRING" else "cast it before the model"
        raise ModelError(
            f"input {name!r} is {given}; only tensors of {', '.join(map(type_name, INPUT_TYPES))} are supported: "
            f"{mend}, and export what follows"
        )
    if declared is None:
        raise ModelError(f"input {name!r} has no shape; export the model with the rank of its inputs")
    if 0 in declared:
        raise ModelError(
            f"input {name!r} is empty: the file fixes its dimension {declared.index(0)} to size 0, so that it never "
            "holds a number; export the model without this input (of a decoder: without a past)"
        )
    if missing := dict.fromkeys(each for each in declared if isinstance(each, str) and sizes[each] is None):
        places = ", ".join(f"dimension {declared.index(each)} ({each!r})" for each in missing)
        options = " ".join(f"--size {each}=N" for each in missing)
        raise ModelError(
            f"input {name!r} is open in {places}: say the size ({options}, in an experiment `workload: {{sizes: "
            f"{{{', '.join(f'{each}: N' for each in missing)}}}}}`), or give an input that has it"
        )
    return tuple(size for each in declared if (size := sizes[each]) is not None)
