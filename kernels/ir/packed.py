"""Matrices whose weights stay packed: some bits each, in blocks that share a scale.

A weight is `scale * factor * (code - zero) + offset * offset_factor`. A block has one scale and one offset, each of its
groups the rest; what a format lacks is 1, or 0. Sources: ggml's block formats (ggml-common.h; unpacked as the package
`gguf` does), and ONNX Runtime's operator MatMulNBits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[Any]
"""Arrays of uint8."""
_PIECE = 1 << 20
"""Weights that are unpacked at once."""


@dataclass(frozen=True)
class Fields:
    """The numbers of blocks: codes (..., block), of each block a scale, of each of its groups a factor."""

    codes: Bytes
    scale: npt.NDArray[Any]
    factor: npt.NDArray[np.int8] | None = None
    offset: npt.NDArray[Any] | None = None
    offset_factor: npt.NDArray[np.int8] | None = None
    zeros: Bytes | None = None


@dataclass(frozen=True)
class PackedFormat:
    """A way of packing weights: `block` of them share a scale, `group` a factor. A code has `bits`; `zero` is the code
    that stands for 0 where groups have none of their own."""

    name: str
    bits: int
    block: int
    group: int
    stored: np.dtype[Any]
    """A block as it is stored."""
    fields_of: Callable[[npt.NDArray[Any]], Fields]
    zero: int = 0

    @property
    def block_bytes(self) -> int:
        """Return the bytes of a stored block."""
        return self.stored.itemsize


def _nibbles(codes: Bytes) -> Bytes:
    """Return the lower halves of all bytes, then the upper ones."""
    return np.concatenate([codes & 15, codes >> 4], axis=-1)


def _fifths(b: npt.NDArray[Any]) -> Bytes:
    """Return codes of 5 bits, of which the upper ones lie side by side."""
    return np.asarray(_nibbles(b["q"]) | (np.unpackbits(b["h"], axis=-1, bitorder="little") << 4))


def _q5_k(b: npt.NDArray[Any]) -> Fields:
    upper = (b["h"][..., None, :] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    fields = _q4_k(b)
    return replace(fields, codes=fields.codes | (upper << 4).reshape(*b.shape, 256))


def _q4_k(b: npt.NDArray[Any]) -> Fields:
    s = b["s"]
    low, high = s[..., 8:] & 15, s[..., 8:] >> 4
    factor = np.concatenate([s[..., :4] & 63, low | (s[..., :4] >> 6 << 4)], axis=-1)
    least = np.concatenate([s[..., 4:8] & 63, high | (s[..., 4:8] >> 6 << 4)], axis=-1)
    codes = _nibbles(b["q"].reshape(*b.shape, 4, 32)).reshape(*b.shape, 256)
    return Fields(codes, b["d"], factor.view(np.int8), -b["m"], least.view(np.int8))


def _q6_k(b: npt.NDArray[Any]) -> Fields:
    low = _nibbles(b["l"].reshape(*b.shape, 2, 64)).reshape(*b.shape, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = (b["h"].reshape(*b.shape, 2, 1, 32) >> shifts) & 3
    return Fields((low | (high << 4)).reshape(*b.shape, 256), b["d"], b["s"])


_F16, _U8 = "<f2", np.uint8
FORMATS = {
    each.name: each
    for each in (
        PackedFormat(
            "Q8_0", 8, 32, 32, np.dtype([("d", _F16), ("q", _U8, 32)]), lambda b: Fields(b["q"] ^ 128, b["d"]), 128
        ),
        PackedFormat(
            "Q4_0", 4, 32, 32, np.dtype([("d", _F16), ("q", _U8, 16)]), lambda b: Fields(_nibbles(b["q"]), b["d"]), 8
        ),
        PackedFormat(
            "Q4_1", 4, 32, 32, np.dtype([("d", _F16), ("m", _F16), ("q", _U8, 16)]),
            lambda b: Fields(_nibbles(b["q"]), b["d"], offset=b["m"]),
        ),
        PackedFormat(
            "Q5_0", 5, 32, 32, np.dtype([("d", _F16), ("h", _U8, 4), ("q", _U8, 16)]),
            lambda b: Fields(_fifths(b), b["d"]), 16,
        ),
        PackedFormat(
            "Q5_1", 5, 32, 32, np.dtype([("d", _F16), ("m", _F16), ("h", _U8, 4), ("q", _U8, 16)]),
            lambda b: Fields(_fifths(b), b["d"], offset=b["m"]),
        ),
        PackedFormat(
            "Q5_K", 5, 256, 32,
            np.dtype([("d", _F16), ("m", _F16), ("s", _U8, 12), ("h", _U8, 32), ("q", _U8, 128)]), _q5_k,
        ),
        PackedFormat(
            "Q4_K", 4, 256, 32, np.dtype([("d", _F16), ("m", _F16), ("s", _U8, 12), ("q", _U8, 128)]), _q4_k
        ),
        PackedFormat(
            "Q6_K", 6, 256, 16, np.dtype([("l", _U8, 128), ("h", _U8, 64), ("s", np.int8, 16), ("d", _F16)]), _q6_k, 32
        ),
    )
}  # fmt: skip
"""The formats of GGUF files by the names that these have."""


@cache
def few_bits(bits: int, block: int, scale: np.dtype[Any], *, zeros: bool) -> PackedFormat:
    """Return the format of MatMulNBits: 4 or 8 bits, blocks of 16 to 256, scales in halves or single."""
    stored = [("d", scale.newbyteorder("<")), ("q", _U8, (block * bits // 8,))]

    def fields_of(b: npt.NDArray[Any]) -> Fields:
        codes = b["q"] if bits == 8 else np.stack([b["q"] & 15, b["q"] >> 4], -1).reshape(*b.shape, block)
        return Fields(codes, b["d"], zeros=b["z"][..., None] if zeros else None)

    dtype = np.dtype(stored + ([("z", _U8)] if zeros else []))
    name = f"{bits} bits by {block}, {scale}{', zeros' * zeros}"
    return PackedFormat(name, bits, block, block, dtype, fields_of, 0 if zeros else 1 << bits - 1)


@dataclass(frozen=True, eq=False)
class PackedMatrix(np.lib.mixins.NDArrayOperatorsMixin):
    """A matrix of packed rows, which stands for its array in fp32: whoever does not know it gets that.

    `parts`: (rows, bytes of a row), which may be views of a file; rows of one follow those of the other. `is_turned`:
    the rows are the matrix's columns.
    """

    format: PackedFormat
    parts: tuple[Bytes, ...]
    columns: int
    """Weights of a packed row; what its last block has behind them has no meaning."""
    is_turned: bool = False
    dtype: np.dtype[np.float32] = field(default=np.dtype(np.float32), init=False)
    ndim: int = field(default=2, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the extents of the matrix."""
        return (self.columns, self.row_count) if self.is_turned else (self.row_count, self.columns)

    @property
    def row_count(self) -> int:
        """Return the number of packed rows."""
        return sum(map(len, self.parts))

    @property
    def data(self) -> Bytes:
        """Return the packed rows as one array."""
        return self._stored(0, self.row_count)

    @property
    def stored_bytes(self) -> int:
        """Return the bytes of the packed rows."""
        return sum(part.nbytes for part in self.parts)

    @cached_property
    def digest(self) -> str:
        """Return what packed rows of the same content and format alone have in common."""
        found = hashlib.sha256(repr((self.format.name, self.columns, self.row_count)).encode())
        for part in self.parts:
            found.update(part.data)
        return found.hexdigest()

    @property
    def size(self) -> int:
        """Return the number of weights."""
        return self.row_count * self.columns

    @property
    def nbytes(self) -> int:
        """Return the bytes of the array that it stands for."""
        return 4 * self.size

    @property
    def T(self) -> PackedMatrix:  # noqa: N802
        """Return the transposed matrix, of the same bytes."""
        return replace(self, is_turned=not self.is_turned)

    @cached_property
    def is_finite(self) -> bool:
        """Return whether no scale and no offset is NaN or infinite."""
        stored = self.format.stored
        floats = [name for name in stored.names or () if stored[name].kind == "f"]
        parts = [part.reshape(-1).view(stored) for part in self.parts]
        return all(bool(np.isfinite(part[name]).all()) for part in parts for name in floats)

    def pieces(self, multiple: int = 1) -> Iterator[tuple[int, Fields]]:
        """Yield the first row and the fields of some rows after the other, a multiple of so many but for the last."""
        each = max(1, _PIECE // self.columns // multiple) * multiple
        for first in range(0, self.row_count, each):
            rows = self._stored(first, first + each)
            yield first, self.format.fields_of(rows.reshape(-1).view(self.format.stored).reshape(len(rows), -1))

    def _stored(self, first: int, last: int) -> Bytes:
        found, at = [], 0
        for part in self.parts:
            found.append(part[max(0, first - at) : max(0, last - at)])
            at += len(part)
        found = [part for part in found if len(part)] or found[:1]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def rows(self, chosen: npt.NDArray[np.int64]) -> PackedMatrix:
        """Return the matrix of these packed rows, of the same bytes where they lie one after the other."""
        first, last = int(chosen[0]), int(chosen[-1]) + 1
        follow = np.array_equal(chosen, np.arange(first, last))
        return replace(self, parts=(self._stored(first, last) if follow else self.data[chosen],))

    @cached_property
    def bound(self) -> float:
        """Return a number that no weight's size exceeds."""
        formed, parts = self.format, [part.reshape(-1).view(self.format.stored) for part in self.parts]
        names = [name for name in ("d", "m") if name in (formed.stored.names or ())]
        sizes = [max(float(np.abs(part[name].astype(np.float32)).max()) for part in parts) for name in names]
        return sum(sizes) * 2.0**formed.bits * (128 if formed.block > formed.group else 1)

    def unpacked_pieces(self) -> Iterator[npt.NDArray[np.float32]]:
        """Yield packed rows in fp32, some after the other."""
        for _, fields in self.pieces():
            yield _unpacked(self.format, fields)[:, : self.columns]

    def unpacked(self) -> npt.NDArray[np.float32]:
        """Return the matrix in fp32, row-major."""
        out, first = np.empty((self.row_count, self.columns), np.float32), 0
        for values in self.unpacked_pieces():
            out[first : first + len(values)] = values
            first += len(values)
        return np.ascontiguousarray(out.T) if self.is_turned else out

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.unpacked().astype(dtype or np.float32, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*(x.unpacked() if isinstance(x, PackedMatrix) else x for x in inputs), **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.unpacked(), name)

    def __getitem__(self, key: Any) -> Any:
        match key:
            case (slice(start=None, stop=None, step=None), slice(step=None) as rows) if self.is_turned:
                return replace(self, parts=(self.data[rows],))
        return self.unpacked()[key]

    def __len__(self) -> int:
        return self.shape[0]


def random_matrix(packed: PackedFormat, inputs: int, outputs: int, rng: np.random.Generator) -> PackedMatrix:
    """Return weights (inputs, outputs) of random codes, for products that keep the size of their rows."""
    data = rng.integers(0, 256, (outputs, -(-inputs // packed.block) * packed.block_bytes), dtype=np.uint8)
    blocks, matrix = data.reshape(-1).view(packed.stored), PackedMatrix(packed, (data,), inputs, is_turned=True)
    sizes = {"d", "m"} & {*(packed.stored.names or ())}
    for name in sizes:
        blocks[name] = 1
    deviation = float(matrix.rows(np.arange(min(outputs, 16))).unpacked().std())
    for name in sizes:
        blocks[name] = inputs**-0.5 / deviation
    return matrix


def is_finite(array: npt.NDArray[Any]) -> bool:
    """Return whether no number is NaN or infinite."""
    return bool(array.is_finite if isinstance(array, PackedMatrix) else np.isfinite(array).all())


def packed_bytes(array: npt.NDArray[Any] | None, count: int, item: int) -> int:
    """Return the bytes of so many numbers of an array, each of `item` bytes where it is not packed."""
    if isinstance(array, PackedMatrix):
        return -(-count * array.stored_bytes // array.size)
    return count * item


def format_of(matrix: npt.NDArray[Any]) -> PackedFormat | None:
    """Return how the rows of a weight (inputs, outputs) are packed, each of which has an output's; None where not."""
    return matrix.format if isinstance(matrix, PackedMatrix) and matrix.is_turned else None


def joined_columns(weights: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return matrices (inputs, outputs) of one format side by side."""
    formats = {format_of(each) for each in weights}
    if len(formats) > 1 or None in formats:
        return np.concatenate(weights, 1)
    packed = cast("list[PackedMatrix]", list(weights))
    parts = tuple(part for each in packed for part in each.parts)
    return cast("npt.NDArray[Any]", replace(packed[0], parts=parts))


def _unpacked(packed: PackedFormat, fields: Fields) -> npt.NDArray[np.float32]:
    """Return (rows, weights) in fp32."""
    rows = len(fields.scale)
    codes = fields.codes.reshape(rows, -1, packed.block // packed.group, packed.group)
    zeros = np.float32(packed.zero) if fields.zeros is None else fields.zeros.astype(np.float32)[..., None]
    scale = fields.scale.astype(np.float32)[..., None]
    scale = (scale if fields.factor is None else scale * fields.factor)[..., None]
    with np.errstate(all="ignore"):
        weights = scale * (codes.astype(np.float32) - zeros)
        if fields.offset is not None:
            offset = fields.offset.astype(np.float32)[..., None]
            weights += (offset if fields.offset_factor is None else offset * fields.offset_factor)[..., None]
    return np.asarray(weights.reshape(rows, -1))
