"""The choices of a compilation. A field made by `axis`, or `gpu_axis`, is an axis of experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kernels.ir.fusion import FUSIONS, fusion_words, fusions, why_no_fusions
from kernels.ir.placement import APART, KINDS, placement_words, why_no_placement

from .axis import GPU, axes_of, axis, gpu_axis

Backend = Literal["opencl", "vulkan", "cpu"]
Precision = Literal["fp32", "relaxed", "imprecise", "fp16", "fp16_arithmetic", "int8"]
CONTRACTED: tuple[Precision, ...] = ("relaxed", "imprecise")
"""Precisions in which a driver may join products with sums; in `imprecise` also reorder them, and lose NaN."""
HALF: tuple[Precision, ...] = ("fp16", "fp16_arithmetic")
"""Precisions that store weights and activations in half precision."""
GPU_PRECISIONS: tuple[Precision, ...] = ("fp32", "relaxed", "imprecise", "fp16", "fp16_arithmetic", "int8")
CPU_PRECISIONS: tuple[Precision, ...] = ("fp32", "relaxed", "int8")
PRECISIONS = GPU_PRECISIONS
ConcatMode = Literal["auto", "join", "split"]
PoolMode = Literal["auto", "offsets", "objects"]
SwapMode = Literal["auto", "never"]
OrderMode = Literal["auto", "memory", "waves"]
TransferMode = Literal["auto", "copy", "map", "map_all"]
WorkspaceSplit = Literal["rows", "channels"]
DotProduct = Literal["", "khr", "ptx"]


MAX_GRANULARITY = 64
MAX_PIXELS = 16


LAYER_AXES = ("algorithm", "granularity", "pixels", "product", "transpose")
"""Axes that a layer may have of its own."""
BY_FOURS = ("direct", "window", "pointwise")
"""Convolutions that compute vectors of four channels."""


def gpu_alone(backend: str, on_cpu: str, updates: str = "device") -> str:
    """Return why what is asked of the CPU backend makes no difference; empty where it computes at all.

    `updates`: an axis of experiments that train, which no other compilation has.
    """
    alone = backend != "cpu" and on_cpu == "none" and updates == "device"
    return f"means nothing on {backend} without `on_cpu`" if alone else ""


def granularity_conflict(granularity: int, algorithm: str) -> str:
    """Return why an algorithm cannot compute so many outputs a work-item; empty: it can, and for 0, its own number."""
    if not granularity % 4 or algorithm.split(" ")[0] not in BY_FOURS:
        return ""
    return f"granularity {granularity} does not fit: {algorithm} computes channels by fours; `dot` computes others"


def _scalar(algorithm: str) -> str:
    return "`scalar` computes one number a work-item" if algorithm == "scalar" else ""


def _without_winograd(algorithm: str, granularity: int, pixels: int) -> str:
    if (algorithm == "auto" and not (granularity or pixels)) or algorithm.startswith("winograd"):
        return ""
    return "no convolution uses Winograd's algorithm"


@dataclass(frozen=True)
class Choice:
    """An algorithm with its tile."""

    algorithm: str
    tile: str = ""
    """The tile in the algorithm's own words, e.g. `16x8x4x2x2`; empty: its default."""

    @property
    def words(self) -> str:
        """The text that `of` reads."""
        return f"{self.algorithm} {self.tile}".rstrip()

    @classmethod
    def of(cls, words: str) -> Choice:
        """`tiled`, or with its tile, `tiled 16x16x2x2x4`."""
        algorithm, _, tile = words.strip().partition(" ")
        return cls(algorithm, tile.strip())


