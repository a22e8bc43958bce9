"""What a person asks: workload x axes x devices, how often, under which conditions, measuring what."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from .base import Model
from .device import Api, Precision
from .power import PowerSource
from .quantity import parse_bytes, parse_celsius, parse_seconds, parse_share

Seconds = Annotated[float, BeforeValidator(parse_seconds), Field(gt=0)]
Rest = Annotated[float, BeforeValidator(parse_seconds), Field(ge=0)]
Share = Annotated[float, BeforeValidator(parse_share), Field(gt=0, lt=1)]
Celsius = Annotated[float, BeforeValidator(parse_celsius)]
Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)]


def _plain_name(value: str) -> str:
    if not value or len(value) > 60 or not all(c.isalnum() or c in "_-." for c in value):
        raise ValueError("allowed: 1 to 60 letters, digits, '_', '-' and '.'")
    return value


Name = Annotated[str, AfterValidator(_plain_name)]


class Workload(Model):
    """A network by name with seeded weights, or an ONNX file; exactly one of the two."""

    network: str | None = None
    """Name of a built-in network (`farm networks` lists them)."""
    seed: int = 1
    """Seed of the weights of a built-in network, and of the random input where no input file is given."""
    onnx: str | None = None
    """Path of an ONNX file, relative to the experiment file."""
    onnx_sha256: str | None = None
    """Filled in at submission: the model's identity."""
    input: str | None = None
    """Path of a `.npy` input, relative to the experiment file; seeded random numbers where absent."""
    input_sha256: str | None = None
    """Filled in at submission."""

    @model_validator(mode="after")
    def _one_of(self) -> Workload:
        if (self.network is None) == (self.onnx is None):
            raise ValueError("give exactly one of `network` (a built-in name) and `onnx` (a file)")
        return self

    @property
    def label(self) -> str:
        if self.network is not None:
            return self.network
        return str(self.onnx).rsplit("/", 1)[-1].removesuffix(".onnx")


class DeviceChoice(Model):
    """Which devices take part."""

    where: str = "true"
    """Expression over device facts, e.g. `gpu_vendor == "adreno" and memory >= 3 GiB and "vulkan" in apis`."""
    count: Literal["all", "any"] | Annotated[int, Field(ge=1)] = "all"
    """`all` that match; a number of them; or `any` one, whichever is free first."""


SETUP_S = 30.0
SUSTAINED_MARGIN = 0.1
"""What a sustained block needs beyond rest and load: seconds, and a share of them (the last inference may be slow)."""


class Sampling(Model):
    """How often is measured, and the course of a block: rest, warm-up, load, rest."""

    mode: Literal["steady", "cold", "sustained"] = "steady"
    """`steady`: after a warm-up; `cold`: set-up and the first inference of a fresh process without any cache;
    `sustained`: load for the whole of `load`, to see throttling."""
    blocks: int = Field(default=3, ge=1, le=1000)
    """Independent repetitions, each in a fresh agent process."""
    target_interval: Share | None = None
    """Add blocks to a cell until the half-width of its 95 % interval is at most this share of the median: `5 %`."""
    max_blocks: int = Field(default=30, ge=1, le=1000)
    """With `target_interval`: the most blocks of a cell on a device."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Inferences at the start of a block that are kept but marked as warm-up."""
    warmup_stable: Share | None = None
    """Go on warming up until the last five inferences agree within this share: `2 %`; at most 30 times `warmup`,
    and at least 30 inferences, more."""
    samples: int = Field(default=5, ge=1, le=100_000)
    """Timed samples of a block, at least; each is one inference, or a stream of `frames`."""
    frames: int = Field(default=1, ge=1, le=100_000)
    """Frames of a sample. 1: a sample is one inference, and its time the latency. More: they are handed to the device
    back to back, nobody waits for one before the next, and what is measured is the throughput in frames per second."""
    load: Rest = 0.0
    """Least duration of the load phase, with a unit: `30 s`; inferences go on until both are reached."""
    idle: Rest = 0.0
    """Rest before the warm-up and after the load, for the idle power: `60 s`."""
    order: Literal["interleaved", "random", "abba"] = "interleaved"
    """In which order a device runs its blocks: block 0 of every cell, then block 1, ...; in random order within each
    round; or each round in the reverse order of the one before, which cancels linear drift."""
    canary: int = Field(default=0, ge=0, le=1000)
    """After so many blocks of a device, one block of a small reference workload; 0: none."""
    deadline: Seconds = 120.0
    """Wall-clock limit of one block, with a unit: `90 s`, `5 min`."""

    @model_validator(mode="before")
    @classmethod
    def _cold(cls, data: object) -> object:
        """A cold block is one inference without a warm-up: that is its default, and nothing else is allowed."""
        if not isinstance(data, dict) or data.get("mode") != "cold":
            return data
        if data.get("warmup", 0) != 0 or data.get("samples", 1) != 1:
            raise ValueError("mode `cold` has no warm-up and one inference: leave out `warmup` and `samples`")
        return {**data, "warmup": 0, "samples": 1}

    @model_validator(mode="after")
    def _consistent(self) -> Sampling:
        if self.target_interval is not None and self.max_blocks < self.blocks:
            raise ValueError(f"max_blocks {self.max_blocks} is below blocks {self.blocks}")
        if self.mode == "sustained" and self.load == 0:
            raise ValueError("mode `sustained` needs `load`, e.g. `load: 10 min`")
        if self.mode != "steady" and self.frames > 1:
            raise ValueError(f"mode `{self.mode}` looks at single inferences: leave out `frames`")
        if self.mode == "cold" and (self.warmup_stable is not None or self.load > 0):
            raise ValueError("mode `cold` has no warm-up and one inference: leave out `warmup_stable` and `load`")
        needed = 2 * self.idle + self.load
        if needed >= self.deadline:
            raise ValueError(f"a block rests and loads for {needed:g} s, and its deadline is {self.deadline:g} s")
        margin = SETUP_S + SUSTAINED_MARGIN * needed
        if self.mode == "sustained" and self.deadline < needed + margin:
            raise ValueError(
                f"a sustained block rests and loads for {needed:g} s; with set-up, warm-up and slow last inferences "
                f"its deadline must be at least {needed + margin:.0f} s, and is {self.deadline:g} s"
            )
        return self


