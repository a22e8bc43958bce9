"""What a compilation may be told; every option is an axis of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .ir.fusion import fusions

Backend = Literal["opencl", "vulkan", "cpu"]
Precision = Literal["fp32", "relaxed", "fp16", "fp16_arithmetic"]
HALF: tuple[Precision, ...] = ("fp16", "fp16_arithmetic")
"""Those that store weights and activations in half precision."""
PRECISIONS: tuple[Precision, ...] = ("fp32", "relaxed", "fp16", "fp16_arithmetic")
ConcatMode = Literal["auto", "join", "split"]
PoolMode = Literal["auto", "offsets", "objects"]
SwapMode = Literal["auto", "never"]
OrderMode = Literal["auto", "memory", "waves"]
WorkspaceSplit = Literal["rows", "channels"]
Layout = Literal["buffer", "image"]


@dataclass(frozen=True)
class Choice:
    """An algorithm with its tile."""

    algorithm: str
    tile: str = ""
    """In the algorithm's own words, e.g. `16x8x4x2x2`; empty: its default."""

    @property
    def words(self) -> str:
        """As `of` reads it."""
        return f"{self.algorithm} {self.tile}".rstrip()

    @classmethod
    def of(cls, words: str) -> Choice:
        """`tiled`, or with its tile, `tiled 16x16x2x2x4`."""
        algorithm, _, tile = words.strip().partition(" ")
        return cls(algorithm, tile.strip())


@dataclass(frozen=True)
class Options:
    """Choices of one compilation."""

    backend: Backend
    precision: Precision = "fp32"
    algorithm: str = "auto"
    """Convolution algorithm (`kernels/catalog`), or `auto`."""
    granularity: int = 0
    """Outputs per work-item of direct convolution (g of study S); 0: the default of the algorithm."""
    product: str = "auto"
    """Algorithm of matrix products (`kernels/catalog/products`), with its tile where wanted, or `auto`."""
    transpose: str = "auto"
    """Algorithm of transpositions (`kernels/catalog/transposes.py`), likewise."""
    addition: str = "auto"
    """Algorithm of additions and multiplications number by number (`kernels/catalog/additions.py`), likewise."""
    threads: int = 0
    """Threads of the CPU backend; 0: every core."""
    layout: Layout = "buffer"
    """Where activations lie: `buffer`, or `image`, 2-D images of four channels a texel where the device has them."""
    fuse: str = "all"
    """`all`, `none`, or fusions by name joined by `+` (`kernels/ir/fusion.py`)."""
    keep_all: bool = False
    """Make every node's output an output of the plan (`farm infer --dump`); implies no fusion."""
    memory_budget: int = 0
    """Bytes of device memory that the plan may take; 0: what the device has."""
    concat: ConcatMode = "auto"
    """Joined channels: `join` writes them side by side, `split` never joins them: a convolution sums over the parts
    (study M); `auto`: `split` where a limit of the device or the budget demands it."""
    in_place: bool = True
    """Whether results take the place of operands that nobody reads later, and nodes the order that needs least."""
    order: OrderMode = "auto"
    """Of the steps: as `memory` wants it, or in `waves` of those that can run together, where that fits as well;
    `auto`: waves for GPUs behind Vulkan."""
    swap: SwapMode = "auto"
    """Whether tensors may wait in host memory: where the budget demands it (`auto`), or `never`."""
    pools: PoolMode = "auto"
    """Buffers at `offsets` in few large allocations, or `objects`: allocations that several share one after another."""
    workspace: int = 0
    """Bytes of Winograd's workspace; 0: up to a sixteenth of the memory."""
    workspace_split: WorkspaceSplit = "rows"
    """How a larger one is divided (study M): by `rows` of tiles (its method P), or by input `channels` (C)."""
    tuned: Mapping[str, Choice] = field(default_factory=dict)
    """What tuning found: layer, or key of a convolution (`Convolution.key`), to the choice; used where `algorithm` is
    `auto` and `granularity` is 0."""

    @property
    def half(self) -> bool:
        """Whether weights and activations are stored in half precision."""
        return self.precision in HALF

    @property
    def fusions(self) -> frozenset[str]:
        """The fusions that are on. Raises OptionError for a name that is not known."""
        return frozenset() if self.keep_all else fusions(self.fuse)


@dataclass(frozen=True)
class Limits:
    """What the compiler must know of the device; zeros mean unknown and are not checked."""

    max_buffer_bytes: int = 0
    memory_budget_bytes: int = 0
    max_work_group: int = 256
    kernel_groups: Mapping[str, int] = field(default_factory=dict)
    """Kernel -> most work-items of its work-group, where the driver refused more: it alone counts registers."""
    max_work_item_sizes: tuple[int, ...] = ()
    local_bytes: int = 0
    offset_alignment: int = 256
    precisions: tuple[str, ...] = PRECISIONS
    cpu_device: bool = False
    """The device is a CPU behind a GPU interface (PoCL, lavapipe): long vectors pay, local memory does not."""
    opencl_c: str = "1.2"
    """Newest OpenCL C that the device compiles: 1.1, 1.2, 2.0, 3.0."""
    unified_memory: bool = True
    """The host's memory is the device's own, as on phones: inputs and outputs can lie where both see them."""
    compute_units: int = 0
    """Zero: unknown."""
    image_size: tuple[int, int] = (16384, 16384)
    """Largest width and height of a 2-D image, in texels; zeros: the device has no images."""
    subgroup_size: int = 0
    """Vulkan: work-items that compute together; zero: unknown."""
    extra: dict[str, str] = field(default_factory=dict)

    def within(self, kernel: str) -> Limits:
        """The limits as they are for one kernel."""
        most = self.kernel_groups.get(kernel, 0)
        return replace(self, max_work_group=min(most, self.max_work_group or most)) if most else self
