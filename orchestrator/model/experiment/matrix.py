"""The axes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema, field_validator

from orchestrator.model.base import Model
from orchestrator.model.device import Api, Precision
from orchestrator.model.quantity import Bytes

from .affinity import Affinity

_NAMES = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "boolean"}]}


def _fusions(value: object) -> object:
    if isinstance(value, bool):
        return "all" if value else "none"
    names = value.split("+") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    return "+".join(sorted(names)) or "none"


class Matrix(Model):
    """The axes: every combination once. Axes that are not listed keep their default."""

    network: tuple[str, ...] | None = None
    """Built-in networks to sweep; replaces `workload.network`."""
    backend: tuple[Api, ...] = (Api.OPENCL,)
    precision: tuple[Precision, ...] = (Precision.FP32,)
    algorithm: tuple[str, ...] | None = None
    """Convolution algorithm; `farm plan --help` lists them."""
    granularity: tuple[Annotated[int, Field(ge=1, le=64)], ...] | None = None
    """Outputs per work-item of direct convolution (g in study S)."""
    product: tuple[str, ...] | None = None
    """Algorithm of matrix products, with its tile where that is not the default: `tiled`, `blocked 16x32`."""
    transpose: tuple[str, ...] | None = None
    """Algorithm of transpositions, likewise: `naive`, `tiled 32x8`."""
    addition: tuple[str, ...] | None = None
    """Algorithm of additions and multiplications number by number, likewise: `naive`, `vectors 2`."""
    threads: tuple[Annotated[int, Field(ge=1, le=64)], ...] | None = None
    """Threads of the CPU backend; with a pipeline its stages."""
    thread_life: tuple[Literal["kept", "per_call"], ...] | None = None
    """Whether threads of the CPU backend stay, or start and end with each operation; kept by default."""
    pin_threads: tuple[bool, ...] | None = None
    """Whether each thread (or stage) of the CPU backend is bound to a core of its own; false by default."""
    pipeline: tuple[Literal["none", "balanced", "by_kind"], ...] | None = None
    """Whether successive frames are in different stages of the CPU backend at the same time (study C): in stages of
    equal cost, or in one each for convolutions, elementwise steps, and pooling with the rest."""
    affinity: tuple[Affinity, ...] | None = None
    """Cores that the agent may use, as in `conditions.affinity`."""
    batch: tuple[Annotated[int, Field(ge=1, le=4096)], ...] | None = None
    """Frames that one inference takes together; as the model has it by default, or 1."""
    layout: tuple[Literal["buffer", "image"], ...] | None = None
    """Where OpenCL and Vulkan keep activations: in buffers, or in 2-D images of four channels a texel."""
    fuse: tuple[Annotated[str, WithJsonSchema(_NAMES)], ...] | None = None
    """What is fused: `all`, `none`, or fusions by name, as a list or joined by `+`: activation, bias, concat,
    normalisation, padding, residual."""
    tuned: tuple[bool, ...] | None = None
    """Whether convolutions use what `farm tune` found on the device, where `algorithm` is `auto`; true by default."""
    setup: tuple[Literal["cold", "warm", "cached"], ...] | None = None
    """Which compiled programs a fresh process finds: `cold`: none; `warm`: the driver's own cache, if it has one;
    `cached`: the farm's binaries too. An unmeasured run before each block fills what is to be found."""

    @field_validator("fuse", mode="before")
    @classmethod
    def _in_words(cls, value: object) -> object:
        """A list of names within the axis is one value, whatever their order; true and false are all and none."""
        if not isinstance(value, list | tuple):
            return value
        return cls._unrepeated([_fusions(one) for one in value])

    memory_budget: tuple[Bytes, ...] | None = None
    """Device memory that a plan may take, with a unit: `2 GB`; 0 or not given: what the device has."""
    concat: tuple[Literal["auto", "join", "split"], ...] | None = None
    """Joined channels: side by side in one buffer, or never joined; `auto`: split where memory demands it."""
    in_place: tuple[bool, ...] | None = None
    """Whether results take the place of operands, and nodes the order that needs least memory; true by default."""
    swap: tuple[Literal["auto", "never"], ...] | None = None
    """Whether tensors may wait in host memory where the budget demands it."""
    pools: tuple[Literal["auto", "offsets", "objects"], ...] | None = None
    """Buffers at offsets in few allocations, or allocations that buffers share one after another."""
    workspace: tuple[Bytes, ...] | None = None
    """Winograd's workspace, with a unit: `64 MB`; 0 or not given: up to a sixteenth of the memory."""
    workspace_split: tuple[Literal["rows", "channels"], ...] | None = None
    """How a larger workspace is divided: by rows of tiles (study M's method P), or by input channels (C)."""

    @field_validator("*", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """A single value is a list of one; an empty or repeating list is an error."""
        if value is None:
            return value
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not values:
            raise ValueError("an axis needs at least one value")
        return cls._unrepeated(values)

    @staticmethod
    def _unrepeated(values: list[object]) -> list[object]:
        if len({str(v) for v in values}) != len(values):
            raise ValueError("a value is listed twice")
        return values
