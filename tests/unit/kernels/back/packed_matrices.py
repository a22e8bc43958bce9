"""Random packed matrices of every format, and what the package `gguf` makes of those of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import erfc

import gguf
import numpy as np

from kernels.ir.graph import Graph
from kernels.ir.packed import FORMATS, PackedFormat, PackedMatrix, few_bits
from kernels.lower.activation import AT_END

from .graphs import Builder
from .norms import rms_norm

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


ACTIVATIONS = {(): lambda x: x, ("relu",): lambda x: np.maximum(x, 0), ("sigmoid",): lambda x: (1 + np.tanh(x / 2)) / 2}
ENDS = {"tanh": np.tanh, "gelu": lambda x: x * np.vectorize(erfc)(-x / 2**0.5) / 2}
"""Functions behind a product, which a GPU's own ends with."""


@dataclass
class Layers:
    """Layers of packed weights with their inputs, and what they give in double precision."""

    graph: Graph
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    wanted: dict[str, np.ndarray] = field(default_factory=dict)
    sizes: dict[str, np.ndarray] = field(default_factory=dict)
    """The sum of the sizes of the products, of each output."""
    packed_bytes: int = 0
    """Bytes of the weights, padded to sixteen rows, and of what lies beside them in single."""

    def errors(self, found: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return each output's error in norm, in parts of its sizes."""
        each = self.wanted.items()
        return {
            name: float(np.linalg.norm(found[name].reshape(wanted.shape) - wanted) / np.linalg.norm(self.sizes[name]))
            for name, wanted in each
        }


def layers(kinds: Iterable[str], draw: np.random.Generator) -> Layers:
    """Return one product of each format, its norm, bias, activation and what is added behind drawn; the same
    weights by rows."""
    build = Builder(draw)
    all = Layers(build.graph)
    for index, kind in enumerate(kinds):
        name = f"{index}: {kind}"
        matrix = packed_matrix(kind, int(draw.integers(1, 150)), int(draw.integers(1, 700)), draw)
        real = (by_gguf(matrix) if kind in FORMATS else matrix.unpacked()).astype(np.float64)
        rows, count = int(draw.choice([1, draw.integers(2, 5), draw.integers(5, 70)])), int(draw.integers(1, 5))
        outputs, inputs = real.shape
        x, places = build.input(rows, inputs, name=f"{name} x"), build.input(count, name=f"{name} places")
        given = all.inputs[x] = draw.standard_normal((rows, inputs)).astype(np.float32)
        all.inputs[places] = draw.integers(-outputs, outputs, count)
        build.graph.types[places] = "i64"
        table, weight = (stored(build, f"{name} {word}", each) for word, each in (("t", matrix), ("w", matrix.T)))
        all.packed_bytes += -(-outputs // 16) * 16 * matrix.data[0].nbytes + 4 * outputs + 64
        activation = list(ACTIVATIONS)[draw.integers(len(ACTIVATIONS))]
        bias = [build.constant(outputs)] if draw.random() < 0.5 else []
        attributes = {"activation": activation} if activation else {}
        values, left = given.astype(np.float64), x
        if draw.random() < 0.5:
            left = rms_norm(build, x, (rows, inputs), shifted=False)
            scale = [*build.graph.constants.values()][-1]
            values = values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-5) * scale
            all.packed_bytes += 4 * inputs + 64
        y = build.node("dense", [left, weight, *bias], (rows, outputs), **attributes)
        sums = values @ real.T + (build.graph.constants[bias[0]] if bias else 0)
        all.wanted[y], all.sizes[y] = ACTIVATIONS[activation](sums), np.abs(values) @ np.abs(real).T + np.abs(sums)
        if not activation and draw.random() < 0.5:
            end, before = str(draw.choice([*ENDS])), y
            y = build.node("map", [y], (rows, outputs), expression=AT_END[end][1])
            all.wanted[y], all.sizes[y] = ENDS[end](all.wanted.pop(before)), all.sizes.pop(before)
        if draw.random() < 0.5:
            beside = build.input(rows, outputs, name=f"{name} beside")
            all.inputs[beside] = draw.standard_normal((rows, outputs)).astype(np.float32)
            before, y = y, build.node("add", [y, beside], (rows, outputs))
            all.wanted[y] = all.wanted.pop(before) + all.inputs[beside]
            all.sizes[y] = all.sizes.pop(before) + np.abs(all.inputs[beside])
        taken = build.node("gather", [table, places], (count, inputs), axis=0)
        all.wanted[taken] = all.sizes[taken] = real[all.inputs[places]]
    all.graph = build.outputs(*all.wanted)
    return all


def stored(build: Builder, name: str, matrix: PackedMatrix) -> str:
    """Return the name of a constant of a graph."""
    build.graph.constants[name], build.graph.shapes[name] = matrix, matrix.shape
    build.graph.types[name] = "f32"
    return name
