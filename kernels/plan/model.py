"""The plan: what the agent executes. Narrow waist between the compiler and the native agent.

A plan is a folder (`Bundle`): `plan.json` (this model), `blob.bin` (weights and constants) and `programs/` (OpenCL C,
GLSL for reading, SPIR-V). The agent validates it before anything is allocated.

Execution model
- A *pool* is one device allocation; a *buffer* is a range of a pool at an offset. Buffers of one pool may share bytes
  where their lifetimes do not overlap.
- A *program* has one kernel with ordered parameters, scalars last. OpenCL: `clSetKernelArg(i)` in their order; all
  scalars are one structure, 4 bytes each, which is the last argument. Vulkan: descriptor set 0,
  binding j = the j-th parameter of kind buffer (a storage buffer, or a storage texel buffer where the parameter names a
  texel); the scalars, in order, are the push constants, 4 bytes each; the work-group size is specialisation constants
  0, 1, 2. CPU: a built-in operation of the agent, called by name (`kernels/lower/cpu/agent_operations.py` lists them
  with their parameters).
- `dispatch.work_items` is the number of work-items wanted in x, y, z; the runner rounds it up to whole work-groups and
  the kernel checks its bounds.
- A plan with `stages` trains (docs/architecture/plan.md): its steps run in loops, its variables are what it leaves.
  Where it is mixed, its passes take transfers in the order of the steps.
- A plan may be *mixed*: programs and pools with `api` "cpu" are the CPU backend's, all others those of the plan's own
  `api`, and a step touches buffers of one of them only. A *transfer* takes a buffer's content from one to the other,
  through host memory. Runs of steps of one API are the plan's segments.
- Steps run in order; each sees the writes of those before it. A runner may let steps overlap that touch different
  bytes; an argument that names a part of its buffer touches no other bytes of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernels.errors import PlanError
from kernels.options import Precision

from .files import Content, read_content, sha256_of, write_content

SCHEMA_VERSION = 1
MAX_SCALARS = 32
"""Push constants of 128 bytes are what every Vulkan device guarantees."""

Dtype = Literal["f32", "f16", "i32", "i64", "u8", "i8", "bool"]
ITEM_BYTES: dict[str, int] = {"f32": 4, "f16": 2, "i32": 4, "i64": 8, "u8": 1, "i8": 1, "bool": 1}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


Side = Literal["", "cpu"]
"""The owner in a mixed plan: the plan's own `api`, or the CPU backend."""


def _own(side: str) -> bool:
    return not side


class Parameter(_Part):
    """One kernel argument."""

    name: str
    kind: Literal["buffer", "i32", "f32"]
    access: Literal["read", "write", "readwrite"] = "read"
    """Access to a buffer."""
    texel: Literal["", "r32f", "rgba32f", "rgba16f"] = ""
    """Vulkan: the buffer is bound as a storage texel buffer of this format, not as a storage buffer."""


class OpenClSource(_Part):
    file: str
    """Path in the bundle, e.g. `programs/conv_direct_1a2b.cl`."""
    options: str
    """Build options, e.g. `-cl-std=CL1.2 -DG=4`."""


class SpirvModule(_Part):
    file: str
    """Path in the bundle of the SPIR-V binary."""
    constants: dict[int, int] = Field(default_factory=dict)
    """Specialisation constants beside 0, 1, 2 (the work-group size); all are 32-bit integers."""


class Program(_Part):
    id: str
    kernel: str
    """Entry point in OpenCL C (Vulkan's is always `main`), or the name of a CPU operation."""
    parameters: tuple[Parameter, ...]
    work_group: tuple[int, int, int] = (1, 1, 1)
    local_bytes: int = Field(default=0, ge=0)
    """Local (shared) memory of a work-group."""
    api: Side = Field(default="", exclude_if=_own)
    """`cpu`: an operation of the CPU backend in a plan of another API."""
    opencl: OpenClSource | None = None
    vulkan: SpirvModule | None = None


class Pool(_Part):
    """One device allocation: memory for buffers."""

    id: str
    bytes: int = Field(gt=0)
    memory: Literal["device", "host_visible"] = "device"
    api: Side = Field(default="", exclude_if=_own)
    """`cpu`: memory of the CPU backend in a plan of another API."""


