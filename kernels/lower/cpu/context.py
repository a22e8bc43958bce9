"""State of one lowering for CPU threads: where tensors are, and how a call is written."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kernels.cpu_operations import CPU_OPERATIONS
from kernels.graph import Array, Graph, Node
from kernels.lower.aliases import plan_aliases
from kernels.lower.draft import Draft, DraftProgram, Role, arguments
from kernels.plan import Dispatch, Tensor

_PLACEABLE = frozenset({"conv", "max_pool", "average_pool"})
"""Operations that write at a channel offset of a larger result."""


class CpuContext:
    """Where tensors are, and how a call is written."""

    def __init__(self, graph: Graph, algorithm: str = "auto", *, place_parts: bool = True) -> None:
        """`place_parts`: parts of a concat are written straight into its result."""
        self.graph = graph
        self.algorithm = algorithm
        """Of convolutions: one of `kernels.lower.cpu.ALGORITHMS`."""
        self.draft = Draft(graph.name)
        self.buffers: dict[str, str] = {}
        self._aliases = _placeable(graph) if place_parts else {}

    def read(self, tensor: str) -> str:
        """The buffer that holds a tensor; constants become weights."""
        if tensor not in self.buffers:
            self.buffers[tensor] = self.weight(tensor, self.graph.constants[tensor])
        return self.buffers[tensor]

    def weight(self, name: str, array: Array) -> str:
        return self.draft.add_weight(name, array.astype("<f4").tobytes(), Tensor(shape=array.shape, dtype="f32"))

    def write(self, tensor: str, role: Role = "activation") -> str:
        """A new buffer of its own for a tensor."""
        if tensor not in self.buffers:
            shape = self.graph.shapes[tensor]
            described = Tensor(shape=shape, dtype="f32")
            self.buffers[tensor] = self.draft.add_buffer(tensor, prod(shape) * 4, role, described)
        return self.buffers[tensor]

    def scratch(self, name: str, elements: int) -> str:
        """A buffer for what a single call needs in between."""
        described = Tensor(shape=(elements,), dtype="f32")
        return self.draft.add_buffer(name, elements * 4, "scratch", described)

    def place(self, tensor: str) -> tuple[str, int, int]:
        """(buffer, channels per image, first channel) where a node may write its result."""
        if tensor not in self._aliases:
            return self.write(tensor), self.graph.shapes[tensor][1], 0
        parent, offset = self._aliases[tensor]
        return self.write(parent), self.graph.shapes[parent][1], offset

    def is_placed(self, tensor: str) -> bool:
        return tensor in self._aliases

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
        elements = sum(prod(self.graph.shapes[name]) for name in (*node.inputs, *node.outputs) if name)
        self.draft.steps.append(
            Dispatch(
                program=operation,
                layer=node.name,
                work_items=(1, 1, 1),
                arguments=arguments(buffers, names, ints, floats or {}),
                flops=flops,
                bytes=4 * elements,
            )
        )


def _placeable(graph: Graph) -> dict[str, tuple[str, int]]:
    """Parts of concats that nothing else reads: readers know no channel offsets here, only writers do."""
    ops = {node.output: node.op for node in graph.nodes}
    return {
        name: place
        for name, place in plan_aliases(graph, multiple=1).items()
        if ops[name] in _PLACEABLE and len(graph.consumers(name)) == 1 and name not in graph.outputs
    }
