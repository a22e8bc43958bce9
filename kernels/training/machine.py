"""Writes a training's steps: matrices, products of them, and kernels by name; one class for GPUs, one for the CPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from kernels.catalog.product import ALGORITHMS, PRODUCTS, Product
from kernels.catalog.transposition import TRANSPOSITIONS, transpose_of
from kernels.errors import OptionError, checkpoint
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.lower.draft import Draft, DraftProgram, Role, arguments
from kernels.lower.gpu.context import GpuContext
from kernels.options import Choice, Limits, Options
from kernels.plan.model import BufferArgument, Dispatch, Dtype, Side, Tensor
from kernels.source.kernel import Kernel

from .gpu_kernels import KERNELS
from .variables import Shape, up

Activation = tuple[Any, ...]
_MOST_TURNS = 65_536
_SQUARES = 16
"""The squares, below one another, that a work-item turns: its part of a row then fills four cache lines."""
_DEEP = 2048
"""The depth from which on a product of few outputs shares out its depth on a GPU."""

FIXED = frozenset(
    {
        *("h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "pad_t", "pad_l", "dh", "dw"),
        *("channels", "src_stride", "stride", "hw", "columns"),
    }
)
"""Scalars by which kernels divide: where they are compiled for them, they are constants."""
_WHOLE = {
    "gather": "batch",
    "gather_bytes": "batch",
    "unfold": "rows",
    "fold": "src_stride",
    "max_pool": "stride",
    "max_pool_gradient": "stride",
    "average_pool_gradient": "stride",
}
"""Kernels of which a work-item takes all channels of a pixel, or a sample: the scalar that says how many numbers of
`count` that is, or how many work-items where there is none."""


@dataclass(frozen=True)
class Rows:
    """A tensor as a matrix: a pixel a row, its channels side by side, filled up to `stride`."""

    buffer: str
    n: int
    c: int
    h: int = 1
    w: int = 1
    image: Shape = ()
    """Channels, height and width of an image that was flattened."""
    turned: bool = False
    """True if its columns lie where others have rows; only products of the CPU backend read it so."""

    @property
    def rows(self) -> int:
        return self.n * self.h * self.w

    @property
    def stride(self) -> int:
        return up(self.c)

    @property
    def elements(self) -> int:
        return self.rows * self.stride


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution as rows: for each tap the channels of its pixel."""

    source: Rows
    geometry: Mapping[str, int]
    """Scalars of the kernel `unfold`, but for the sizes of its result."""

    @property
    def depth(self) -> int:
        return self.geometry["kh"] * self.geometry["kw"] * self.geometry["channels"]

    @property
    def size(self) -> tuple[int, int]:
        return self.geometry["oh"], self.geometry["ow"]

    @property
    def rows(self) -> int:
        return self.source.n * prod(self.size)


Source = Rows | Windows


class Machine(ABC):
    """The draft of a plan that trains, and how a step gets into it."""

    draft: Draft
    side: Side = ""
    """The side whose steps it writes, in a plan of both."""

    def rows(self, name: str, n: int, c: int, h: int = 1, w: int = 1) -> Rows:
        """A new matrix that lives within a pass."""
        return Rows(self.buffer(name, (n, h, w, up(c)), "activation"), n, c, h, w)

    def buffer(self, name: str, shape: Shape, role: Role, content: Array | None = None, dtype: Dtype = "f32") -> str:
        """A new buffer, with what is in it at the start."""
        size = prod(shape) * (1 if dtype == "u8" else 4)
        kept = None if content is None else content.tobytes()
        return self.draft.add_buffer(name, size, role, Tensor(shape=shape, dtype=dtype), kept, self.side)

    def weight(self, name: str, content: Array) -> str:
        """Constant content, kept once."""
        tensor = Tensor(shape=content.shape, dtype="f32")
        return self.draft.add_weight(name, content.tobytes(), tensor, self.side)

    @abstractmethod
    def product(
        self, layer: str, a: Rows, b: Rows, target: Rows, *, rows: int, bias: str = "", activation: Activation = ()
    ) -> None:
        """The first `rows` of target = a times b, with the bias and activation."""

    @abstractmethod
    def transposed(self, layer: str, source: Rows) -> Rows:
        """A new matrix, the source's columns, those that fill it up too, as rows."""

    @abstractmethod
    def kernel(
        self,
        name: str,
        layer: str,
        buffers: Mapping[str, str],
        ints: Mapping[str, int],
        items: tuple[int, int],
        floats: Mapping[str, float] | None = None,
    ) -> None:
        """Write a kernel of `gpu_kernels.py`, by so many work-items across and down."""


