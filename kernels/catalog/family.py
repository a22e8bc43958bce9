"""The interface of convolution, product and transposition: each is a family of algorithms.

An algorithm is a folder with its kernel's body, its tile, when it fits, and the dispatches that it becomes. A family
lists its algorithms in one line each, and knows which is best by the kind of device. Lowering, the check of what was
asked for, and tuning go through this interface only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from kernels.errors import OptionError
from kernels.ir.graph import Array, Graph, Node
from kernels.options import COMPILE_AXES, Choice, Limits, Options
from kernels.source.kernel import Kernel
from kernels.source.tile import UNTILED, Tile


class Sizes(Protocol):
    """Sizes of a layer."""

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        ...


S = TypeVar("S", bound=Sizes)
T = TypeVar("T", contravariant=True)

Constants = Mapping[str, Array]
"""Operands of a layer that are known when the plan is made: `weight` and `bias`, where it has them."""


@dataclass(frozen=True)
class Call:
    """One dispatch of an algorithm: which kernel, how specialised, with which packed weights and scalars.

    An algorithm may need several, which hand values on in scratch buffers. Views, residual and activation are added by
    the lowering.
    """

    kernel: Kernel
    work_items: tuple[int, int, int]
    tile: Tile = UNTILED
    switches: Mapping[str, int] = field(default_factory=dict)
    """Constants of the body beside its tile."""
    ints: Mapping[str, int] = field(default_factory=dict)
    group: int = 0
    """Work-items that a work-group must have; 0: any number."""
    weight: Array | None = None
    """Packed; None: it has none, or reads it as the network has it."""
    bias: Array | None = None
    """Padded like the weights; zeros where the network has none."""
    reads: str = "src"
    """`src`, the layer's own source, or the name of a scratch buffer."""
    writes: str = "dst"
    """`dst`, the layer's own result, or the name of a scratch buffer."""
    scratch_elements: int = 0
    """Size of the scratch buffer that it writes."""
    adds: str = ""
    """The name of a scratch buffer that is added to the result; it may be the one that is written."""
    parts: int = 1
    """Parts of a product's depth: work-groups along the last axis write sums of their own, which are added up after."""
    is_last: bool = True
    """Adds bias, residual and activation."""


Calls = tuple[Call, ...]
"""The dispatches of a layer, in their order."""