class Range(Model):
    """A closed interval; either end may be open."""

    min: float | None = None
    max: float | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


def _cores(value: str) -> str:
    if value in ("any", "big", "little"):
        return value
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", value):
        raise ValueError("allowed: `any`, `big`, `little`, or a list of cores such as `0-3,6`")
    return value


Affinity = Annotated[str, AfterValidator(_cores)]

SETTLED_C, SETTLED_C_PER_MIN = 1.0, 0.2
"""How near its temperature at rest a settled battery is, and how little it changes: measurement protocol, step 6."""


class Conditions(Model):
    """What must hold on a phone when a block starts. Workstation devices lack these facts and are not gated."""

    battery_percent: Range = Range(min=20)
    battery_temp_max: Celsius = 40.0
    """Highest battery temperature at the start, with a unit: `38 C`."""
    thermal_status_max: int = Field(default=1, ge=0, le=6)
    """Android's thermal status: 0 none ... 6 shutdown."""
    free_storage: Bytes = 200 * 1024 * 1024
    """Free space needed on the phone, with a unit: `1 GiB`."""
    battery_temp_min: Celsius | None = None
    """Lowest battery temperature at the start."""
    skin_temp_max: Celsius | None = None
    """Highest skin temperature at the start, where the phone tells it."""
    settled: bool = False
    """Start only where the battery is within 1 C of the device's reference temperature and changed by less than 0.2 C
    a minute over the last two minutes."""
    supply: Literal["any", "discharging", "cut"] = "any"
    """`discharging`: the phone must run from its battery; `cut`: the farm cuts its supply for the block, and restores
    it afterwards."""
    clocks: Literal["default", "fixed_performance", "locked"] = "default"
    """Clock policy for the block: the system's own; Android's fixed-performance mode; or locked at the highest clock
    (needs root)."""
    affinity: Affinity = "any"
    """Cores that the agent may use: `any`, `big` (of the highest clock), `little`, or a list such as `0-3,6`."""
    airplane_mode: bool = False
    """Switch the radios off for the block, and back afterwards."""
    screen_dimmed: bool = False
    """Manual minimum brightness and no time-out for the block, restored afterwards."""
    sync_off: bool = False
    """Switch automatic synchronisation off for the block, restored afterwards."""
    background_stopped: bool = False
    """End background processes before the block."""


Quantity = Literal["latency", "layers", "memory", "power"]


class Measure(Model):
    """What is measured."""

    quantities: tuple[Quantity, ...] = ("latency", "memory")
    """`latency` and `memory` cost nothing; `layers` is a separate profiled pass; `power` samples the gauge."""
    power_period: Seconds = 0.1
    """Sampling period of the power gauge, with a unit: `100 ms`."""
    power_source: PowerSource | Literal["auto"] = "auto"
    """`auto`: the best that the device has: an external meter, else the workstation's counter, else the gauge."""

    @field_validator("quantities", mode="before")
    @classmethod
    def _unique(cls, value: object) -> object:
        if isinstance(value, list | tuple) and len(set(map(str, value))) != len(value):
            raise ValueError("a quantity is listed twice")
        return value


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


class Experiment(Model):
    """One experiment file, validated."""

    schema_version: Literal[1] = 1
    name: Name
    description: str = ""
    workload: Workload
    devices: DeviceChoice = DeviceChoice()
    matrix: Matrix = Matrix()
    sampling: Sampling = Sampling()
    conditions: Conditions = Conditions()
    measure: Measure = Measure()
    priority: int = Field(default=0, ge=-100, le=100)
    """Higher goes first; equal priorities share the devices fairly."""

    @model_validator(mode="after")
    def _of_whole_inferences(self) -> Experiment:
        frames = self.sampling.frames
        for batch in self.matrix.batch or () if frames > 1 else ():
            if frames % batch:
                raise ValueError(f"sampling.frames {frames} is no multiple of the batch {batch}")
        if frames == 1 and set(self.matrix.pipeline or ()) - {"none"}:
            raise ValueError("`matrix.pipeline` needs a stream: give `sampling.frames`, e.g. `frames: 100`")
        if self.matrix.affinity is not None and self.conditions.affinity != "any":
            raise ValueError("give the cores once: as `matrix.affinity` or as `conditions.affinity`")
        return self

    @model_validator(mode="after")
    def _of_known_devices(self) -> Experiment:
        """What is decided by device needs to know which device runs a block."""
        asked = {
            "sampling.target_interval": self.sampling.target_interval is not None,
            "sampling.canary": self.sampling.canary > 0,
        }
        for field in (name for name, is_asked in asked.items() if is_asked and self.devices.count == "any"):
            raise ValueError(
                f"`{field}` goes by device, and with `devices.count: any` a block may run on any: "
                f"give `devices.count` as `all` or a number, or leave out `{field}`"
            )
        return self
