"""Weights of few bits on a GPU: they stay packed, and what cannot read them so reads a copy that a step unpacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kernels.catalog.panels import in_panels, panel_shape
from kernels.catalog.product.packed import UNPACK, BlockTile, block_tile
from kernels.catalog.work_group import MOST_GROUPS
from kernels.errors import OptionError
from kernels.ir.graph import Node
from kernels.ir.packed import PackedMatrix, format_of
from kernels.ir.weight_parts import row_ranges
from kernels.lower.draft import Draft, Streamed
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import HALF_MAX, GpuContext
from kernels.lower.gpu.taking import gather_rows
from kernels.lower.gpu.taking import lower_gather as lower_elements
from kernels.plan.model import ITEM_BYTES, Dispatch, Tensor
from kernels.plan.steps import written
from kernels.source.kernel import Buffer, Kernel, result

_TOGETHER, _COPIES = 8, 4
"""Matrices that a step unpacks at most, and the size of their copies in parts of the largest of them."""
_GATHER = Kernel(
    "gather_packed",
    body("gather"),
    (Buffer("src", 1, "i32"), Buffer("indices", 1, "f32"), result("dst", 1)),
    ("axis", "inner", "indices_count", "count"),
    tile=BlockTile,
    whole_numbers=True,
    functions=UNPACK.functions,
)


def packed_weights(context: GpuContext, node: Node) -> PackedMatrix | None:
    """Return the packed weights of a dense layer, whose rows have an output's each; None where they are not packed."""
    constant = context.graph.constants.get(node.inputs[1])
    return constant if isinstance(constant, PackedMatrix) and format_of(constant) else None


def panels(context: GpuContext, node: Node, matrix: PackedMatrix) -> str:
    """Return the buffer of a node's packed weights: the same for all that read their bytes."""
    name, key = node.inputs[0 if node.op == "gather" else 1], matrix.digest
    if key not in context.panels:
        count, blocks, size = panel_shape(matrix)
        described = Tensor(shape=(count, blocks, size // ITEM_BYTES["i32"]), dtype="i32", layout="packed")
        content = Streamed(key, count * blocks * size, partial(in_panels, matrix))
        context.panels[key] = context.draft.add_weight(name, content, described)
    return context.panels[key]


def unpacked_copy(context: GpuContext, node: Node, matrix: PackedMatrix) -> str:
    """Append the step that unpacks a layer's weights, and return the buffer, which is free again behind the layer."""
    depth, columns = matrix.shape
    vectors, tile = -(-columns // 4), block_tile(matrix.format)
    size = depth * vectors * (8 if context.half else 16)
    described = Tensor(shape=(depth, 4 * vectors), dtype=context.dtype)
    target = context.draft.add_buffer(f"{node.name}:unpacked", size, "scratch", described)
    source = panels(context, node, matrix)
    context.dispatch(
        UNPACK, f"{node.name}:unpack", {"src": source, "dst": target}, {"depth": depth, "columns4": vectors},
        (vectors, -(-depth // tile.span), 1), tile=tile, traffic=2 * size,
    )  # fmt: skip
    return target


def joined_copies(draft: Draft) -> Draft:
    """Return the draft in which a step unpacks the weights of several products: between two steps a device is idle. It
    takes more memory, as copies live from their step to the last of their products. The draft itself: nothing joins."""
    groups, latest = list[dict[int, Dispatch]](), dict[str, dict[int, Dispatch]]()
    for at, step in enumerate(draft.steps):
        if isinstance(step, Dispatch) and draft.programs[step.program].name == UNPACK.name:
            group = latest.get(step.program)
            if group is None or not _is_one_step(draft, [*group.values(), step]):
                groups.append(group := {})
            latest[step.program] = group
            group[at] = step
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        return draft
    joined = replace(draft, programs=dict(draft.programs))
    steps = {min(group): _joined(joined, [*group.values()]) for group in groups}
    gone = {at for group in groups for at in group} - steps.keys()
    joined.steps = [steps.get(at, step) for at, step in enumerate(draft.steps) if at not in gone]
    used = {step.program for step in joined.steps if isinstance(step, Dispatch)}
    joined.programs = {name: program for name, program in joined.programs.items() if name in used}
    return joined


def _is_one_step(draft: Draft, each: Sequence[Dispatch]) -> bool:
    sizes = [draft.buffers[name].size for step in each for name in written(step, draft.parameters)]
    rows, is_counted = sum(step.work_items[1] for step in each), "GROUPS_X" in draft.programs[each[0].program].constants
    return len(each) <= _TOGETHER and sum(sizes) <= _COPIES * max(sizes) and rows <= MOST_GROUPS and not is_counted


def _joined(draft: Draft, each: Sequence[Dispatch]) -> Dispatch:
    """Return the step, and add its program."""
    first, count = draft.programs[each[0].program], range(len(each))
    assert first.kernel is not None
    kernel, read = first.kernel, len(first.kernel.buffers)
    buffers = tuple(replace(buffer, name=f"{buffer.name}{i}") for i in count for buffer in kernel.buffers)
    kernel = replace(kernel, buffers=buffers, ints=tuple(f"{name}{i}" for i in count for name in kernel.ints))
    constants = {**first.constants, "MATRICES": len(each)}
    program = replace(first, id=f"{first.id}_matrices{len(each)}", kernel=kernel, constants=constants)
    draft.programs[program.id] = program
    arguments = [one for part in (slice(read), slice(read, None)) for step in each for one in step.arguments[part]]
    items = (max(step.work_items[0] for step in each), sum(step.work_items[1] for step in each), 1)
    traffic = sum(step.bytes for step in each)
    changed = {"program": program.id, "arguments": tuple(arguments), "work_items": items, "bytes": traffic}
    return each[0].model_copy(update=changed)


def check_halves(node: Node, matrix: PackedMatrix) -> None:
    """Raise OptionError where halves cannot hold a layer's weights."""
    if matrix.bound > HALF_MAX:
        largest = max(float(np.abs(values).max()) for values in matrix.unpacked_pieces())
        if largest > HALF_MAX:
            raise OptionError(
                f"{node.inputs[1]}: a weight of size {largest:g} exceeds the range of fp16 ({HALF_MAX:.0f}); use fp32 "
                "or relaxed"
            )


def lower_gather(context: GpuContext, node: Node) -> None:
    """Take elements by whole numbers that are computed; of a table of packed rows unpack those that are asked for."""
    table = context.graph.constants.get(node.inputs[0])
    if not isinstance(table, PackedMatrix) or table.is_turned or node.attributes["axis"]:
        lower_elements(context, node)
        return
    ranges = row_ranges(table, context.limits.max_buffer_bytes // ITEM_BYTES[context.dtype])
    parts = {rows: panels(context, node, table.rows(np.arange(*rows))) for rows in ranges}
    gather_rows(context, node, _GATHER, parts, block_tile(table.format))
