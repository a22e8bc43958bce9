"""Data that a plan moves without computing: copies, transpositions and changes of layout, with their bytes and why.

Padding and resizing are operations of the network, and transforms of Winograd compute; they are not listed. Nothing is
hidden in another step: a tensor has one layout at a time, and what needs another one reads what a listed step wrote.
Layers at the ends of a network may read and write ports as they are, which moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .model import Buffer, Copy, Dispatch, IntArgument, Plan, Program, Step, Transfer
from .steps import read, touched, written

Kind = Literal["input", "output", "layout", "transpose", "concat", "slice", "workspace", "swap", "transfer"]
"""input, output: between the caller's row-major fp32 array and the layout of the first or last kernel; layout: between
two layers that want different ones; workspace: a copy that an algorithm works on (`im2col`);
transfer: from one segment of a mixed plan to another."""

PORTS = frozenset({"input", "output"})


@dataclass(frozen=True)
class Movement:
    """One step that moves data."""

    index: int
    """Number of the step in the plan."""
    layer: str
    step: str
    """`copy`, `swap_in`, `swap_out`, or the kernel."""
    kind: Kind
    bytes: int
    """Read and written."""
    why: str


def movements(plan: Plan) -> tuple[Movement, ...]:
    """Every step of a plan that moves data, in order."""
    account = _Account(plan)
    found = (account.movement(index, step) for index, step in enumerate(plan.steps))
    return tuple(movement for movement in found if movement is not None)


_PACKED = ("pack", "pack_data", "unpack", "unpack_data", "pad_rows", "trim_rows")
_TRANSPOSE: tuple[Kind, str] = "transpose", "the graph transposes or takes, and no neighbour could do it"
_CONCAT: tuple[Kind, str] = "concat", "a part of the concat that its own layer could not write in place"
_CHANGES = frozenset((*_PACKED, "narrow", "widen", "to_nc16", "from_nc16"))


class _Account:
    def __init__(self, plan: Plan) -> None:
        self._programs: dict[str, Program] = {program.id: program for program in plan.programs}
        self._parameters = {program.id: program.parameters for program in plan.programs}
        self._buffers: dict[str, Buffer] = {buffer.id: buffer for buffer in plan.buffers}
        self._steps = plan.steps

    def movement(self, index: int, step: Step) -> Movement | None:
        """None where the step computes."""
        if isinstance(step, Dispatch):
            return self._dispatch(index, step)
        if isinstance(step, Copy):
            kind, why = self._ends(index, step.source, step.target)
            return Movement(index, step.layer, "copy", kind, 2 * step.bytes, why)
        if isinstance(step, Transfer):
            why = f"`{step.layer}` goes through host memory, out of a segment and into another"
            return Movement(index, step.layer, "transfer", "transfer", 2 * step.bytes, why)
        size = self._buffers[step.buffer].bytes
        why = "makes room on the device" if step.kind == "swap_out" else "is needed again"
        return Movement(index, step.layer, step.kind, "swap", 2 * size, f"`{step.buffer}` {why}")

    def _dispatch(self, index: int, step: Dispatch) -> Movement | None:
        kernel, size = self._programs[step.program].kernel, step.bytes
        if kernel in _CHANGES:
            source, target = touched(step)
            kind, why = self._ends(index, source, target)
        elif kernel.startswith("transpose"):
            kind, why = _TRANSPOSE
        elif kernel == "copy_channels":
            kind, why = "concat", f"a part of the concat: {self._not_in_place(step)}"
        elif kernel == "take":
            kind, why = self._taken(step)
        elif kernel == "copy_block":
            kind, why = _CONCAT
        elif kernel == "take_block":
            kind, why = "slice", "the slice does not begin and end at whole stacks of channels"
        elif kernel == "im2col":
            kind, why = "workspace", "the algorithm im2col multiplies a copy with the window's taps side by side"
            size = sum(self._buffers[name].bytes for name in touched(step))
        else:
            return None
        return Movement(index, step.layer, kernel, kind, size, why)

    def _ends(self, index: int, source: str, target: str) -> tuple[Kind, str]:
        """Tell of a change of layout whether it is at a port, else between which layers."""
        before, behind = self._buffers[source], self._buffers[target]
        if behind.role == "output":
            return "output", "the output is a row-major fp32 array of its own"
        if before.role == "input":
            return "input", f"the input is a row-major fp32 array, {_words(behind)} the network's own"
        earlier, later = _unswapped(self._steps[:index][::-1]), _unswapped(self._steps[index + 1 :])
        writer = next((f"`{s.layer}`" for s in earlier if source in written(s, self._parameters)), "a constant")
        reader = next((f"`{s.layer}`" for s in later if target in read(s, self._parameters)), "nobody")
        return "layout", f"{writer} leaves {_words(before)}, {reader} reads {_words(behind)}"

    def _taken(self, step: Dispatch) -> tuple[Kind, str]:
        """Tell what the CPU's one operation for moves does: parts of a concat lie apart."""
        ints = self._ints(step)
        return _CONCAT if ints["dst_step"] > ints["d7"] else _TRANSPOSE

    def _ints(self, step: Dispatch) -> dict[str, int]:
        given = zip(self._programs[step.program].parameters, step.arguments, strict=True)
        return {parameter.name: a.i32 for parameter, a in given if isinstance(a, IntArgument)}

    def _not_in_place(self, step: Dispatch) -> str:
        ints = self._ints(step)
        first, behind = ints["dst_channel0"], ints["dst_channel0"] + ints["channels"]
        if first % 4:
            return f"it starts at channel {first}, in the middle of a stack of four"
        if behind % 4 and ints["written"] == ints["channels"]:
            return f"the next part starts at channel {behind}, in the middle of a stack of four"
        return "its tensor is another's part too, no layer of the network writes it, or the fusion `concat` is off"


def _unswapped(steps: Iterable[Step]) -> list[Dispatch | Copy | Transfer]:
    return [step for step in steps if isinstance(step, Dispatch | Copy | Transfer)]


def _words(buffer: Buffer) -> str:
    tensor = buffer.tensor
    if tensor is None:
        return "bytes"
    layout = {
        "plain": "row-major",
        "nc4hw4": "stacks of four channels",
        "nc16hw16": "blocks of sixteen channels",
        "packed": "an order of its own",
    }[tensor.layout]
    return f"{layout} {tensor.dtype}"
