"""The end of a layer in 8 bits: scales, grids, residual, activation, and where results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kernels.catalog.packing import padded
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.lower.cpu.codes import Steps
from kernels.lower.cpu.convolution import RESIDUAL, SCALE
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.layout import packed
from kernels.lower.gpu.values import CodeBuffer, View
from kernels.source.kernel import Buffer, Kernel, result

from .packing import WholeWeights
from .quantize import given_steps, new_codes, single

_NO_STEPS: Steps = (1.0, 0)
_FLOATS, _AS_CODES, _ROUNDED = 1, 2, 4
"""Values of the switch WRITES."""
_IN_FLOATS, _IN_CODES = 1, 2
"""Values of the switch RESIDUAL."""


@dataclass(frozen=True)
class Ending:
    """Arguments and constants of a kernel's end."""

    buffers: Mapping[str, str | View]
    ints: Mapping[str, int]
    floats: Mapping[str, float]
    switches: Mapping[str, int]

    def of(self, kernel: Kernel) -> Kernel:
        """The kernel with the buffers that this end has."""
        codes = self.switches["RESIDUAL"] == _IN_CODES
        changed = (Buffer("residual", 1, "i32") if codes and b.name == "residual" else b for b in kernel.buffers)
        optional = {"residual", "dst"} - self.buffers.keys()
        written = (result("codes", 1, "i32"),) if "codes" in self.buffers else ()
        return replace(kernel, buffers=(*(b for b in changed if b.name not in optional), *written))


def ending_of(context: GpuContext, node: Node, whole: WholeWeights) -> Ending:
    """Return the end of a conv or dense node; the places of its results are made here."""
    residual, residual_steps, buffers, ints = _residual(context, node)
    codes, a = context.codes.get(node.output), node.attributes
    out: Steps | None = codes.steps if codes is not None else a.get("output_steps")
    writes = 0
    if codes is None or codes.floats:
        writes |= _ROUNDED if "output_steps" in a else _FLOATS
        sums = node.inputs[RESIDUAL : RESIDUAL + 1] if residual == _IN_FLOATS else ()
        target = context.new_packed(node.output, over=sums)
        buffers["dst"] = target
        ints |= target.ints("dst")
    if codes is not None:
        writes |= _AS_CODES
        words = new_codes(context, node.output)
        buffers["codes"] = words
        made = CodeBuffer(words, given_steps(context, node.output, codes.steps), by_picture=False)
        context.code_buffers[node.output, codes.steps] = made
    grids = {"SUMS_ROUNDED": a.get("sum_steps"), "BRANCH_ROUNDED": a.get("branch_steps")}
    steps = [each or _NO_STEPS for each in (*grids.values(), residual_steps, out)]
    buffers["ending"] = single(context, f"{node.name}:ending", _vectors(context, node, whole, steps))
    code, lo, hi = activation_scalars(node)
    dims = context.dims(node.output)
    switches = {name: int(each is not None) for name, each in grids.items()}
    switches |= {"SCALED": int(_has(node, SCALE)), "RESIDUAL": residual, "WRITES": writes}
    switches |= {"LAST_LANES": dims.c % 4} if dims.c % 4 else {}
    ints = {"dst_stacks": 0, "dst_stack0": 0, **ints, "last_stack": dims.stacks - 1, "activation": code}
    return Ending(buffers, ints, {"lo": lo, "hi": hi}, switches)


def _residual(context: GpuContext, node: Node) -> tuple[int, Steps | None, dict[str, str | View], dict[str, int]]:
    """Return how the residual is read, its steps where it is whole numbers, and the arguments."""
    none = {"residual_stacks": 0, "residual_stack0": 0}
    if not _has(node, RESIDUAL):
        return 0, None, {}, none
    name = node.inputs[RESIDUAL]
    codes = context.codes.get(name)
    if codes is not None and codes.on_grid:
        words = context.code_buffers[name, codes.steps].words
        return _IN_CODES, codes.steps, {"residual": words}, {**none, "residual_stacks": context.dims(name).stacks}
    source = packed(context, name)
    return _IN_FLOATS, None, {"residual": source}, source.ints("residual")


def _vectors(context: GpuContext, node: Node, whole: WholeWeights, steps: list[Steps]) -> Array:
    """Steps and their zeros, then of each stack scale, bias, and factor and shift of a normalisation."""
    k = len(whole.scale)
    bias = constant(context, node, 2) if _has(node, 2) else np.zeros(k, np.float32)
    affine = [constant(context, node, SCALE + i) if _has(node, SCALE) else np.zeros(k, np.float32) for i in (0, 1)]
    rows = np.stack([padded(each.reshape(-1), 0, 4) for each in (whole.scale, bias, *affine)])
    stacks = rows.reshape(4, -1, 4).transpose(1, 0, 2).reshape(-1, 4)
    return np.concatenate([np.array(steps, np.float32).T, stacks])


def _has(node: Node, index: int) -> bool:
    return len(node.inputs) > index and bool(node.inputs[index])
