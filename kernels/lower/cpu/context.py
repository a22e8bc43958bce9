"""State of one lowering for CPU threads: where tensors are and in which layout, and how a call is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, Literal, TypeVar, cast

import numpy.typing as npt

from kernels.catalog.panels import in_panels, layout_of, panel_shape
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.packed import PackedMatrix, packed_bytes
from kernels.ir.programs import Held, held
from kernels.lower.aliases import plan_aliases
from kernels.lower.draft import Draft, DraftProgram, Role, Streamed, arguments
from kernels.lower.traffic import touched
from kernels.options import Options
from kernels.plan.model import ITEM_BYTES, BufferArgument, Dispatch, Dtype, PartArgument, Tensor

from .agent_operations import CPU_OPERATIONS
from .codes import stored_as_codes
from .layout import in_blocks
from .packing import BLOCK, blocks

T = TypeVar("T")
_NUMPY: dict[Held, str] = {"f32": "<f4", "i32": "<i4", "i64": "<i8"}
_PLACEABLE = frozenset({"conv", "max_pool", "average_pool"})
"""Operations that write at a channel offset of a larger result."""
_AT_START = _PLACEABLE | {"concat"}
"""Operations that write the first channels of a larger result of one image, as if it were theirs."""


class CpuContext:
    """Knows where tensors are, and writes calls.

    A tensor is row-major or in blocks of sixteen channels, as its producer writes it; a reader that wants the other
    layout gets a call before its own that converts it, once.
    """

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.draft = Draft(graph.name)
        self.buffers: dict[str, str] = {}
        self._blocks: dict[str, str] = {}
        self._in_blocks = in_blocks(graph, options)
        # parts of a concat are written straight into its result
        self._aliases = _placeable(graph, self._in_blocks) if "concat" in options.fusions else {}
        self._parts = _contiguous(graph, self._in_blocks, self._aliases) if "concat" in options.fusions else {}
        self._origins = _origins(graph)
        self._views: dict[str, tuple[str, int, int]] = {}
        self.norms: dict[str, Node] = {}
        """Tensors that their readers normalise -> how."""
        self._made: dict[tuple[object, ...], object] = {}
        self.codes = stored_as_codes(graph, options, self._aliases)
        """Tensors in 8 bits."""

    def read(self, tensor: str) -> str:
        """The buffer that holds a tensor row-major; constants become weights."""
        if tensor not in self.buffers:
            if tensor in self._blocks:
                self.buffers[tensor] = self._to_plain(tensor)
            else:
                self.buffers[tensor] = self.weight(tensor, self.graph.constants[tensor], dtype=self.held(tensor))
        return self.buffers[tensor]

    def read_blocks(self, tensor: str) -> str:
        """The buffer that holds a tensor of four dimensions in blocks."""
        if tensor not in self._blocks:
            source = self.read(tensor)
            self._convert("to_nc16", tensor, source, self.write_blocks(tensor))
        return self._blocks[tensor]

    def is_plain(self, tensor: str) -> bool:
        """Return whether a tensor is row-major somewhere."""
        return tensor in self.buffers or tensor in self.graph.constants

    def writes_blocks(self, tensor: str) -> bool:
        """Return whether its producer writes a tensor in blocks."""
        return tensor in self._in_blocks

    def held(self, tensor: str) -> Held:
        """Return the type in which memory holds a tensor's numbers."""
        return held(self.graph.types[tensor])

    def weight(self, name: str, array: Array, layout: Literal["plain", "packed"] = "plain", dtype: Held = "f32") -> str:
        described = Tensor(shape=array.shape, dtype=dtype, layout=layout)
        return self.draft.add_weight(name, array.astype(_NUMPY[dtype]).tobytes(), described)

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return what is made of a constant: the same for the same key."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def packed(self, name: str, array: npt.NDArray[Any]) -> str:
        """Whole numbers in an operation's own order."""
        kinds: dict[str, Dtype] = {"int8": "i8", "int32": "i32", "uint8": "u8"}
        described = Tensor(shape=array.shape, dtype=kinds[array.dtype.name], layout="packed")
        return self.draft.add_weight(name, array.tobytes(), described)

    def panels(self, name: str, matrix: PackedMatrix) -> tuple[str, dict[str, int]]:
        """Weights that stay packed, and what an operation is told of them: the same for all that read their bytes."""
        key = "panels", *map(id, matrix.parts)
        return self.once(key, lambda: self._in_panels(name, matrix)), layout_of(matrix.format)

    def _in_panels(self, name: str, matrix: PackedMatrix) -> str:
        described = Tensor(shape=panel_shape(matrix), dtype="u8", layout="packed")
        content = Streamed(matrix.digest, prod(described.shape), partial(in_panels, matrix))
        return self.draft.add_weight(name, content, described)

    def write(self, tensor: str, role: Role = "activation") -> str:
        """A new buffer for a row-major tensor; that of a concat where the tensor is its beginning."""
        if tensor not in self.buffers and self._begins(tensor):
            self.buffers[tensor] = self.write(self._aliases[tensor][0])
        elif tensor not in self.buffers and tensor in self._parts:
            whole, first = self._parts[tensor]
            count = prod(self.graph.shapes[tensor])
            self.buffers[tensor] = self.view(self.write(whole), first, count, self.held(tensor))
        elif tensor not in self.buffers:
            shape = self.graph.shapes[tensor]
            described = Tensor(shape=shape, dtype=self.held(tensor))
            size = prod(shape) * ITEM_BYTES[described.dtype]
            self.buffers[tensor] = self.draft.add_buffer(tensor, size, role, described)
        return self.buffers[tensor]

    def view(self, buffer: str, first: int, count: int, dtype: Held) -> str:
        """The name of `count` numbers of a buffer, or of a view, from `first` on: all that a call gets of it."""
        parent, begin, _ = self.place_of(buffer)
        begin += ITEM_BYTES[dtype] * first
        end = begin + ITEM_BYTES[dtype] * count
        name = f"{parent}[{begin}:{end}]"
        self._views[name] = parent, begin, end
        return name

    def place_of(self, buffer: str) -> tuple[str, int, int | None]:
        """Return a buffer's or view's place: the buffer, the first byte, and the one after the last if it is not the
        whole."""
        return self._views.get(buffer, (buffer, 0, None))

    def _argument(self, buffer: str) -> BufferArgument:
        parent, begin, end = self.place_of(buffer)
        return BufferArgument(buffer=buffer) if end is None else PartArgument(buffer=parent, part=(begin, end))

    def is_part(self, tensor: str, whole: str, first: int) -> bool:
        """Return whether a tensor's producer wrote it into its place in a concat whose parts lie one after the
        other."""
        return self._parts.get(self._origins.get(tensor, tensor)) == (whole, first)

    def is_some_part(self, tensor: str) -> bool:
        return tensor in self._parts

    def scratch(self, name: str, elements: int, dtype: Dtype = "f32") -> str:
        """A buffer for what a single call needs in between."""
        described = Tensor(shape=(elements,), dtype=dtype)
        return self.draft.add_buffer(name, elements * ITEM_BYTES[dtype], "scratch", described)

    def write_blocks(self, tensor: str) -> str:
        """Return the buffer to write a tensor in blocks to, see `write`."""
        if tensor not in self._blocks and self._begins(tensor) and self.writes_blocks(tensor):
            self._blocks[tensor] = self.write_blocks(self._aliases[tensor][0])
        elif tensor not in self._blocks:
            described = Tensor(shape=self.graph.shapes[tensor], dtype="f32", layout="nc16hw16")
            self._blocks[tensor] = self.draft.add_buffer(
                tensor, self.block_elements(tensor) * 4, "activation", described
            )
        return self._blocks[tensor]

    def code_buffer(self, tensor: str) -> str:
        """The buffer that holds a tensor in blocks of uint8."""
        name = f"{tensor}:codes"
        if name not in self.buffers:
            described = Tensor(shape=self.graph.shapes[tensor], dtype="u8", layout="nc16hw16")
            self.buffers[name] = self.draft.add_buffer(name, self.block_elements(tensor), "activation", described)
        return self.buffers[name]

    def block_elements(self, tensor: str) -> int:
        """Elements of a tensor in blocks, with what fills the last block."""
        n, c, *rest = self.graph.shapes[tensor]
        return n * blocks(c) * BLOCK * prod(rest)

    def place(self, tensor: str) -> tuple[str, int, int]:
        """(buffer, channels per image, first channel) where a node may write its row-major result."""
        if tensor not in self._aliases or self._begins(tensor):
            return self.write(tensor), self.graph.shapes[tensor][1], 0
        parent, offset = self._aliases[tensor]
        return self.write(parent), self.graph.shapes[parent][1], offset

    def place_blocks(self, tensor: str) -> tuple[str, int, int]:
        """Return the place of a result in blocks, see `place`."""
        if tensor not in self._aliases or self._begins(tensor):
            return self.write_blocks(tensor), self.graph.shapes[tensor][1], 0
        parent, offset = self._aliases[tensor]
        return self.write_blocks(parent), self.graph.shapes[parent][1], offset

    def is_placed(self, tensor: str) -> bool:
        return tensor in self._aliases

    def is_at(self, tensor: str, whole: str, channel: int) -> bool:
        """Return whether a tensor's producer wrote it into a concat of channels there: it may be a part of others,
        too."""
        return self._aliases.get(tensor) == (whole, channel)

    def _begins(self, tensor: str) -> bool:
        """Return whether a tensor's buffer is that of a concat which it begins, where every reader finds it."""
        return self.is_placed(tensor) and _is_beginning(
            self.graph, tensor, self._aliases[tensor][1], in_blocks=self.writes_blocks(tensor)
        )

    def _to_plain(self, tensor: str) -> str:
        n, c, *rest = self.graph.shapes[tensor]
        if prod(rest) == 1 and (n == 1 or c % BLOCK == 0):  # the same bytes in the same order
            return self._blocks[tensor]
        described = Tensor(shape=self.graph.shapes[tensor], dtype="f32")
        size = prod(self.graph.shapes[tensor]) * 4
        target = self.draft.add_buffer(f"{tensor}:plain", size, "activation", described)
        self._convert("from_nc16", tensor, self._blocks[tensor], target)
        return target

    def _convert(self, operation: str, tensor: str, source: str, target: str) -> None:
        n, c, *rest = self.graph.shapes[tensor]
        node = Node(f"{tensor}:{operation}", operation, (tensor,), (tensor,), {})
        self.call(operation, node, {"src": source, "dst": target}, {"n": n, "c": c, "hw": prod(rest)})

    def call(
        self,
        operation: str,
        node: Node,
        buffers: Mapping[str, str],
        ints: Mapping[str, int],
        floats: Mapping[str, float] | None = None,
        flops: int = 0,
    ) -> None:
        """Append a call; arguments are given by name."""
        self.draft.programs.setdefault(operation, DraftProgram(operation, operation, None))
        names = tuple(parameter.name for parameter in CPU_OPERATIONS[operation])
        self.draft.steps.append(
            Dispatch(
                program=operation,
                layer=node.name,
                work_items=(1, 1, 1),
                arguments=arguments({n: self._argument(b) for n, b in buffers.items()}, names, ints, floats or {}),
                flops=flops,
                bytes=sum(
                    self._bytes(name, n, packed=operation.endswith("_packed"))
                    for name, n in touched(self.graph, node).items()
                ),
            )
        )

    def _bytes(self, tensor: str, count: int, *, packed: bool) -> int:
        """Bytes of so many of a tensor's numbers, as an operation reads them."""
        return packed_bytes(self.graph.constants.get(tensor) if packed else None, count, ITEM_BYTES[self.held(tensor)])