@dataclass(frozen=True)
class Options:
    """Choices of one compilation. Each axis of them is declared here and nowhere else."""

    backend: Backend
    precision: Precision = "fp32"
    algorithm: str = axis(
        "auto",
        "algorithm of convolutions; `auto`: the tuned one if known, else chosen by shape",
        names={**dict.fromkeys(GPU, "kernels.catalog.convolution:ALGORITHMS"), "cpu": "kernels.lower.cpu:ALGORITHMS"},
        conflict=lambda algorithm, threads: (
            f"algorithm `sequential` is the reference on one thread, not on {threads}"
            if algorithm == "sequential" and threads > 1
            else ""
        ),
        page="cpu-threads-and-streams.md",
    )
    granularity: int = gpu_axis(
        0,
        "outputs per work-item of a convolution (g of study S). For `dot` the channels over it are a multiple of 4. "
        "For `dot_uneven` it is any number, for `direct`, `window` and `pointwise` a multiple of 4",
        unset="chosen by shape",
        bounds=(1, MAX_GRANULARITY),
        conflict=granularity_conflict,
        unused=_scalar,
    )
    pixels: int = gpu_axis(
        0,
        "adjacent pixels per work-item of a convolution; 1 gives the kernel of study S",
        unset="1 with a granularity, else chosen by shape",
        bounds=(1, MAX_PIXELS),
        unused=_scalar,
    )
    product: str = gpu_axis(
        "auto",
        "algorithm of matrix products (`dense`, `matmul`), optionally with its tile: `blocked 16x32`",
        names=dict.fromkeys(GPU, "kernels.catalog.product:ALGORITHMS"),
    )
    transpose: str = gpu_axis(
        "auto",
        "algorithm of transpositions, optionally with its tile: `tiled 32x8`",
        names=dict.fromkeys(GPU, "kernels.catalog.transposition:ALGORITHMS"),
    )
    threads: int = axis(
        0,
        "threads of the CPU backend; with a pipeline, the number of its stages",
        unset="every core",
        bounds=(1, 64),
        unused=gpu_alone,
        at_run=True,
    )
    fuse: str = axis(
        "all",
        f"fusions: `all`, `none`, or names joined by `+`: {', '.join(FUSIONS)}",
        parse=fusion_words,
        refuse=why_no_fusions,
    )
    on_cpu: str = gpu_axis(
        "none",
        "part of the network that the CPU computes: `none`, `after LAYER`, `until LAYER`, `layers FIRST..LAST`, "
        "or kinds of layers joined by `+`: "
        f"{', '.join(KINDS)}",
        parse=placement_words,
        refuse=why_no_placement,
        conflict=lambda on_cpu, algorithm: (
            f"`im2col` and `gemm` are steps of algorithm `im2col`, not of `{algorithm}`"
            if algorithm not in ("auto", "im2col") and set(APART) & set(on_cpu.split("+"))
            else ""
        ),
        page="cpu-threads-and-streams.md",
    )
    keep_all: bool = False
    """Make every node's output an output of the plan (`farm infer --dump`); implies no fusion."""
    memory_budget: int = gpu_axis(
        0,
        "device memory that a plan may use, e.g. `2 GB`; the axes below save memory; a plan that needs more is refused",
        unset="the device's",
        unit="B",
        page="memory.md",
    )
    largest_object: int = gpu_axis(
        0,
        "largest allocation of device memory that a plan may make, e.g. `1 GB`",
        unset="the device's",
        unit="B",
        page="memory.md",
    )
    concat: ConcatMode = gpu_axis(
        "auto",
        "concatenated channels: `join` writes them into one tensor, `split` sums over the parts (study M); "
        "`auto`: `split` only if the memory budget needs it",
    )
    in_place: bool = gpu_axis(
        True,
        "whether results overwrite operands, and the nodes run in the order that needs least memory",
    )
    order: OrderMode = gpu_axis(
        "auto",
        "order of the steps: `memory` needs least memory; `waves` groups steps that can run together, if it fits; "
        "`auto`: waves for GPUs through Vulkan",
    )
    swap: SwapMode = gpu_axis(
        "auto",
        "whether tensors wait in host memory: `auto`: only if the memory budget needs it; or `never`",
    )
    pools: PoolMode = gpu_axis(
        "auto",
        "memory of buffers: `offsets`: many in one allocation; `objects`: several use an allocation one after another",
    )
    transfers: TransferMode = gpu_axis(
        "auto",
        "how the host accesses device memory: `copy`; `map`: inputs, outputs and weights in shared memory; "
        "`map_all`: activations, too (zero copy of study M). `auto` is `map` for inputs and outputs if host and device "
        "share memory",
        page="memory.md",
    )
    workspace: int = gpu_axis(
        0,
        "workspace of Winograd convolutions, e.g. `64 MB`",
        unset="a sixteenth of the memory",
        unit="B",
        unused=_without_winograd,
    )
    workspace_split: WorkspaceSplit = gpu_axis(
        "rows",
        "how a larger workspace is split: by `rows` of tiles, or by input `channels` (methods P and C of study M)",
        unused=_without_winograd,
    )
    tuned: Mapping[str, Choice] = field(default_factory=dict)
    """Choices that tuning found, by layer, or key of a convolution (`Convolution.key`); used where `algorithm` is
    `auto`, and `granularity` and `pixels` are 0."""
    layers: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """Layer -> those of `LAYER_AXES` that it has otherwise than the rest: `{"conv1": {"granularity": 6}}`."""

    def of(self, layer: str) -> Options:
        """The choices as they are for one layer; its parts, `conv1.16.0`, have those of the whole."""
        named = layer if layer in self.layers else next((own for own in self.layers if layer.startswith(f"{own}.")), "")
        own: Mapping[str, Any] = self.layers.get(named, {})
        return replace(self, **own) if own else self

    @property
    def half(self) -> bool:
        """True if weights and activations are stored in half precision."""
        return self.precision in HALF

    @property
    def fusions(self) -> frozenset[str]:
        """The fusions that are on. Raises OptionError for a name that is not known."""
        return frozenset() if self.keep_all else fusions(self.fuse)