class Tensor(_Part):
    """Meaning of a buffer, for people and dumps."""

    shape: tuple[int, ...]
    dtype: Dtype
    layout: Literal["plain", "nc4hw4", "nc16hw16", "packed"] = "plain"
    """plain: row-major as in ONNX; nc4hw4: channels in stacks of four; nc16hw16: in blocks of sixteen; packed:
    weights in a kernel's own order."""


class Buffer(_Part):
    id: str
    pool: str
    offset: int = Field(ge=0)
    bytes: int = Field(gt=0)
    role: Literal["input", "output", "weight", "offloaded", "activation", "scratch", "variable", "data"]
    """offloaded: a weight that waits in host memory until it is swapped in; variable: starts as a weight does, or as
    zeros, steps write it, and its content lasts from run to run; data: an input that is written once, before the first
    run."""
    tensor: Tensor | None = None
    blob_offset: int | None = None
    """Byte of `blob.bin` at which its initial content starts (weights, offloaded ones too, and variables only)."""


class BufferArgument(_Part):
    buffer: str


class PartArgument(BufferArgument):
    """A buffer of which the step touches some bytes only: steps that touch different ones need not wait.

    An operation of the CPU backend is given these bytes as if they were all; a kernel is given the whole buffer.
    """

    part: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(gt=0)]]
    """First byte, and the one after the last."""


class IntArgument(_Part):
    i32: int = Field(ge=-(2**31), lt=2**31)


class FloatArgument(_Part):
    f32: float


Argument = BufferArgument | PartArgument | IntArgument | FloatArgument


class Dispatch(_Part):
    kind: Literal["dispatch"] = "dispatch"
    program: str
    layer: str
    """Name of the network's layer that this step belongs to."""
    work_items: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    flops: int = 0
    bytes: int = 0
    """Compulsory traffic: operands read once, result written once."""


class Copy(_Part):
    kind: Literal["copy"] = "copy"
    layer: str
    source: str
    target: str
    source_offset: int = Field(default=0, ge=0)
    target_offset: int = Field(default=0, ge=0)
    bytes: int = Field(gt=0)


class SwapOut(_Part):
    """Copy a buffer's content to host memory; its pool range may be reused until it is swapped in."""

    kind: Literal["swap_out"] = "swap_out"
    layer: str
    buffer: str
    host: str | None = None
    """Buffer of the same size whose host memory takes the content; by default the buffer's own."""


class SwapIn(_Part):
    """Copy from host memory into a buffer what was last swapped out there; it stays there as well."""

    kind: Literal["swap_in"] = "swap_in"
    layer: str
    buffer: str
    host: str | None = None
    """Buffer of the same size whose host memory holds the content; by default the buffer's own."""


class Transfer(_Part):
    """Copy a buffer's first bytes through host memory into a buffer of another segment."""

    kind: Literal["transfer"] = "transfer"
    layer: str
    """The layer that needs it."""
    source: str
    target: str
    bytes: int = Field(gt=0)


Step = Annotated[Dispatch | Copy | SwapOut | SwapIn | Transfer, Field(discriminator="kind")]


class Port(_Part):
    """An input or output: a plain row-major fp32 array of the model's own shape."""

    name: str
    buffer: str
    shape: tuple[int, ...]
    dtype: Dtype = "f32"


class Stage(_Part):
    """Loops of training: steps `begin` to `end` (not included) run `batches` times an epoch, for `epochs` epochs.

    The runner goes through both loops alone. Between two epochs it reads `report` and may store every variable.
    """

    name: str
    begin: int = Field(ge=0)
    end: int = Field(gt=0)
    epochs: int = Field(ge=1, le=1_000_000)
    batches: int = Field(ge=1, le=1_000_000)
    samples: int = Field(ge=1, lt=2**31)
    """Samples of the data set that an epoch sees."""
    counter: str
    """Variable that starts with an i32: the batches of this stage that are done. Its steps count it."""
    report: str
    """Variable that starts with two f32: sums of the loss and of wrong answers over the epoch's samples so far."""
    classifies: bool = False
    """True if there are answers that may be wrong."""