def _placeable(graph: Graph, in_blocks: frozenset[str]) -> dict[str, tuple[str, int]]:
    """Parts of concats that begin them, or that nothing else reads: readers know no channel offsets here."""
    ops = {node.output: node.op for node in graph.nodes}

    def can_be(name: str, parent: str, offset: int) -> bool:
        if name in graph.outputs or (name in in_blocks) != (parent in in_blocks):
            return False
        if _is_beginning(graph, name, offset, in_blocks=name in in_blocks):
            return ops[name] in _AT_START
        return ops[name] in _PLACEABLE and len(graph.consumers(name)) == 1

    return {name: place for name, place in plan_aliases(graph, multiple=1).items() if can_be(name, *place)}


def _contiguous(
    graph: Graph, in_blocks: frozenset[str], aliases: Mapping[str, tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """Tensor -> (concat's output, first element in it), of row-major parts that lie one after the other."""
    made, origins = {name for node in graph.nodes for name in node.outputs}, _origins(graph)
    found: dict[str, tuple[str, int]] = {}
    for node in graph.nodes:
        axis, whole = node.attributes.get("axis", 0), node.output
        if node.op != "concat" or whole in in_blocks or prod(graph.shapes[whole][:axis]) != 1:
            continue
        first = 0
        for name in node.inputs:
            origin = origins.get(name, name)
            if origin in made and origin not in in_blocks and origin not in aliases:
                found.setdefault(origin, (whole, first))
            first += prod(graph.shapes[name])
    return found


def _origins(graph: Graph) -> dict[str, str]:
    """Results of reshapes -> the tensor whose elements they only count in another way."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.op == "reshape":
            found[node.output] = found.get(node.inputs[0], node.inputs[0])
    return found


def _is_beginning(graph: Graph, tensor: str, offset: int, *, in_blocks: bool) -> bool:
    """Return whether a part of a concat of channels is the first bytes of the whole."""
    images, channels = graph.shapes[tensor][:2]
    return images == 1 and offset == 0 and (channels % BLOCK == 0 or not in_blocks)
