"""Matrix products, of weights or of two activations, on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.catalog.desktop.product import MatrixUnits
from kernels.catalog.desktop.warpgroups import Warpgroups
from kernels.catalog.family import GpuFamily, alike, registry, trial_graph
from kernels.ir.graph import Graph, Node
from kernels.ir.packed import random_matrix
from kernels.options import Choice, Limits, Options

from .blocked import Blocked
from .one_row import OneRow
from .packed import Packed, holds_copy, is_of_few_rows
from .packed.many_rows import PackedRows
from .panels import Panels
from .registers import Registers
from .sizes import Product, product_of
from .split_depth import SplitDepth
from .tiled import Tiled

ALGORITHMS = registry(
    OneRow(),
    Packed(),
    PackedRows(),
    Blocked(),
    Tiled(),
    Registers(),
    SplitDepth(),
    Panels(),
    MatrixUnits(),
    Warpgroups(),
)

_FEW_ROWS, _FEW_ROWS_OF_A_DESKTOP = 4, 64
"""The most rows for which a product is a matter of reading the matrix."""
_UNIT = 16
"""Rows and columns of the usual matrix of matrix units."""
_LARGE_MATRIX = 1 << 22
"""Numbers of a matrix by which a single row is multiplied."""
_WARPGROUP_ROWS = 256
"""The fewest rows for which tiles of warpgroups fill a device."""
_COPIED_ROWS = 256
"""Rows from which tiles read an unpacked copy: it was faster for 512, fewer are not timed."""
_TILED_SIZE = 32
"""The fewest rows and columns for which a tile a work-group pays on a desktop GPU."""


class Products(GpuFamily[Product]):
    """Every way to multiply matrices."""

    option = "product"
    ops = ("dense", "matmul")
    algorithms = ALGORITHMS

    def sizes(self, graph: Graph, node: Node) -> Product:
        """Read the sizes of a dense or matmul node."""
        return product_of(graph, node)

    def default(self, options: Options, limits: Limits, sizes: Product) -> str:
        """Choose by the kind of device; on a CPU behind a GPU interface a barrier costs more than reuse gains."""

        def fits(name: str) -> bool:
            return ALGORITHMS[name].why_not(sizes, options, limits) is None

        if sizes.packed is not None and is_of_few_rows(sizes) and fits("packed"):
            return "packed"
        on_units = not limits.cpu_device and not limits.unified_memory and _on_units(sizes) and fits("matrix_units")
        on_warpgroups = not limits.cpu_device and sizes.rows >= _WARPGROUP_ROWS and fits("warpgroups")
        large = min(sizes.rows, sizes.columns) >= _TILED_SIZE and not limits.unified_memory and not limits.cpu_device
        on_tiles = large and fits("tiled")
        on_vectors = limits.cpu_device and options.backend == "opencl"  # longer ones
        reads_copy = on_units or on_warpgroups or on_vectors or (on_tiles and sizes.rows >= _COPIED_ROWS)
        copied = reads_copy and holds_copy(sizes, options, limits)
        if sizes.packed is not None and not copied and fits("packed_rows"):
            return "packed_rows"
        if limits.cpu_device:
            return "panels" if fits("panels") else "registers"
        if fits("one_row"):
            return "one_row"
        if on_warpgroups or on_units:
            return "warpgroups" if on_warpgroups else "matrix_units"
        few = _FEW_ROWS if limits.unified_memory else _FEW_ROWS_OF_A_DESKTOP
        if sizes.rows <= few and fits("split_depth"):
            return "split_depth"
        return "tiled" if on_tiles else "registers"

    def footprint_bytes(self, sizes: Product, choice: Choice) -> int:
        """Its result, padded to whole vectors twice where its rows are not, and weights in an order of its own."""
        packed = 16 * sizes.depth * sizes.columns4 if choice.algorithm == "panels" else 0
        return 8 * sizes.batch * sizes.rows * 4 * sizes.columns4 + packed

    def trial(self, sizes: Product, names: Sequence[str]) -> Graph:
        """A dense layer, or a product of two inputs."""
        rng = np.random.default_rng(1)
        right = (sizes.depth, sizes.columns)
        if sizes.right_is_constant or sizes.packed:
            weight: Any = (rng.standard_normal(right) * sizes.depth**-0.5).astype(np.float32)
            weight = weight if sizes.packed is None else random_matrix(sizes.packed, *right, rng)
            constants = {"weight": weight, "bias": rng.standard_normal(sizes.columns).astype(np.float32)}
            nodes = [Node(name, "dense", ("x", *constants), (f"{name}:0",)) for name in names]
            shapes = alike(nodes, (sizes.rows, sizes.columns))
            return trial_graph({"x": (sizes.rows, sizes.depth)}, nodes, shapes, constants)
        batch = () if sizes.batch == 1 else (sizes.batch,)
        inputs: dict[str, tuple[int, ...]] = {
            "x": (*batch, sizes.rows, sizes.depth),
            "y": right if sizes.right_is_shared else (*batch, *right),
        }
        nodes = [Node(name, "matmul", ("x", "y"), (f"{name}:0",)) for name in names]
        return trial_graph(inputs, nodes, alike(nodes, (*batch, sizes.rows, sizes.columns)), {})


def _on_units(sizes: Product) -> bool:
    """Return whether matrix units pay on a desktop GPU: a matrix is filled, or a single row meets a large matrix, which
    they read faster."""
    pays = sizes.rows > 1 or sizes.columns * sizes.depth >= _LARGE_MATRIX
    return pays and min(sizes.columns, sizes.depth) >= _UNIT


PRODUCTS = Products()

__all__ = ["ALGORITHMS", "PRODUCTS", "Product", "product_of"]
