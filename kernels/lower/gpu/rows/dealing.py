"""Rows as matrix units have them, for products that read both operands so (`catalog/desktop/parts/units_dealt.c`)."""

from __future__ import annotations

from kernels.catalog.desktop.product import MatrixUnits
from kernels.catalog.product import ALGORITHMS, PRODUCTS
from kernels.ir.graph import Node
from kernels.ir.links import dense_readers
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.values import View
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, result

_DEAL = Kernel(
    "deal_rows", body("deal_rows"), (Buffer("src"), result("dst")), ("count", "columns4", "src_start", "src_stride")
)
_MATRIX = 16


def is_read_dealt(context: GpuContext, writer: Node) -> bool:
    """Return whether all that reads a node's rows are products that want them so."""
    graph = context.graph
    readers = dense_readers(graph, writer.output) if context.half else None
    return bool(readers) and all(_reads_dealt(context, node) for node in readers or ())


def new_dealt(context: GpuContext, tensor: str, rows: int, columns: int) -> str:
    """A buffer in which a node writes rows of `columns`, a multiple of 16, so."""
    shape = (-(-rows // _MATRIX), columns // _MATRIX, 32, 8)
    described = Tensor(shape=shape, dtype=context.dtype, layout="packed")
    buffer = context.draft.add_buffer(f"{tensor}:dealt", 2 * _MATRIX * shape[0] * columns, "activation", described)
    context.values.of(tensor).dealt = buffer
    return buffer


def dealt(context: GpuContext, tensor: str, source: View, rows: int, columns: int) -> str:
    """The tensor's rows so: as its writer left them, else copied from `source`, a row a number of stacks."""
    value = context.values.of(tensor)
    if value.dealt is None:
        count, columns4 = rows * columns // 4, columns // 4
        ints = {"count": count, "columns4": columns4, "src_start": source.stack0, "src_stride": source.stacks}
        target = new_dealt(context, tensor, rows, columns)
        context.dispatch(
            _DEAL, f"{tensor}:deal", {"src": source, "dst": target}, ints, (count, 1, 1), traffic=16 * count
        )
    return str(value.dealt)


def _reads_dealt(context: GpuContext, node: Node) -> bool:
    sizes, options = PRODUCTS.sizes(context.graph, node), context.options.of(node.name)
    choice = PRODUCTS.choose(options, context.limits, node.name, sizes)
    units = ALGORITHMS[choice.algorithm]
    return isinstance(units, MatrixUnits) and units.reads_dealt(sizes, options, context.limits, choice.tile)
