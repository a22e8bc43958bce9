"""Random packed matrices of every format, and what the package `gguf` makes of those of its own."""

from __future__ import annotations

import gguf
import numpy as np

from kernels.ir.packed import FORMATS, PackedFormat, PackedMatrix, few_bits

KINDS = (*FORMATS, *(f"{bits} bits{words}" for bits in (4, 8) for words in ("", " in halves", " with zeros")))


def drawn_format(kind: str, rng: np.random.Generator) -> PackedFormat:
    """Return a format of GGUF, or one of MatMulNBits of a random block."""
    if kind in FORMATS:
        return FORMATS[kind]
    scale = np.dtype(np.float16 if "halves" in kind else np.float32)
    return few_bits(int(kind[0]), 1 << int(rng.integers(4, 9)), scale, zeros="zeros" in kind)


def packed_matrix(kind: str, rows: int, columns: int, rng: np.random.Generator) -> PackedMatrix:
    """Return rows of any bytes, with scales of an ordinary size, some of them denormal or negative."""
    packed = drawn_format(kind, rng)
    columns = columns if kind not in FORMATS else -(-columns // packed.block) * packed.block
    blocks = -(-columns // packed.block)
    data = rng.integers(0, 256, (rows, blocks * packed.block_bytes), dtype=np.uint8)
    each = data.reshape(-1).view(packed.stored)
    for name in {"d", "m"} & {*(packed.stored.names or ())}:
        sizes = rng.standard_normal(len(each)) / packed.block * np.where(rng.random(len(each)) < 0.1, 1e-4, 1)
        each[name] = sizes.astype(each[name].dtype)
    return PackedMatrix(packed, (data,), columns)


def by_gguf(matrix: PackedMatrix) -> np.ndarray:
    """Return its numbers as the package unpacks them."""
    return gguf.quants.dequantize(matrix.data, gguf.GGMLQuantizationType[matrix.format.name])
