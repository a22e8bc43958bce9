"""Reading a GGUF file as a graph: its decoder in ONNX's operators, whose weights are read where the import asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from kernels.errors import InputError, ModelError, OptionError, checkpoint
from kernels.frontend.input_file import NOTHING_GIVEN, Given
from kernels.frontend.onnx import import_model
from kernels.frontend.onnx.reading.model_file import ModelFile
from kernels.ir.graph import Graph
from kernels.ir.packed import FORMATS, PackedMatrix, is_finite

from .decoder import Sizes, Stored, decoder_of
from .header import MAGIC, Tensor, read_header
from .hyperparameters import hyperparameters_of

_CAPACITY = 1024
"""Tokens that the cache has room for where nothing says it, and the model has learnt as many."""
_CHUNK = 1 << 20
"""Numbers that are unpacked at once."""


def is_gguf(path: Path) -> bool:
    """Return whether a file is called, or begins, as GGUF does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC or path.suffix == ".gguf"
    except OSError:
        return path.suffix == ".gguf"


def load_gguf(
    path: Path,
    *,
    batch: int | None = None,
    sizes: Mapping[str, Any] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
) -> Graph:
    """Read a decoder.

    Its inputs are `tokens` (batch, tokens), `position` (batch), which is how many tokens came before, and
    `past_key_values.N.key`, `.value` (batch, heads, capacity, size); its outputs `logits` (batch, logits, words) of the
    last tokens, and `present.N.key`, `.value` of the same capacity.

    `sizes`: `tokens` (1 where neither says), `capacity`, `logits` (1), `batch`, if not of `given` arrays. Raises
    ModelError for a file that is damaged or of an architecture that is not known, OptionError for sizes.
    """
    file = decoder_file(path, batch=batch, sizes=sizes, given=given)
    return import_model(file, given=given)


def decoder_file(
    path: Path,
    *,
    batch: int | None = None,
    sizes: Mapping[str, Any] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
    kept: dict[str, npt.NDArray[np.float32]] | None = None,
) -> GgufFile:
    """Return the decoder as a model of ONNX, whose weights are in the GGUF file. `kept`: where those that were read are
    kept, for the same file of other sizes."""
    header = read_header(path)
    try:
        model = hyperparameters_of(header)
        sized = _sizes(batch, sizes, given, model.context)
        proto, stored = decoder_of(header, model, sized, lambda tensor: unpacked(path, tensor))
    except ModelError as e:
        raise type(e)(f"{path}: {str(e).removeprefix(f'{path}: ')}") from e
    return GgufFile(proto, path, path, {}, stored, {} if kept is None else kept, kept is not None)


def check_gguf(path: Path, capacity: int) -> int:
    """Check that a file can be read as a decoder whose cache holds `capacity` tokens: by its head, and one block of
    each type in which weights are stored. Returns the number of its words. Raises as `load_gguf`."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    file = decoder_file(path, sizes={"capacity": capacity})
    for tensor in {each.tensor.kind: each.tensor for each in file.stored.values() if each.tensor}.values():
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType[tensor.kind]]
        unpacked(path, replace(tensor, shape=(block,), size=size))
    return int(file.proto.graph.output[0].type.tensor_type.shape.dim[-1].dim_value)


@dataclass(frozen=True)
class GgufFile(ModelFile):
    """A decoder whose weights lie in a GGUF file."""

    stored: Mapping[str, Stored] = field(default_factory=dict)
    _kept: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    _keeps: bool = False

    def array(self, tensor: onnx.TensorProto) -> npt.NDArray[Any]:
        """The content of an initializer: packed as it is in the file, or in fp32. Raises ModelError."""
        found = self.stored[tensor.name]
        if found.array is not None or found.tensor is None:
            return np.asarray(found.array)
        if (known := self._kept.get(f"{tensor.name}:")) is not None:
            return known
        if found.tensor.kind in FORMATS and len(found.tensor.shape) == 2:
            return self._kept.setdefault(f"{tensor.name}:", self._packed(found.tensor, found))
        whole = self._unpacked(found.tensor)
        if found.rows is not None:
            whole = whole[found.rows]
        whole = whole.T if found.turned else whole
        return self._kept.setdefault(f"{tensor.name}:", whole) if self._keeps else whole

    def whole(self) -> onnx.ModelProto:
        """The model with its weights inside, as other engines read it. Raises ModelError."""
        for tensor in self.proto.graph.initializer:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(self.array(tensor)), tensor.name))
        return self.proto

    def _packed(self, tensor: Tensor, stored: Stored) -> Any:
        """A tensor as it lies in the file, of which only an order of rows makes a copy. Raises ModelError."""
        if tensor.name not in self._kept:
            raw = np.asarray(np.memmap(self.path, np.uint8, "r", tensor.start, (tensor.size,)))
            matrix: Any = PackedMatrix(FORMATS[tensor.kind], (raw.reshape(tensor.shape[0], -1),), tensor.shape[1])
            self._kept[tensor.name] = _finite(self.path, tensor, matrix)
        found: Any = self._kept[tensor.name]
        found = found if stored.rows is None else found.rows(stored.rows)
        return found.T if stored.turned else found

    def _unpacked(self, tensor: Tensor) -> npt.NDArray[np.float32]:
        """A tensor in fp32; of a word's row and of the last layer it is one array."""
        if tensor.name not in self._kept:
            array = _finite(self.path, tensor, unpacked(self.path, tensor))
            if not tensor.name.startswith("token_embd"):
                return array
            self._kept[tensor.name] = array
        return self._kept[tensor.name]