class GpuMachine(Machine):
    """Steps for OpenCL and Vulkan."""

    def __init__(self, graph: Graph, options: Options, limits: Limits) -> None:
        self._context = GpuContext(replace(graph, nodes=[]), options, limits)
        self._options, self._limits = options, limits
        self.draft = self._context.draft

    def product(
        self, layer: str, a: Rows, b: Rows, target: Rows, *, rows: int, bias: str = "", activation: Activation = ()
    ) -> None:
        """Write a product by the algorithm that the catalog chooses."""
        sizes = Product(1, rows, a.stride, target.stride)
        choice = self._choice(layer, sizes)
        self.draft.chosen[layer] = choice.words
        (call,) = PRODUCTS.lower(choice, sizes, {}, self._options, self._limits)
        code, lo, hi = activation_code(activation)
        ints = {
            "rows": rows, "depth": a.stride, "columns4": target.stride // 4, "a_start": 0, "a_stride": a.stride // 4,
            "a_batch": 0, "b_stride": b.stride // 4, "b_batch": 0, "dst_start": 0, "dst_stride": target.stride // 4,
            "dst_batch": 0, "has_bias": int(bool(bias)), "activation": code,
        }  # fmt: skip
        wanted = {parameter.name for parameter in call.kernel.parameters}
        self._context.dispatch(
            call.kernel, layer, {"a": a.buffer, "b": b.buffer, "bias": bias or b.buffer, "dst": target.buffer},
            {name: value for name, value in ints.items() if name in wanted}, call.work_items,
            floats={"lo": lo, "hi": hi}, tile=call.tile, switches=call.switches, group=call.group, flops=sizes.flops,
            traffic=4 * (rows * a.stride + b.elements + rows * target.stride),
        )  # fmt: skip

    @property
    def takes_whole(self) -> bool:
        """A work-item takes a whole of `_WHOLE` on PoCL, where that pays; lavapipe cuts long loops short."""
        return self._limits.cpu_device and self._options.backend == "opencl"

    def is_fixed(self, name: str) -> bool:
        """Return whether a kernel is compiled for the sizes by which it divides."""
        return self.takes_whole and name in _WHOLE and not name.startswith("gather")

    def dispatch(
        self, kernel: Kernel, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], items: tuple[int, int],
        *, floats: Mapping[str, float] | None = None, switches: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Write a dispatch of a kernel by so many work-items across and down."""
        self._context.dispatch(kernel, layer, buffers, ints, (*items, 1), floats=floats, switches=switches)

    def check_turns(self, layer: str, turns: int) -> None:
        """Raise OptionError where lavapipe would end a work-item's loops, all together, before so many turns."""
        if turns > _MOST_TURNS and self._limits.cpu_device and self._options.backend == "vulkan":
            raise OptionError(
                f"{layer}: a work-item's loops have {turns} turns, and lavapipe ends them at {_MOST_TURNS} and says "
                "nothing: give `auto` or OpenCL"
            )

    def _choice(self, layer: str, sizes: Product) -> Choice:
        deep = sizes.depth >= max(_DEEP, 8 * sizes.rows, 8 * sizes.columns) and not self._limits.cpu_device
        shared = deep and ALGORITHMS["split_depth"].why_not(sizes, self._options, self._limits) is None
        if shared and PRODUCTS.is_open(self._options):
            return Choice("split_depth")
        return PRODUCTS.choose(self._options, self._limits, layer, sizes)

    def transposed(self, layer: str, source: Rows) -> Rows:
        """Transpose by the algorithm that the catalog chooses; on CPUs behind a GPU interface in squares of four."""
        target = self.rows(f"{source.buffer}:transposed", source.stride, source.rows)
        if self._limits.cpu_device and source.rows % 4 == 0 and TRANSPOSITIONS.is_open(self._options):
            columns4, rows4 = source.stride // 4, source.rows // 4
            buffers = {"src": source.buffer, "dst": target.buffer}
            ints = {"columns4": columns4, "rows4": rows4, "each": _SQUARES}
            self.kernel("turn", layer, buffers, ints, (columns4, -(-rows4 // _SQUARES)))
            return target
        sizes = transpose_of((source.rows, source.stride), (1, 0))
        choice = TRANSPOSITIONS.choose(self._options, self._limits, layer, sizes)
        (call,) = TRANSPOSITIONS.lower(choice, sizes, {}, self._options, self._limits)
        self._context.dispatch(
            call.kernel, layer, {"src": source.buffer, "dst": target.buffer}, call.ints, call.work_items,
            tile=call.tile, group=call.group, traffic=8 * source.elements,
        )  # fmt: skip
        return target

    def kernel(
        self, name: str, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], items: tuple[int, int],
        floats: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Write a dispatch."""
        whole, group = self.takes_whole and name in _WHOLE, 0
        switches = {"BYTES": int(name == "gather_bytes")} if name.startswith("gather") else {}
        if switches or whole:
            switches["WHOLE"] = int(whole)
        if whole:
            each = ints[_WHOLE[name]]
            items, group = (ints["count"] // each if "count" in ints else each, 1), 1
        fixed = {one: ints[one] for one in sorted(FIXED & set(ints))} if self.is_fixed(name) else {}
        self._context.dispatch(
            KERNELS[name].fixing(fixed), layer, buffers,
            {one: value for one, value in ints.items() if one not in fixed}, (*items, 1), floats=floats,
            switches={**switches, **fixed}, group=group,
        )  # fmt: skip


class CpuMachine(Machine):
    """Calls of the agent's operations on CPU threads."""

    def __init__(self, draft: Draft, side: Side = "") -> None:
        self.draft, self.side = draft, side

    def product(
        self, layer: str, a: Rows, b: Rows, target: Rows, *, rows: int, bias: str = "", activation: Activation = ()
    ) -> None:
        """Compute a product of either operand as it lies."""
        code, lo, hi = activation_code(activation)
        ints = {
            "rows": rows, "depth": a.stride, "columns": target.stride, "a_stride": a.n if a.turned else a.stride,
            "b_stride": b.n if b.turned else b.stride, "a_turned": int(a.turned), "b_turned": int(b.turned),
            "has_bias": int(bool(bias)), "activation": code,
        }  # fmt: skip
        buffers = {"a": a.buffer, "b": b.buffer, "bias": bias or b.buffer, "dst": target.buffer}
        self.kernel("product", layer, buffers, ints, (1, 1), {"lo": lo, "hi": hi})

    def transposed(self, layer: str, source: Rows) -> Rows:
        """The same matrix, seen the other way round."""
        return Rows(source.buffer, source.stride, source.rows, turned=True)

    def kernel(
        self, name: str, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], items: tuple[int, int],
        floats: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Write the operation that the kernel is on the CPU."""
        checkpoint()
        program = f"{self.side} {name}".lstrip()
        self.draft.programs.setdefault(program, DraftProgram(program, name, None, side=self.side))
        names = tuple(parameter.name for parameter in CPU_OPERATIONS[name])
        places = {each: BufferArgument(buffer=buffer) for each, buffer in buffers.items()}
        given = arguments(places, names, ints, floats or {})
        self.draft.steps.append(Dispatch(program=program, layer=layer, work_items=(1, 1, 1), arguments=given))


def activation_code(activation: Activation) -> tuple[int, float, float]:
    """Return the code of relu or sigmoid, which have no bounds; 0: none."""
    return (ACTIVATIONS[activation[0]].code if activation else 0), 0.0, 0.0