class Candidate(Protocol[T]):
    """One way to compute a layer of sizes T, as far as choosing and tuning ask."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def why_not(self, sizes: T, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does. Raises OptionError for a tile that is not known."""
        ...

    def tiles(self, sizes: T, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying where it fits, in the words that `lower` takes; the first is the default."""
        ...


class Algorithm(Candidate[T], Protocol[T]):
    """One way to compute a layer on OpenCL and Vulkan."""

    def lower(self, sizes: T, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatches; `tile` empty: the default. Raises OptionError."""
        ...


class Untiled(Generic[T]):
    """An algorithm that has no tiles and fits everything, unless it says otherwise."""

    def why_not(self, sizes: T, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does."""
        return "it has no tiles" if tile else None

    def tiles(self, sizes: T, options: Options, limits: Limits) -> Sequence[str]:
        """The empty word, where it fits."""
        return [""] if self.why_not(sizes, options, limits) is None else []


class Family(ABC, Generic[S]):
    """One kind of layer that can be computed in several ways.

    An algorithm that is asked for by name (`tiled`, or with its tile, `blocked 16x32`) is used wherever it fits, and
    `auto`'s elsewhere; where it fits nowhere in a network, that is an OptionError. `auto` takes what tuning found, else
    `default`.
    """

    option: ClassVar[str]
    """The field of `Options` that asks for an algorithm."""
    tile_options: ClassVar[tuple[str, ...]] = ()
    """Fields of `Options` that ask for a part of the default's tile: where one is given, nothing is left to tuning."""
    ops: ClassVar[tuple[str, ...]]
    """Operations of the graph that belong to it."""

    @property
    @abstractmethod
    def algorithms(self) -> Mapping[str, Candidate[S]]:
        """Its algorithms by name."""

    @abstractmethod
    def sizes(self, graph: Graph, node: Node) -> S:
        """Read the sizes of a node of `ops`."""

    @abstractmethod
    def default(self, options: Options, limits: Limits, sizes: S) -> str:
        """The algorithm by the kind of device, where none is asked for or known."""

    @abstractmethod
    def footprint_bytes(self, sizes: S, choice: Choice) -> int:
        """About what one choice adds to a plan that tries several, in fp32."""

    @abstractmethod
    def trial(self, sizes: S, names: Sequence[str]) -> Graph:
        """A graph of one such layer a name, with random weights."""

    def has_choice(self, graph: Graph, node: Node) -> bool:
        """Return whether there is anything to choose for a node."""
        return True

    def cases(self, graph: Graph) -> list[tuple[str, S]]:
        """Layer and sizes of its nodes."""
        return [(node.name, self.sizes(graph, node)) for node in graph.nodes if node.op in self.ops]

    def is_open(self, options: Options) -> bool:
        """Return whether the options leave the choice to tuning."""
        return not self.asked(options)

    def asked(self, options: Options) -> list[str]:
        """The fields of the options that ask for an algorithm or a part of its tile."""
        names = (self.option, *self.tile_options)
        return [name for name in names if getattr(options, name) != COMPILE_AXES[name].default]

    def fits(self, choice: Choice, sizes: S, options: Options, limits: Limits) -> bool:
        """Return whether a choice can compute a layer. Raises OptionError for a tile that is not known."""
        entry = self.algorithms.get(choice.algorithm)
        return entry is not None and entry.why_not(sizes, options, limits, choice.tile) is None

    def choose(self, options: Options, limits: Limits, layer: str, sizes: S) -> Choice:
        """The asked algorithm where it fits; with `auto` the tuned one, by layer or sizes; else the default."""
        choice: Choice | None = Choice.of(getattr(options, self.option))
        if choice == Choice("auto"):
            known = (options.tuned[key] for key in (layer, sizes.key) if key in options.tuned)
            choice = next(known, None) if self.is_open(options) else None
        if choice and self.fits(choice, sizes, options, limits):
            return choice
        return Choice(self.default(options, limits, sizes))

    def refusal(self, options: Options, limits: Limits, sizes: S) -> str:
        """The reason why the asked algorithm does not compute a layer; empty where it does, or where none is asked."""
        asked = Choice.of(getattr(options, self.option))
        entry = self.algorithms.get(asked.algorithm)
        why = entry.why_not(sizes, options, limits, asked.tile) if entry else None
        return f"{asked.algorithm}: {why}" if why else ""

    def check(self, options: Options, limits: Limits, cases: Sequence[tuple[str, S]]) -> None:
        """Raise OptionError where the asked one is unknown or fits no (layer, sizes) case; name those that do."""
        asked = getattr(options, self.option)
        if asked == "auto":
            return
        fitting = [
            name
            for name, entry in self.algorithms.items()
            if any(entry.why_not(sizes, options, limits) is None for _, sizes in cases)
        ]
        allowed = ", ".join(["auto", *fitting])
        choice = Choice.of(asked)
        if choice.algorithm not in self.algorithms:
            raise OptionError(f"{self.option} {asked!r} is not known; this network can use: {allowed}")
        if not any(self.fits(choice, sizes, options, limits) for _, sizes in cases):
            entry = self.algorithms[choice.algorithm]
            reasons = [f"{layer}: {entry.why_not(sizes, options, limits, choice.tile)}" for layer, sizes in cases[:3]]
            why = "; ".join(reasons) or f"it has no {' or '.join(self.ops)}"
            raise OptionError(
                f"{self.option} {asked!r} ({entry.summary}) fits nowhere in this network ({why}); it can use: {allowed}"
            )

    def candidates(self, sizes: S, options: Options, limits: Limits) -> list[list[Choice]]:
        """Return the tiles worth trying, of every algorithm that fits."""
        return [
            [Choice(entry.name, tile) for tile in entry.tiles(sizes, options, limits)]
            for entry in self.algorithms.values()
            if entry.why_not(sizes, options, limits) is None
        ]


class GpuFamily(Family[S]):
    """A family whose algorithms become dispatches."""

    @property
    @abstractmethod
    def algorithms(self) -> Mapping[str, Algorithm[S]]: ...

    def lower(self, choice: Choice, sizes: S, constants: Constants, options: Options, limits: Limits) -> Calls:
        """The dispatches of a choice. Raises OptionError."""
        return self.algorithms[choice.algorithm].lower(sizes, constants, options, limits, choice.tile)


def registry(*algorithms: Algorithm[S]) -> dict[str, Algorithm[S]]:
    """Algorithms by name, in the order in which they are tried."""
    return {entry.name: entry for entry in algorithms}


def trial_graph(
    inputs: Mapping[str, tuple[int, ...]],
    nodes: list[Node],
    shapes: Mapping[str, tuple[int, ...]],
    constants: Constants,
) -> Graph:
    """Nodes whose results have `shapes`, by the name of the tensor; the last one's is the output."""
    return Graph(
        name="trial",
        inputs=tuple(inputs),
        outputs=nodes[-1].outputs,
        nodes=nodes,
        constants=dict(constants),
        shapes={**inputs, **{name: array.shape for name, array in constants.items()}, **shapes},
    )


def alike(nodes: Sequence[Node], shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Results of one shape."""
    return {node.output: shape for node in nodes}