def _finite(path: Path, tensor: Tensor, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if not is_finite(array):
        raise ModelError(f"{path}: tensor {tensor.name!r} holds NaN or infinity; convert the model again")
    return array


def unpacked(path: Path, tensor: Tensor) -> npt.NDArray[np.float32]:
    """Return a stored tensor in fp32, by the package `gguf`, a piece at a time. Raises ModelError."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    kind = GGMLQuantizationType[tensor.kind]
    raw = np.memmap(path, np.uint8, "r", tensor.start, (tensor.size,))
    if kind == GGMLQuantizationType.F32:
        return np.frombuffer(raw.tobytes(), np.float32).reshape(tensor.shape)
    if kind == GGMLQuantizationType.F16:
        return raw.view(np.float16).astype(np.float32).reshape(tensor.shape)
    out = np.empty(tensor.shape, np.float32)
    columns = tensor.shape[-1]
    rows, each = out.reshape(-1, columns), max(1, _CHUNK // columns)
    lines = raw.reshape(len(rows), -1)
    for first in range(0, len(rows), each):
        checkpoint()
        try:
            with np.errstate(all="ignore"):
                rows[first : first + each] = dequantize(lines[first : first + each], kind)
        except NotImplementedError as e:
            raise ModelError(
                f"{path}: tensor {tensor.name!r} is stored as {tensor.kind}, which cannot be unpacked; convert the "
                "model to Q8_0 or F16"
            ) from e
    return out


def _sizes(batch: int | None, sizes: Mapping[str, Any], given: Given, context: int) -> Sizes:
    """Return the sizes of the decoder. Raises OptionError for those that there are not, or that do not fit."""
    known = {"tokens": 1, "capacity": min(context, _CAPACITY), "logits": 1, "batch": batch or 1}
    shape = given.shapes.get("tokens")
    if shape is not None and len(shape) != 2:
        raise InputError(f"{given.source}: tokens have shape {shape}; give (batch, tokens)")
    known |= {name: size for name, size in zip(("batch", "tokens"), shape or (), strict=False) if size}
    past = next((shape for name, shape in given.shapes.items() if name.startswith("past_key_values.")), ())
    known |= {"capacity": past[2]} if len(past) == 4 and past[2] else {}
    known["capacity"] = max(known["capacity"], known["tokens"]) if "capacity" not in sizes else known["capacity"]
    for name, value in sizes.items():
        if name not in known:
            raise OptionError(f"a decoder has no size {name!r}; it has: {', '.join(known)}")
        if not isinstance(value, int) or value < 1:
            raise OptionError(f"size {name}={value}: give a whole number from 1 on")
        known[name] = value
    if known["capacity"] < known["tokens"] or known["logits"] > known["tokens"]:
        raise OptionError(
            f"{known['tokens']} tokens, a cache for {known['capacity']}, logits of the last {known['logits']}: "
            "the cache has room for all tokens, and no more logits are given than there are tokens"
        )
    if known["capacity"] > context:
        raise OptionError(
            f"size capacity={known['capacity']}: the model has learnt {context} places; ask for fewer tokens of prompt "
            "and answer"
        )
    return Sizes(**known)
