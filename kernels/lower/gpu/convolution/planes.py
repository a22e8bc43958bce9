"""An input of few channels that a convolution reads as the host wrote it, without a step that packs it into stacks."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.catalog.convolution.implicit_gemm import KERNEL as IMPLICIT_GEMM
from kernels.catalog.desktop.convolution import KERNEL as MATRIX_UNITS
from kernels.catalog.family import Call
from kernels.ir.graph import Node
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.values import View

_KERNELS = frozenset((IMPLICIT_GEMM.name, MATRIX_UNITS.name))
"""They load a value of the source once for a work-group, whose work-items lie along a row of a plane."""
_CHANNELS = 4
"""Channels of one stack."""


def port_in_planes(context: GpuContext, node: Node, calls: Sequence[Call]) -> View | None:
    """The input of a conv node as the port has it; None where the node must read stacks.

    Only for GPUs with memory of their own, where a step costs more than loads of single numbers, and inputs that lie
    there: through a bus each load would be slow. An input that other nodes read, too, is packed once for all of them.
    """
    name, limits, options = node.inputs[0], context.limits, context.options
    value, channels = context.values.get(name), context.dims(name).c
    is_near = not (limits.unified_memory or limits.cpu_device or options.transfers.startswith("map"))
    if not context.at_ports or not is_near or channels > _CHANNELS:
        return None
    if value is None or value.packed is not None or value.single is None or not _is_port(context, value.single):
        return None
    readers = [each for reader in context.graph.consumers(name) for each in reader.inputs if each == name]
    if len(readers) > 1 or any(call.kernel.name not in _KERNELS for call in calls if call.reads == "src"):
        return None
    return View(value.single, channels, 0, planes=channels)


def _is_port(context: GpuContext, buffer: str) -> bool:
    return context.draft.buffers[buffer].role == "input"
