"""The state of an import: constants, shapes and the canonical nodes emitted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import onnx

from kernels.errors import ModelError, UnsupportedNode
from kernels.ir.graph import Array, Node
from kernels.ir.packed import PackedMatrix, is_finite
from kernels.ir.shapes import output_shape
from kernels.ir.types import ElementType, of_numpy

if TYPE_CHECKING:
    from .extent import Count
    from .pooled import Maxima

AnyArray = npt.NDArray[Any]
STANDARD_DOMAINS = ("", "ai.onnx")
MAX_TENSOR_BYTES = 2**31
MAX_COMPUTED_BYTES = 2**30
"""Bytes of all constants together that a model computes from others."""


def may_wrap(kind: np.dtype[Any]) -> bool:
    """Return whether whole numbers of a type start again at the end of its range, below what fp32 holds."""
    return np.issubdtype(kind, np.integer) and kind.itemsize < 4


def as_stored(value: AnyArray) -> AnyArray:
    """Return an array as a graph's constant: whole numbers as they are, floating point as fp32, packed
    matrices as they are."""
    if isinstance(value, PackedMatrix):
        return value
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.asarray(value).dtype.kind in "biu"
        return np.asarray(value, None if whole else np.float32, order="C")


@dataclass(frozen=True)
class OnnxNode:
    """One node of the model, with its attributes decoded."""

    name: str
    op: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    domain: str = ""

    def input(self, index: int) -> str:
        """Name of an input, '' where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from 0. Raises ModelError where the tensor has no such axis."""
        if not -rank <= value < rank:
            self.damaged(f"axis {value} is outside of {rank} dimensions")
        return int(value) % rank

    def distinct_axes(self, values: Iterable[int], rank: int) -> list[int]:
        """Axes counted from 0, none twice. Raises ModelError."""
        axes = [self.axis(int(value), rank) for value in values]
        if len(set(axes)) < len(axes):
            self.damaged(f"axes {axes} name one twice")
        return axes

    def damaged(self, why: str) -> NoReturn:
        """Raise ModelError for what no model may have."""
        raise ModelError(f"node {self.name!r} ({self.op}): {why}")

    def reject(self, why: str) -> NoReturn:
        """Raise UnsupportedNode for something that this import does not know."""
        raise UnsupportedNode(f"node {self.name!r}: operator {self.op} (opset {self.opset}): {why}")


def _no_graphs(node: onnx.NodeProto, *_: object) -> None:
    raise ModelError(f"node {node.name!r} ({node.op_type}) is inside of another one, where none is imported")


@dataclass
class Context:
    """State of one import. `constants` holds values of any type; `weights` those that the graph's nodes use."""

    opset: int
    constants: dict[str, AnyArray]
    shapes: dict[str, tuple[int, ...]]
    folder: Path
    """The folder of external data."""
    reserved: frozenset[str] = frozenset()
    """Outputs of all the model's nodes: names that no derived tensor may take."""
    each: Callable[[onnx.NodeProto, frozenset[str], Context], None] = _no_graphs
    """Imports a node of a graph inside of a node into a context; of its further outputs only those in the set."""
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    types: dict[str, np.dtype[Any]] = field(default_factory=dict)
    """Types of activations by the model; what a node computes on its way has none here."""
    computed_bytes: int = 0
    """Bytes of the constants that nodes have computed so far."""
    places: int = 0
    """The largest place of an element that nodes compute as a number."""
    sums: int = 0
    """The largest sum of whole numbers that nodes may compute."""
    counts: dict[str, dict[int, Count]] = field(default_factory=dict)
    """Padded tensor -> axis -> how many of its elements are valid."""
    extents: dict[str, AnyArray] = field(default_factory=dict)
    """Whole numbers of which some are counts, before a node computes with them."""
    made: dict[object, str] = field(default_factory=dict)
    """Tensors that several nodes need, by what they are: counts, padding that holds a value, places that are not 0."""
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Bounds of the elements of tensors, where their nodes do not show them."""
    sizes: dict[tuple[str, int], Count] = field(default_factory=dict)
    """Elements of tensors, by name and number, that are extents of others."""
    spread: dict[str, str] = field(default_factory=dict)
    """Padded tensors that were broadcast, and of which."""
    sequences: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The tensors of each sequence."""
    absent: set[str] = field(default_factory=set)
    """Optionals that have no element."""
    pooled: dict[str, Maxima] = field(default_factory=dict)
    """Tensors that hold the places of the largest elements of windows, counted by rows."""
    states: frozenset[str] = frozenset()
    """Inputs that are states: what lies behind their valid rows is finite."""
    written_out: int = 0
    """Nodes of graphs inside of nodes that were imported, each as often as it runs."""

    def emit(
        self,
        node: OnnxNode,
        op: str,
        inputs: tuple[str, ...],
        attributes: Mapping[str, Any] | None = None,
        *,
        output: str | None = None,
        ceil: bool = False,
    ) -> str:
        """Append a canonical node and return its output's name (the ONNX node's first output unless given)."""
        if len(node.outputs) > 1:
            node.reject(f"only the first output is supported, but {', '.join(node.outputs[1:])} is read as well")
        target = output or node.outputs[0]
        new = Node(node.name, op, inputs, (target,), dict(attributes or {}))
        self.add_shape(target, output_shape(new, self.shapes, ceil=ceil))
        self.nodes.append(new)
        return target

    def add_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Keep the shape of an activation. Raises ModelError as `check_size` does."""
        self.check_size(name, shape)
        self.shapes[name] = shape

    def check_size(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise ModelError where a tensor is too large: kernels count in 32-bit integers, and the agent takes inputs
        up to this size. What computes tables of a result's places asks before it makes them."""
        size = prod(shape) * 4
        if size > MAX_TENSOR_BYTES:
            raise ModelError(
                f"tensor {name!r} of shape {shape} takes {size} bytes in fp32, more than the {MAX_TENSOR_BYTES} that "
                "one tensor may; export the model for a smaller input"
            )

    def reshape(self, node: OnnxNode, source: str, shape: tuple[int, ...], *, output: str | None = None) -> str:
        """Append a reshape of `source`."""
        return self.emit(node, "reshape", (source,), {"shape": shape}, output=output)

    def reserve(self, node: OnnxNode, size: int) -> None:
        """Count the bytes of a constant that a node is about to compute. Raises ModelError where it is too much."""
        total = self.computed_bytes + size
        if total > MAX_COMPUTED_BYTES:
            node.damaged(
                f"its constant of {size} bytes makes {total} bytes of "
                f"constants that the model computes; at most {MAX_COMPUTED_BYTES} are supported: store them as "
                "initializers"
            )
        self.computed_bytes = total

    def type_of(self, name: str) -> np.dtype[Any]:
        """Return a tensor's type, which is the model's."""
        if name in self.extents:
            return np.dtype(np.int64)
        return self.constants[name].dtype if name in self.constants else self.types.get(name, np.dtype(np.float32))

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of an activation, a constant, or whole numbers of which some are counts."""
        stored = self.extents.get(name, self.constants.get(name))
        return self.shapes[name] if stored is None else stored.shape

    def cast_target(self, node: OnnxNode, attribute: str = "to") -> np.dtype[Any]:
        """The type that a node says, or that of its second input."""
        if attribute in node.attributes:
            target: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(node.attributes[attribute])
            return target
        return self.type_of(node.input(1) or node.input(0))

    def element_types(self, names: Collection[str]) -> dict[str, ElementType]:
        """Return the types that are known of these tensors; what only gets another name as a node's result has its."""
        known = dict(self.types)
        for node in reversed(self.nodes):
            source = node.inputs[0]
            if node.op == "reshape" and node.output in known and source not in self.weights:
                known.setdefault(source, known[node.output])
        return {name: of_numpy(kind) for name, kind in known.items() if name in names}

    def is_activation(self, name: str) -> bool:
        """Return whether a tensor is known and no constant."""
        return name in self.shapes and name not in self.constants

    def activation(self, node: OnnxNode, index: int = 0) -> str:
        """Name of an input that must be an activation."""
        name = node.input(index)
        if name in self.constants:
            node.reject(f"input {index} ({name!r}) is a constant here; only activations are supported: fold it first")
        self.require(node, name, f"input {index}")
        return name

    def require(self, node: OnnxNode, name: str, what: str) -> None:
        if name in self.sequences:
            node.reject(f"{what} ({name!r}) is a sequence of tensors; only operators of sequences take one")
        if name not in self.constants and name not in self.shapes and name not in self.extents:
            why = "is defined nowhere before; the model is damaged"
            if name in self.reserved:
                why = (
                    "is written by a later node; sort the nodes (onnx_graphsurgeon: toposort), and save the model again"
                )
            node.damaged(f"{what} ({name!r}) {why}")

    def constant(self, node: OnnxNode, index: int) -> AnyArray:
        """Value of an input that must be a constant."""
        name = node.input(index)
        if name not in self.constants:
            self.require(node, name, f"input {index}")
            node.reject(f"input {index} ({name!r}) must be a constant (an initializer)")
        return self.constants[name]

    def optional_constant(self, node: OnnxNode, index: int) -> AnyArray | None:
        return self.constant(node, index) if node.input(index) else None

    def finite(self, node: OnnxNode, index: int) -> AnyArray:
        """Value of a constant input in floating point. Raises ModelError for NaN and infinity, naming the tensor."""
        value = self.constant(node, index)
        if is_finite(value):
            return value
        name = node.input(index)
        wrong = value.size - np.count_nonzero(np.isfinite(value))
        raise (ModelError if np.isnan(value).any() else UnsupportedNode)(
            f"tensor {name!r} (node {node.name!r}) holds {wrong} NaN or infinite values of {value.size}; "
            "export the model again from intact weights"
        )

    def known_finite(self, node: OnnxNode, index: int) -> AnyArray | None:
        """Value of an input, where it is a constant of finite numbers. Raises ModelError for NaN."""
        value = self.constants.get(node.input(index))
        if value is None or is_finite(value):
            return value
        return self.finite(node, index) if np.isnan(value).any() else None

    def weight(self, node: OnnxNode, index: int) -> str:
        """Use a constant input as it is; returns its name ('' where it is absent)."""
        if not node.input(index):
            return ""
        return self.add_weight(node.input(index), self.finite(node, index))

    def add_weight(self, name: str, value: AnyArray) -> str:
        """Keep a derived weight under a name near the one given; returns the name."""
        array = as_stored(value)
        if not is_finite(array):
            raise ModelError(f"tensor {name!r}: its values do not fit into fp32; export the model again")
        unique, n = name, 1
        while self._taken(unique, array):
            unique, n = f"{name}.{n}", n + 1
        self.weights[unique] = array
        self.shapes[unique] = array.shape
        return unique

    def _taken(self, name: str, array: Array) -> bool:
        """Return whether a weight may not have this name: something else has it, or will."""
        if name in self.shapes:
            known = self.weights.get(name)
            return known is None or known.dtype != array.dtype or not (known is array or np.array_equal(known, array))
        return name in self.reserved and name not in self.constants

    def fresh(self, base: str) -> str:
        """A tensor name that is not in use."""
        name = base
        while name in self.shapes or name in self.constants or name in self.reserved:
            name += "_"
        return name
