"""A set of examples in one file, read piece by piece: it may be larger than the memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError
from kernels.ir.graph import Array, Graph
from kernels.reference.inputs import describe_inputs

from .input_file import ONLY, Given

HOW = "write it with `farm dataset`, or with numpy.save"


class Examples:
    """The inputs of a graph's examples: `(raw - mean) * scale`, in fp32."""

    def __init__(
        self, graph: Graph, path: Path, *, mean: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)
    ) -> None:
        """`path`: a `.npy` of examples x the dimensions of one input; u8, f2, f4 or f8. It stays on disk.

        `mean` and `scale`: one number, or one of each channel. Raises InputError for a file that cannot be read and for
        what does not fit the graph.
        """
        if len(graph.inputs) != 1:
            raise InputError(f"{graph.name} has several inputs ({describe_inputs(graph)}), a set of examples has one")
        self._raw = _mapped(path)
        self._name, self._shape = graph.inputs[0], graph.shapes[graph.inputs[0]]
        batch, self._dims = examples_in(graph), list(self._shape[1:])
        dims = self._dims
        if list(self._raw.shape[1:]) != dims:
            found, wanted = (" x ".join(map(str, shape)) for shape in (self._raw.shape, dims))
            raise InputError(f"{path}: {found}; {graph.name} takes examples x {wanted}")
        if len(self._raw) % batch:
            raise InputError(f"{path}: {len(self._raw)} examples are no multiple of the batch, {batch}")
        self._mean, self._scale = self._of_channels("mean", mean), self._of_channels("scale", scale)

    @property
    def given(self) -> Given:
        """The sizes that the examples say of those that a model leaves open."""
        return Given({ONLY: (None, *self._raw.shape[1:])}, is_set=True)

    def __len__(self) -> int:
        return len(self._raw)

    def inferences(self, examples: range) -> dict[str, Array]:
        """Input name -> the inputs of as many inferences as these examples make: inferences x the input's dimensions.

        Raises InputError where one is not finite.
        """
        raw = self._raw[examples.start : examples.stop]
        values = (raw.astype(np.float32) - self._mean) * self._scale
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise InputError(f"example {examples.start + bad} holds NaN or infinity")
        return {self._name: values.reshape(-1, *self._shape)}

    def _of_channels(self, name: str, values: Sequence[float]) -> Array:
        """Return the numbers in a shape that broadcasts over examples."""
        channels = self._dims[0] if self._dims else 1
        if len(values) not in (1, channels):
            raise InputError(f"{name}: {len(values)} numbers; give one, or one of each of the {channels} channels")
        shape = (1, len(values), *[1] * (len(self._dims) - 1)) if self._dims else (1,)
        return np.asarray(values, np.float32).reshape(shape)


def examples_in(graph: Graph) -> int:
    """Return how many examples one inference takes: as many as the first dimension of the only input, which may be
    one number."""
    return next(iter(graph.shapes[graph.inputs[0]]), 1)


def given_by(path: Path, source: str = "") -> Given:
    """Return the sizes that the examples of a set have; how many are taken at once is left open."""
    return Given({ONLY: (None, *_mapped(path).shape[1:])}, source or str(path), is_set=True)


def _mapped(path: Path) -> npt.NDArray[Any]:
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = head(file)
            if kind.hasobject:
                raise InputError(f"{path}: holds Python objects, which are never loaded; {HOW}")
        raw = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as e:
        raise InputError(f"{path}: no readable .npy file: {e}; {HOW}") from e
    if raw.dtype.newbyteorder("=") not in (np.uint8, np.float16, np.float32, np.float64):
        raise InputError(f"{path}: numbers of type {raw.dtype}; a set holds uint8, float16, float32 or float64")
    if not raw.size:
        raise InputError(f"{path}: {' x '.join(map(str, shape)) or 'one number'}; a set is examples x dimensions")
    mapped: npt.NDArray[Any] = raw
    return mapped
