"""What a plan moves without computing: copies, transpositions and changes of layout, with their bytes and why.

Padding and resizing are operations of the network, and transforms of Winograd compute; they are not listed. Nothing is
hidden in another step: a tensor has one layout at a time, and what needs another one reads what a listed step wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .model import Argument, Buffer, BufferArgument, Copy, Dispatch, IntArgument, Plan, Program, Repeat, Step

Kind = Literal["input", "output", "layout", "transpose", "concat", "slice", "workspace", "swap"]
"""input, output: between the caller's row-major fp32 array and the layout of the first or last kernel; layout: between
two layers that want different ones; workspace: a copy that an algorithm works on (`im2col`)."""

PORTS = frozenset({"input", "output"})


@dataclass(frozen=True)
class Movement:
    """One step that moves data."""

    index: int
    """Of the top-level step in the plan."""
    layer: str
    step: str
    """`copy`, `swap_in`, `swap_out`, or the kernel."""
    kind: Kind
    bytes: int
    """Read and written."""
    times: int
    """How often an inference does it."""
    why: str


def movements(plan: Plan) -> tuple[Movement, ...]:
    """Every step of a plan that moves data, in order."""
    account = _Account(plan)
    return tuple(
        movement
        for index, top in enumerate(plan.steps)
        for step, times in _flat(top)
        if (movement := account.movement(index, step, times)) is not None
    )


def _flat(step: Step, times: int = 1) -> Iterator[tuple[Step, int]]:
    if isinstance(step, Repeat):
        for inner in step.steps:
            yield from _flat(inner, times * step.count)
    else:
        yield step, times


_CHANGES = frozenset({"pack", "pack_data", "unpack", "unpack_data", "narrow", "widen", "to_nc16", "from_nc16"})


class _Account:
    def __init__(self, plan: Plan) -> None:
        self._programs: dict[str, Program] = {program.id: program for program in plan.programs}
        self._buffers: dict[str, Buffer] = {buffer.id: buffer for buffer in plan.buffers}
        self._steps = [step for top in plan.steps for step, _ in _flat(top)]

    def movement(self, index: int, step: Step, times: int) -> Movement | None:
        """None where the step computes."""
        if isinstance(step, Copy):
            kind, why = self._ends(step, step.source, step.target)
            return Movement(index, step.layer, "copy", kind, 2 * step.bytes, times, why)
        if isinstance(step, Dispatch):
            return self._dispatch(index, step, times)
        if isinstance(step, Repeat):
            return None
        size = self._buffers[step.buffer].bytes
        why = "makes room on the device" if step.kind == "swap_out" else "is needed again"
        return Movement(index, step.layer, step.kind, "swap", 2 * size, times, f"`{step.buffer}` {why}")

    def _dispatch(self, index: int, step: Dispatch, times: int) -> Movement | None:
        kernel, size = self._programs[step.program].kernel, step.bytes
        if kernel in _CHANGES:
            source, target = _buffers(step.arguments)
            kind, why = self._ends(step, source, target)
        elif kernel.startswith("transpose"):
            kind, why = "transpose", "the graph transposes, and no neighbour could take it over"
        elif kernel == "copy_channels":
            kind, why = "concat", f"a part of the concat: {self._not_in_place(step)}"
        elif kernel == "copy_block":
            kind, why = "concat", "a part of the concat that its own layer could not write in place"
        elif kernel == "take_block":
            kind, why = "slice", "the slice does not begin and end at whole stacks of channels"
        elif kernel == "im2col":
            kind, why = "workspace", "the algorithm im2col multiplies a copy with the window's taps side by side"
            size = sum(self._buffers[name].bytes for name in _buffers(step.arguments))
        else:
            return None
        return Movement(index, step.layer, kernel, kind, size, times, why)

    def _ends(self, step: Step, source: str, target: str) -> tuple[Kind, str]:
        """Of a change of layout: whether it is at a port, else between which layers."""
        before, behind = self._buffers[source], self._buffers[target]
        if behind.role == "output":
            return "output", "the output is a row-major fp32 array of its own"
        if before.role == "input":
            return "input", f"the input is a row-major fp32 array, {_words(behind)} the network's own"
        writer = next((_layer(s) for s in self._before(step) if source in _written(s, self._programs)), "a constant")
        reader = next((_layer(s) for s in self._behind(step) if target in _read(s, self._programs)), "nobody")
        return "layout", f"{writer} leaves {_words(before)}, {reader} reads {_words(behind)}"

    def _before(self, step: Step) -> list[Step]:
        return self._steps[: self._steps.index(step)][::-1]

    def _behind(self, step: Step) -> list[Step]:
        return self._steps[self._steps.index(step) + 1 :]

    def _not_in_place(self, step: Dispatch) -> str:
        given = zip(self._programs[step.program].parameters, step.arguments, strict=True)
        ints = {parameter.name: a.i32 for parameter, a in given if isinstance(a, IntArgument)}
        first, behind = ints["dst_channel0"], ints["dst_channel0"] + ints["channels"]
        if first % 4:
            return f"it starts at channel {first}, in the middle of a stack of four"
        if behind % 4 and ints["written"] == ints["channels"]:
            return f"the next part starts at channel {behind}, in the middle of a stack of four"
        return "its tensor is another's part too, no layer of the network writes it, or the fusion `concat` is off"


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


def _layer(step: Step) -> str:
    return f"`{step.layer}`"


def _buffers(arguments: Sequence[Argument]) -> list[str]:
    return [argument.buffer for argument in arguments if isinstance(argument, BufferArgument)]


def _read(step: Step, programs: dict[str, Program]) -> list[str]:
    return _accessed(step, programs, ("read", "readwrite"))


def _written(step: Step, programs: dict[str, Program]) -> list[str]:
    return _accessed(step, programs, ("write", "readwrite"))


def _accessed(step: Step, programs: dict[str, Program], how: tuple[str, ...]) -> list[str]:
    if isinstance(step, Copy):
        return [step.source] if "read" in how else [step.target]
    if not isinstance(step, Dispatch):
        return []
    given = zip(programs[step.program].parameters, step.arguments, strict=True)
    return [a.buffer for p, a in given if isinstance(a, BufferArgument) and p.access in how]
