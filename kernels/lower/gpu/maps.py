"""`map`: an expression of up to four operands is one kernel, written for it.

Where the operands lie in stacks of channels and agree with the result, or have one value a channel or a pixel, it
computes in stacks; else row-major, with the operands' strides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from kernels.catalog.packing import padded
from kernels.ir.activations import as_map
from kernels.ir.dims import Dims, has_channels
from kernels.ir.expressions import LETTERS, Program, program_of
from kernels.ir.graph import Node
from kernels.ir.programs import computed
from kernels.ir.strides import along_channels, strided
from kernels.source.kernel import NUMBERS, Buffer, Kernel, Number, result

from .bodies import body
from .context import GpuContext
from .expression_text import converted, in_halves, statements
from .layout import as_kept, packed
from .values import View

_LANES = "xyzw"


def lower_map(context: GpuContext, node: Node) -> None:
    """See the module."""
    kinds, (kind, expression) = _kinds(context, node), computed(as_map(node), context.graph.types)
    program = program_of(in_halves(expression) if context.half and kind == "f32" else expression)
    flops = len(program.instructions) * prod(context.graph.shapes[node.output])
    if kinds is None:
        _in_rows(context, node, program, kind, flops)
    else:
        _in_stacks(context, node, program, kinds, flops)


def generated(
    name: str, text: str, buffers: tuple[Buffer, ...], ints: Mapping[str, int], floats: tuple[str, ...] = ()
) -> Kernel:
    """A kernel of this text, called by its digest."""
    digest = hashlib.sha256(f"{text} {buffers} {list(ints)}".encode()).hexdigest()[:8]

    def write(template: str, _: Mapping[str, int]) -> str:
        return template.replace("GENERATED", text)

    return Kernel(f"{name}_{digest}", body("generated"), buffers, tuple(ints), floats, rewrite=write)


def counting(extents: Sequence[int]) -> str:
    """Statements that take element `i` of a row-major array apart into `x0`, `x1`, ..., by `n1`, `n2`, ..."""
    lines, rest = [], "i"
    for axis in range(len(extents) - 1, 0, -1):
        lines.append(f"const int x{axis} = {rest} % n{axis}; const int r{axis} = {rest} / n{axis};")
        rest = f"r{axis}"
    return "\n    ".join([*lines, f"const int x0 = {rest};"])


START = "const int i = GLOBAL_ID(0);\n    if (i >= count) return;\n    "


def _in_rows(context: GpuContext, node: Node, program: Program, kind: Number, flops: int) -> None:
    shape = context.graph.shapes[node.output]
    way = strided(shape, [context.graph.shapes[name] for name in node.inputs])
    text, ints = [START, counting(way.extents), "\n    "], {"count": prod(shape)}
    ints |= {f"n{axis}": extent for axis, extent in enumerate(way.extents) if axis}
    for letter, name, strides in zip(LETTERS, node.inputs, way.strides, strict=False):
        used = {axis: stride for axis, stride in enumerate(strides) if stride}
        place = "i" if strides == way.natural else " + ".join(f"x{axis} * {letter}{axis}" for axis in used) or "0"
        value = converted(f"LOAD_{letter}({place})", context.held(name), kind)
        text.append(f"const {NUMBERS[kind]} v_{letter} = {value};\n    ")
        ints |= {f"{letter}{axis}": stride for axis, stride in used.items()} if strides != way.natural else {}
    lines, value = statements(program, kind=kind)
    text.append(f"{lines}\n    STORE_dst(i, {converted(value, kind, context.held(node.output))});")
    buffers = {letter: as_kept(context, name) for letter, name in zip(LETTERS, node.inputs, strict=False)}
    read = (Buffer(letter, 1, context.storage(name)) for letter, name in zip(LETTERS, node.inputs, strict=False))
    kernel = generated("map", "".join(text), (*read, result("dst", 1, context.storage(node.output))), ints)
    context.dispatch(
        kernel, node.name, {**buffers, "dst": context.new_plain(node.output)}, ints, (prod(shape), 1, 1),
        flops=flops, traffic=context.traffic(node),
    )  # fmt: skip


def _kinds(context: GpuContext, node: Node) -> list[str] | None:
    """Return how each operand lies in stacks; None where one does not, or all are row-major already."""
    shape = context.graph.shapes[node.output]
    names = (*node.inputs, node.output)
    if not has_channels(shape) or context.kept_single.intersection(node.inputs) or any(map(context.is_whole, names)):
        return None
    found = [
        along_channels(context.graph.shapes[name], shape, constant=name in context.graph.constants)
        for name in node.inputs
    ]
    values = [context.values[name] for name in node.inputs if name in context.values]
    stacked = any(value.packed is not None and value.plain is None and value.single is None for value in values)
    return found if stacked and all(found) else None


def _in_stacks(context: GpuContext, node: Node, program: Program, kinds: Sequence[str], flops: int) -> None:
    dims = context.dims(node.output)
    views = stacked_operands(context, node, node.inputs, kinds)
    full = [name for name, kind in zip(node.inputs, kinds, strict=True) if kind == "F"]
    target = context.new_packed(node.output, over=full)
    text = (
        "const int i = GLOBAL_ID(0);\n    if (i >= stacks * hw) return;\n    const int picture = GROUP_ID(2);\n    "
        "const int stack = i / hw;\n    const int pixel = i - stack * hw;\n    "
        f"{stack_text(program, dict(zip(LETTERS, kinds, strict=False)))}"
        "STORE_dst((picture * dst_stacks + dst_stack0) * hw + i, found);"
    )
    ints = {"stacks": dims.stacks, "hw": dims.hw, **target.ints("dst"), **used_ints(views, text)}
    kernel = generated("map", text, (*(Buffer(n) for n in views), result("dst")), ints)
    context.dispatch(
        kernel, node.name, {**views, "dst": target}, ints, (dims.stacks * dims.hw, 1, dims.n),
        switches=trimmed(dims), flops=flops, traffic=context.traffic(node),
    )  # fmt: skip


def stacked_operands(context: GpuContext, node: Node, names: Sequence[str], kinds: Sequence[str]) -> dict[str, View]:
    """Return the operands of an expression in stacks, by their letters."""
    return {
        letter: _channels(context, node, name)
        if kind == "c" and name in context.graph.constants
        else packed(context, name)
        for letter, name, kind in zip(LETTERS, names, kinds, strict=False)
    }  # fmt: skip


def stack_text(program: Program, kinds: Mapping[str, str], known: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return statements that compute `found`, four channels of a pixel; `i` is its place in a picture's stacks.

    `kinds`: how each operand lies, by its letter; `known`: letters whose vectors are there, by their names.
    """
    text = [f"const FLOAT4 w_{letter} = {name};\n    " for letter, name in known.items()]
    for letter, kind in kinds.items():
        own = f"(picture * {letter}_stacks + {letter}_stack0)" if kind.isupper() else f"{letter}_stack0"
        place = {"f": f"{own} * hw + i", "c": f"{own} + stack", "p": f"{own} * hw + pixel"}[kind.lower()]
        text.append(f"const FLOAT4 w_{letter} = LOAD_{letter}({place});\n    ")
    values = []
    for lane in _LANES:
        loads = [
            f"const float v_{letter}_{lane} = w_{letter}.{'x' if kind in 'pP' else lane};"
            for letter, kind in {**dict.fromkeys(known, "F"), **kinds}.items()
        ]
        lines, value = statements(program, f"_{lane}")
        text.append("\n    ".join([*loads, lines]) + "\n    ")
        values.append(value)
    text.append(f"FLOAT4 found = VEC4({', '.join(values)});\n    TRIM(stack == LAST_STACK, found)\n    ")
    return "".join(text)


def used_ints(views: Mapping[str, View], text: str) -> dict[str, int]:
    """Return the integers of operands that a text reads."""
    return {key: value for letter, view in views.items() for key, value in view.ints(letter).items() if key in text}


def trimmed(dims: Dims) -> dict[str, int]:
    """Return the switches by which a kernel leaves the lanes behind the last channel empty."""
    return {"LAST_LANES": dims.c % 4, "LAST_STACK": dims.stacks - 1} if dims.c % 4 else {}


def _channels(context: GpuContext, node: Node, name: str) -> View:
    """A constant of one value a channel."""
    array = context.graph.constants[name].astype(np.float32).reshape(-1)
    return View(context.weight(f"{node.name}:{name}", padded(array, 0, 4)), -(-array.size // 4), 0)
