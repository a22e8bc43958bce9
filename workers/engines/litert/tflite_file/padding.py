"""Pads by LiteRT's rules, or as an operation of their own."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from kernels.ir.graph import Node

from .writer import CODE, Unsupported, Writer


def needed_pads(writer: Writer, node: Node, kernel: tuple[int, int], dilations: tuple[int, int]) -> tuple[int, ...]:
    """(t,l,b,r) that the windows really touch: what lies behind the last window does not count."""
    a = node.attributes
    extents, results = writer.graph.shapes[node.inputs[0]][2:], writer.graph.shapes[node.output][2:]
    spans = [(kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
    after = [(results[i] - 1) * a["strides"][i] + spans[i] - extents[i] - a["pads"][i] for i in range(2)]
    return (*a["pads"][:2], *after)


def padded(
    writer: Writer, node: Node, kernel: tuple[int, int], dilations: tuple[int, int], value: float | None
) -> tuple[int, int]:
    """Input, padded by an operation where SAME does not give these pads, and the rule that remains. `value` None: the
    pads are not part of the mean, so that only SAME will do."""
    needed = needed_pads(writer, node, kernel, dilations)
    source = writer.activation(node.inputs[0])
    if not any(pad > 0 for pad in needed):
        return source, int(schema.Padding.VALID)
    results, strides = writer.graph.shapes[node.output][2:], node.attributes["strides"]
    extents = writer.graph.shapes[node.inputs[0]][2:]
    totals = [max(needed[i] + needed[2 + i], 0) for i in range(2)]
    same = all(
        needed[i] == totals[i] // 2 and needed[2 + i] == totals[i] - totals[i] // 2
        and results[i] == -(-extents[i] // strides[i])
        for i in range(2)
    )  # fmt: skip
    if same:
        return source, int(schema.Padding.SAME)
    if value is None:
        raise Unsupported(f"{node.name}: a mean over pads {needed} that LiteRT has no rule for")
    n, c, h, w = writer.graph.shapes[node.inputs[0]]
    top, left, bottom, right = (max(pad, 0) for pad in needed)
    target = writer.fresh(f"{node.name}/padded", (n, h + top + bottom, w + left + right, c))
    amounts = np.asarray([(0, 0), (top, bottom), (left, right), (0, 0)], np.int32)
    pads = writer.constant(f"{node.name}/pads", amounts)
    if value == 0:
        writer.add(CODE.PAD, [source, pads], target, schema.PadOptionsT(), schema.BuiltinOptions.PadOptions)
    else:
        filler = writer.constant(f"{node.name}/filler", np.asarray([value], np.float32))
        options = (schema.PadV2OptionsT(), schema.BuiltinOptions.PadV2Options)
        writer.add(CODE.PADV2, [source, pads, filler], target, *options)
    return target, int(schema.Padding.VALID)