@dataclass(frozen=True)
class Limits:
    """Facts of the device that the compiler must know; zeros mean unknown and are not checked."""

    max_buffer_bytes: int = 0
    memory_budget_bytes: int = 0
    max_work_group: int = 256
    kernel_groups: Mapping[str, int] = field(default_factory=dict)
    """Kernel -> most work-items of its work-group, where the driver refused more: it alone counts registers."""
    max_work_item_sizes: tuple[int, ...] = ()
    local_bytes: int = 0
    offset_alignment: int = 512
    """The default suits every device that was seen: NVIDIA's OpenCL asks for it, others for less."""
    precisions: tuple[str, ...] = PRECISIONS
    cpu_device: bool = False
    """The device is a CPU behind a GPU interface (PoCL, lavapipe): long vectors pay, local memory does not."""
    opencl_c: str = "1.2"
    """Newest OpenCL C that the device compiles: 1.1, 1.2, 2.0, 3.0."""
    int64: bool = True
    """Kernels may have whole numbers of 64 bits."""
    int8_layers: bool = True
    """The CPU multiplies 8 bits by instructions of its own: layers that a model rounds to 8 bits are quicker so."""
    unified_memory: bool = True
    """The host's memory is the device's own, as on phones: inputs and outputs can lie where both see them."""
    compute_units: int = 0
    """Zero: unknown."""
    subgroup_size: int = 0
    """Work-items that compute together; zero: unknown, as OpenCL leaves it except on NVIDIA's devices."""
    dot_product: DotProduct = ""
    """The way in which kernels multiply words of four whole numbers of 8 bits: by the API's extension, by NVIDIA's
    instruction in OpenCL (`ptx`), or empty, byte by byte."""
    matrix_units: tuple[tuple[int, int, int], ...] = ()
    """Rows, columns and depth of products that a subgroup computes at once: of halves, added up in single."""

    def within(self, kernel: str) -> Limits:
        """The limits as they are for one kernel, whatever is added to its name for what it does beside."""
        kinds = (size for name, size in self.kernel_groups.items() if name == kernel or name.startswith(f"{kernel}_"))
        most = min(kinds, default=0)
        return replace(self, max_work_group=min(most, self.max_work_group or most)) if most else self


WARPGROUP = (64, 256, 16)
"""The shape by which a device tells that 128 work-items multiply from local memory at once (`wgmma`)."""


def matrix_units(words: Iterable[str]) -> tuple[tuple[int, int, int], ...]:
    """`16x16x16` -> (16, 16, 16), as the agent tells them; those that no vectors of eight make up are left out."""
    sizes = [tuple(map(int, each.split("x"))) for each in words]
    return tuple((one[0], one[1], one[2]) for one in sizes if len(one) == 3 and not (one[1] % 8 or one[2] % 8))


COMPILE_AXES = axes_of(Options)
"""The axes of the compiler, by name."""