class Pass(_Part):
    """A run of a language model's plan: steps `begin` to `end` (not included) take tokens at a position.

    They read the tokens' numbers and the position, which the runner writes, append to the plan's variables, and leave
    rows of logits.
    """

    begin: int = Field(ge=0)
    end: int = Field(gt=0)
    tokens: int = Field(ge=1, le=1_000_000)
    """Tokens of a run, of each sequence. Of fewer the runner writes anything behind them, and counts only those; not
    where there is one row of logits."""
    ids: str
    """Buffer that starts with so many whole numbers of each sequence."""
    position: str
    """Buffer that starts with whole numbers, one for all sequences or one for each: the tokens that came before."""
    logits: str
    """Buffer of fp32, (sequences, rows, vocabulary)."""
    rows: int = Field(ge=1)
    """Rows of logits of a sequence: as many as there are tokens, or 1 for the last."""
    vocabulary: int = Field(ge=1, lt=2**31)


class Generation(_Part):
    """The passes of a plan that generates text: they share out all steps in order; the last one takes one token."""

    capacity: int = Field(ge=1, le=1_000_000_000)
    """Tokens of a sequence that the variables hold."""
    sequences: int = Field(default=1, ge=1, le=4096, exclude_if=lambda sequences: sequences == 1)
    """Texts that a run takes side by side, all of one length."""
    passes: tuple[Pass, ...] = Field(min_length=1)


class Requires(_Part):
    """Needs of the device of the plan's own API; checked before anything is allocated."""

    total_bytes: int
    max_buffer_bytes: int
    work_group: int = 1
    local_bytes: int = 0
    fp16: bool = False


REFUSED = "refused:"
"""The word before a layer, among the options of a plan."""


class Plan(_Part):
    schema_version: Literal[1] = 1
    name: str
    api: Literal["opencl", "vulkan", "cpu"]
    precision: Precision
    options: dict[str, int | str | bool] = Field(default_factory=dict)
    """Options of the compilation, as chosen (after `auto`)."""
    blob_bytes: int = Field(ge=0)
    files: dict[str, str]
    """Every other file of the bundle -> its SHA-256."""
    requires: Requires
    programs: tuple[Program, ...]
    pools: tuple[Pool, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    stages: tuple[Stage, ...] = Field(default=(), exclude_if=lambda stages: not stages)
    """Stages of a plan that trains: every step is of one stage, which follow each other. Absent from every other
    plan."""

    generation: Generation | None = Field(default=None, exclude_if=lambda generation: generation is None)
    """Passes of a plan that generates text. Absent from every other plan."""

    @property
    def loops(self) -> tuple[Stage | Pass, ...]:
        """Return what runs by itself, again and again: stages of a training, or passes."""
        return self.generation.passes if self.generation else self.stages

    @property
    def refused(self) -> dict[str, str]:
        """Layer -> why it is not computed by the algorithm that was asked for."""
        told = {key: str(why) for key, why in self.options.items() if key.startswith(REFUSED)}
        return {key.removeprefix(REFUSED): why for key, why in told.items()}

    @property
    def plan_hash(self) -> str:
        """Identity of what runs: SHA-256 (16 hex digits) of the canonical JSON, which names every file by its hash.

        `options` are left out: two ways to ask for the same steps have the same hash.
        """
        text = json.dumps(self.model_dump(mode="json", exclude={"options"}), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Bundle:
    """A plan with its files; of large ones memory holds no more than is read."""

    def __init__(self, plan: Plan, files: Mapping[str, Content]) -> None:
        self.plan = plan
        self.files = files

    def write(self, folder: Path) -> None:
        """Write `plan.json` and every file below `folder` (made if absent)."""
        for name, content in {"plan.json": self.plan.model_dump_json(indent=1).encode(), **self.files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_content(path, content)

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """Read a bundle and check every file's hash. Raises PlanError."""
        try:
            plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
            files = {name: read_content(folder / name) for name in plan.files}
        except (OSError, ValueError) as e:
            raise PlanError(f"{folder}: not a readable plan: {e}") from e
        for name, content in files.items():
            if sha256_of(content) != plan.files[name]:
                raise PlanError(f"{folder / name}: content does not match the plan's SHA-256; compile it again")
        return cls(plan, files)
