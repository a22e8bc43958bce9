"""Layer normalisation that the products behind it compute on the way.

A row x becomes (x - mean) / deviation * scale + shift, and a product of that with w is
(x w' - mean * s) / deviation + b', with w' = scale * w, s the sums of its columns, b' = shift * w + b: there is no step
for it, and nothing is rounded to half between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.catalog.desktop.product import MatrixUnits
from kernels.catalog.product import ALGORITHMS, PRODUCTS
from kernels.catalog.product.one_row import OneRow
from kernels.catalog.product.packed import Packed
from kernels.ir.graph import Array, Node
from kernels.ir.links import dense_readers, is_root_mean_square
from kernels.ir.packed import format_of
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.plan.model import Tensor

_HALF_MAX = 65504.0


@dataclass(frozen=True)
class FoldedNorm:
    """The constants of a product with rows that are to be normalised."""

    weight: Array
    bias: Array
    columns_sum: Array
    epsilon: float


def folds(context: GpuContext, norm: Node) -> bool:
    """Return whether all that reads the normalised rows are products that can normalise them."""
    graph = context.graph
    if is_root_mean_square(graph, norm):
        readers = dense_readers(graph, norm.output)
        return bool(readers) and all(takes_one_row(context, node) for node in readers or ())
    plain = context.half and len(norm.inputs) == 3 and norm.attributes.keys() == {"epsilon"}
    products = dense_readers(graph, norm.output) if plain else None
    return bool(products) and all(_normalises(context, norm, node) for node in products or ())


def folded(context: GpuContext, node: Node, weight: Array, bias: Array | None) -> FoldedNorm | None:
    """Return the constants of a dense layer whose input is a norm that folds; None where it is something else."""
    norm = norm_before(context, node)
    if norm is None or is_root_mean_square(context.graph, norm):
        return None
    scale, shift = (constant(context, norm, i).astype(np.float64) for i in (1, 2))
    scaled = (scale[:, None] * weight).astype(np.float16)
    whole = shift @ weight + (0 if bias is None else bias)
    sums = scaled.astype(np.float64).sum(0)
    return FoldedNorm(
        scaled.astype(np.float32), whole.astype(np.float32), sums.astype(np.float32), norm.attributes["epsilon"]
    )


def norm_before(context: GpuContext, node: Node) -> Node | None:
    """Return the norm that a dense layer computes of its input; None where it computes none."""
    name, writers = node.inputs[0], context.writers
    while name in writers and writers[name].op == "reshape":
        name = writers[name].inputs[0]
    return writers[name] if name in context.folded_norms else None


def takes_one_row(context: GpuContext, node: Node) -> bool:
    """Return whether a dense layer is a product that reads a row for itself, and may normalise it."""
    sizes, options = PRODUCTS.sizes(context.graph, node), context.options.of(node.name)
    choice = PRODUCTS.choose(options, context.limits, node.name, sizes)
    return isinstance(ALGORITHMS[choice.algorithm], (OneRow, Packed))


def add_columns_sum(context: GpuContext, node: Node, columns_sum: Array) -> str:
    """The sums of columns in single, in whole vectors."""
    full = np.pad(columns_sum, (0, -columns_sum.size % 4)).astype("<f4")
    return context.draft.add_weight(f"{node.name}:columns", full.tobytes(), Tensor(shape=full.shape, dtype="f32"))


def _normalises(context: GpuContext, norm: Node, node: Node) -> bool:
    if format_of(context.graph.constants[node.inputs[1]]) is not None:
        return False
    if np.abs(constant(context, norm, 1)).max() * np.abs(constant(context, node, 1)).max() > _HALF_MAX:
        return False
    sizes = PRODUCTS.sizes(context.graph, node)
    options = context.options.of(node.name)
    choice = PRODUCTS.choose(options, context.limits, node.name, sizes)
    units = ALGORITHMS[choice.algorithm]
    return isinstance(units, MatrixUnits) and units.normalises(sizes, options, context.limits, choice.tile)
