"""State of one lowering for OpenCL or Vulkan: where tensors are, and how a dispatch is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

import numpy as np

from kernels.catalog.family import Calls, Constants, GpuFamily, S
from kernels.catalog.work_group import WorkItems, folded, group_size
from kernels.errors import OptionError, checkpoint
from kernels.ir.dims import Dims, dims_of
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.ir.packed import packed_bytes
from kernels.ir.programs import Held, held
from kernels.lower.activation import BY_FUNCTION
from kernels.lower.aliases import plan_aliases
from kernels.lower.cpu.codes import Steps, stored_as_codes
from kernels.lower.draft import Draft, DraftProgram, Role, arguments
from kernels.lower.separable import Within, separable_layers
from kernels.lower.squeeze import Squeezed, squeezed_layers
from kernels.lower.traffic import touched
from kernels.options import Limits, Options
from kernels.plan.model import ITEM_BYTES, BufferArgument, Dispatch, Dtype, Tensor
from kernels.source.kernel import Kernel, Storage
from kernels.source.tile import UNTILED, Tile

from .expression_text import functions_at_end
from .places.binding import as_bound
from .places.flatten import flattened_from, is_read_in_stacks
from .places.ports import in_rows, only_outputs
from .places.statistics import statistics
from .values import CodeBuffer, Value, Values, View

HALF_MAX, _HALF_PLACES = 65504.0, 2048
_CHOICES = ("activation", "has_residual", "has_bias", "multiply", "by_channel", "mode")
"""Scalars by which a kernel chooses what it does."""
_ENDS = ("activation", "inner_activation", "has_bias")
"""The arguments of which a kernel with tiles writes the choices out for each of many sums."""
_SHARED_FROM = 8
"""Parts of a sum from which a work-group shares them out."""


class GpuContext:
    """The common state of the operations' lowerings. Tensors are converted between layouts where first needed."""

    def __init__(self, graph: Graph, options: Options, limits: Limits, *, at_ports: bool = True) -> None:
        self.graph = replace(graph, constants=dict(graph.constants), shapes=dict(graph.shapes))
        self.options = options
        self.limits = limits
        self.draft = Draft(graph.name)
        self.half = options.half
        self.dtype: Dtype = "f16" if self.half else "f32"
        self.writers = producers(graph)
        self.panels: dict[str, str] = {}
        """Buffers of packed weights, by the identity of their bytes."""
        self.folded_norms: set[str] = set()
        """Normalised rows that exist as they were before: what reads them normalises them."""
        self.position = 0
        """Index of the node that is lowered; it only grows."""
        self._last_read = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
        self.within = separable_layers(graph, options, limits)
        """Layers that are no step because their reader computes them, by output."""
        self.squeezed = squeezed_layers(graph, options, limits, self.within)
        """The same of layers of single pixels."""
        merged: list[tuple[str, Within | Squeezed]] = [*self.within.items(), *self.squeezed.items()]
        for output, inner in merged:
            for name in inner.reads:
                self._last_read[name] = max(self._last_read[name], self._last_read[output])
        for node in graph.nodes:
            if node.op == "dense" and flattened_from(graph, node) is not None:  # its weights get another order
                self.graph.constants[node.inputs[1]] = np.asarray(graph.constants[node.inputs[1]])
        for node in graph.nodes:  # a dense layer reads the image itself
            if node.op == "reshape" and is_read_in_stacks(graph, node):
                reads = (self._last_read[name] for name in (node.inputs[0], node.output))
                self._last_read[node.inputs[0]] = max(reads)
        for name in {*graph.inputs, *graph.constants} & set(graph.outputs):  # written out at the end
            self._last_read[name] = len(graph.nodes)
        self.values = Values(self._last_read)
        self._aliases = plan_aliases(graph, multiple=4) if "concat" in options.fusions else {}
        self.codes = stored_as_codes(graph, options, self._aliases)
        self.code_buffers: dict[tuple[str, Steps | None], CodeBuffer] = {}
        """Tensors that exist in whole numbers of 8 bits, by tensor and steps; None: by their own range."""
        self.at_ports = at_ports
        ports = only_outputs(graph, self._aliases) if at_ports else frozenset[str]()
        self.kept_single = ports | statistics(graph) if self.half else frozenset[str]()
        """Tensors of a plan of halves that layers write in single where they write them row-major."""
        self.stored: dict[str, Storage] = {}
        """The types of buffers that hold something else than the plan's data: those, and whole numbers."""
        if self.half and graph.places > _HALF_PLACES:
            raise OptionError(
                f"{graph.name}: it computes places of {graph.places} elements as numbers, and fp16 holds whole numbers "
                f"up to {_HALF_PLACES}; use fp32 or relaxed"
            )
        if self.half and graph.sums > HALF_MAX:
            raise OptionError(
                f"{graph.name}: its sums of whole numbers may reach {graph.sums}, beyond the range of fp16 "
                f"({HALF_MAX:.0f}); use fp32 or relaxed"
            )
        # lavapipe computes every side of a condition for all work-items, the exponential of an activation included
        self._fixes_choices = limits.cpu_device and options.backend == "vulkan"
        self._writes_ends_out = not limits.cpu_device and not limits.unified_memory

    def dims(self, tensor: str) -> Dims:
        return dims_of(self.graph.shapes[tensor])

    def held(self, tensor: str) -> Held:
        """Return the type of a tensor's numbers in memory; fp32 is a half in plans of halves."""
        return held(self.graph.types[tensor]) if tensor in self.graph.types else "f32"

    def is_whole(self, tensor: str) -> bool:
        """Return whether a tensor holds whole numbers: it is row-major then, in one type, always."""
        return self.held(tensor) != "f32"

    def storage(self, tensor: str) -> Storage:
        """Return the type in which kernels find a tensor row-major."""
        kind = self.held(tensor)
        return "data" if kind == "f32" else kind

    # -- buffers ------------------------------------------------------------------------------------------------------

    def weight(self, name: str, array: Array, shape: tuple[int, ...] | None = None) -> str:
        """A constant in the plan's data type. Raises OptionError where half cannot hold it, as it holds infinity."""
        finite = array[np.isfinite(array)] if self.half else array
        if self.half and finite.size and float(np.abs(finite).max()) > HALF_MAX:
            largest = float(finite[np.abs(finite).argmax()])
            raise OptionError(
                f"{name}: the value {largest:g} exceeds the range of fp16 ({HALF_MAX:.0f}); use fp32 or relaxed"
            )
        content = array.astype(np.float16 if self.half else np.float32).tobytes()
        tensor = Tensor(shape=shape or array.shape, dtype=self.dtype, layout="packed")
        return self.draft.add_weight(name, content, tensor)

    def plain_buffer(self, tensor: str, dtype: Dtype | None = None, role: Role = "activation") -> str:
        """A new row-major buffer of a tensor's size."""
        shape, kind = self.graph.shapes[tensor], self.held(tensor)
        dtype = (dtype or self.dtype) if kind == "f32" else kind
        size = prod(shape) * ITEM_BYTES[dtype]
        buffer = self.draft.add_buffer(tensor, size, role, Tensor(shape=shape, dtype=dtype))
        if kind != "f32":
            self.stored[buffer] = kind
        return buffer

    def new_packed(self, tensor: str, *, over: Sequence[str] = ()) -> View:
        """The place where a node writes a tensor in stacks: its own buffer, or its part of a concat's result.

        `over`: operands of which the node reads an element only to write the same one; the result takes the place of
        the first that nobody reads later.
        """
        value = self.values.of(tensor)
        if value.packed is None and tensor in self.kept_single and in_rows(self.dims(tensor)):
            value.single = self._new_single(tensor)
            value.packed = View(value.single, self.dims(tensor).stacks, 0)
        elif value.packed is None:
            free = (name for name in over if self.options.in_place and self._can_overwrite(name, tensor))
            source = next(free, None)
            value.packed = self.values[source].packed if source else self._place_packed(tensor)
        assert value.packed is not None
        return value.packed

    def _can_overwrite(self, source: str, tensor: str) -> bool:
        """Return whether a tensor of the same size has a buffer to itself, which only the current node still reads."""
        view = self.values[source].packed if source in self.values else None
        if view is None or tensor in self._aliases or view.stacks != self.dims(tensor).stacks:
            return False
        if self.dims(source) != self.dims(tensor) or self.draft.buffers[view.buffer].role != "activation":
            return False
        return self.values.read_until[view.buffer] <= self.position

    def new_plain(self, tensor: str) -> str:
        """A new row-major buffer in which a node writes a tensor."""
        if tensor in self.kept_single and not self.is_whole(tensor):
            buffer = self._new_single(tensor)
            self.values[tensor] = Value(single=buffer)
        else:
            buffer = self.new_data(tensor)
        return buffer

    def new_data(self, tensor: str, role: Role = "activation") -> str:
        """A new row-major buffer of a tensor, in the plan's data type or of whole numbers."""
        buffer = self.plain_buffer(tensor, role=role)
        self.values[tensor] = Value(plain=buffer, single=buffer if self.is_whole(tensor) or not self.half else None)
        return buffer

    def _new_single(self, tensor: str) -> str:
        buffer = self.plain_buffer(tensor, "f32")
        self.stored[buffer] = "f32"
        return buffer

    def _place_packed(self, tensor: str) -> View:
        if tensor in self._aliases:
            parent, channel = self._aliases[tensor]
            whole = self.new_packed(parent)
            return self._part(tensor, whole, whole.stack0 + channel // 4)
        dims = self.dims(tensor)
        described = Tensor(shape=self.graph.shapes[tensor], dtype=self.dtype, layout="nc4hw4")
        size = dims.packed_elements * (2 if self.half else 4)
        return View(self.draft.add_buffer(tensor, size, "activation", described), dims.stacks, 0)

    def _part(self, tensor: str, whole: View, stack0: int) -> View:
        dims = self.dims(tensor)
        if dims.n > 1:  # of several images the parts lie apart
            return View(whole.buffer, whole.stacks, stack0)
        stack = 4 * dims.hw * (2 if self.half else 4)
        return View(whole.buffer, whole.stacks, stack0, (stack0 * stack, (stack0 + dims.stacks) * stack))

    # -- dispatches ---------------------------------------------------------------------------------------------------

    def dispatch(
        self,
        kernel: Kernel,
        layer: str,
        buffers: Mapping[str, str | View],
        ints: Mapping[str, int],
        work_items: WorkItems,
        *,
        floats: Mapping[str, float] | None = None,
        tile: Tile = UNTILED,
        switches: Mapping[str, int] | None = None,
        group: int = 0,
        flops: int = 0,
        traffic: int = 0,
    ) -> None:
        """Append a step; arguments are given by name. `switches`: constants of the body beside its tile."""
        checkpoint()
        places = {n: b.argument if isinstance(b, View) else BufferArgument(buffer=b) for n, b in buffers.items()}
        size = self._allowed(kernel, group or group_size(self.limits, work_items))
        work_items, counts = folded(work_items, size, self.options.backend)
        choices = _CHOICES if self._fixes_choices else _ENDS if kernel.locals and self._writes_ends_out else ()
        fixed = {name: i for name, i in ints.items() if name in choices or (name in _ENDS and i in BY_FUNCTION)}
        kernel, words = as_bound(kernel, buffers, self.stored)
        program = self._program(kernel, tile, {**(switches or {}), **counts, **fixed}, size, words, fixed)
        names = tuple(parameter.name for parameter in kernel.fixing(fixed).parameters)
        self.draft.steps.append(
            Dispatch(
                program=program.id,
                layer=layer,
                work_items=work_items,
                arguments=arguments(
                    places, names, {name: value for name, value in ints.items() if name not in fixed}, floats or {}
                ),
                flops=flops,
                bytes=traffic,
            )
        )

    def dispatch_copy(
        self, kernel: Kernel, layer: str, buffers: Mapping[str, str | View], ints: Mapping[str, int],
        work_items: WorkItems, traffic: int, kept: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Dispatch a kernel that copies single elements and whose integers all count such: it copies four at once where
        that makes whole vectors of everything, as launching a work-item takes longer than copying one. No text reads
        `FOURS`: it gives the program a name of its own. `kept`: buffers that it does not copy."""
        switches: dict[str, int] = {}
        if not any(number % 4 for number in ints.values()):
            kernel, ints, switches = kernel.of_lanes(4, kept), {n: i // 4 for n, i in ints.items()}, {"FOURS": 1}
            work_items = (work_items[0] // 4, *work_items[1:])
        self.dispatch(kernel, layer, buffers, ints, work_items, switches=switches, traffic=traffic)

    def calls(self, family: GpuFamily[S], node: Node, constants: Constants = MappingProxyType({})) -> tuple[S, Calls]:
        """The sizes of a node, and the dispatches of the algorithm that is chosen for it."""
        sizes = family.sizes(self.graph, node)
        options = self.options.of(node.name)
        choice = family.choose(options, self.limits, node.name, sizes)
        self.draft.choose(node.name, choice.words, family.refusal(options, self.limits, sizes))
        return sizes, family.lower(choice, sizes, constants, options, self.limits)

    def sharing(self, kernel: Kernel, parts: int) -> int:
        """Work-items of a kernel's group that shares out so many parts of one sum; 0 where one work-item does as well.

        Always 0 on a CPU behind a GPU interface, where a barrier costs more than it gains.
        """
        if self.limits.cpu_device or parts < _SHARED_FROM:
            return 0
        own = self.limits.within(kernel.name).max_work_group or 64
        most = min(256, own, *(self.limits.max_work_item_sizes[:1] or (256,)))
        return 1 << (min(most, parts).bit_length() - 1)

    def traffic(self, node: Node) -> int:
        """Compulsory bytes of a node: operands once, result once."""
        item, constants = 2 if self.half else 4, self.graph.constants
        return sum(packed_bytes(constants.get(name), count, item) for name, count in touched(self.graph, node).items())

    def _program(
        self,
        kernel: Kernel,
        tile: Tile,
        switches: Mapping[str, int],
        size: int,
        words: Sequence[str],
        fixed: Mapping[str, int],
    ) -> DraftProgram:
        chosen = sorted({**tile.chosen, **switches}.items())
        name = "_".join([kernel.name, *(f"{key.lower()}{value}" for key, value in chosen), *words])
        if name not in self.draft.programs:
            described, constants = kernel.fixing(fixed), {**tile.constants, **switches}
            if any(fixed.get(name) in BY_FUNCTION for name in _ENDS):
                described = replace(described, functions=described.functions + functions_at_end(halves=self.half))
            self.draft.programs[name] = DraftProgram(name, kernel.name, described, constants, (size, 1, 1))
        return self.draft.programs[name]

    def _allowed(self, kernel: Kernel, wanted: int) -> int:
        """The work-group, smaller where the driver refused this kernel such a one.

        Raises OptionError where its work-items share local memory: then the tile says how many there are.
        """
        most = self.limits.kernel_groups.get(kernel.name, wanted)
        if wanted <= most:
            return wanted
        if kernel.locals:
            raise OptionError(
                f"kernel {kernel.name}: its work-group of {wanted} shares local memory, and the driver allows it "
                f"{most}; choose another algorithm or tile"
            )
        return 1 << (most.bit_length() - 1)
