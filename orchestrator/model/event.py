"""The events that the agent writes: one JSON object a line. Times are CLOCK_BOOTTIME in ns.

The JSON Schema of these models is committed in `device_agent/schema/` (`make schemas` renews it).
Every event has `event` (its kind), `seq` (0, 1, 2, ... without gaps) and `t_ns` (when it was written; of `power` and
`rails` the time before the first node was read).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .device import Api, ApiFacts, Precision
from .sampled import AgentEvent
from .sampled import Memory as Memory
from .sampled import Phase as Phase
from .sampled import PhaseName as PhaseName
from .sampled import Power as Power
from .sampled import Rails as Rails
from .sampled import Sampler as Sampler

SCHEMA_VERSION = 1


class Hello(AgentEvent):
    """First line of every journal: who speaks."""

    event: Literal["hello"] = "hello"
    schema_version: Literal[1] = 1
    agent_version: str
    command: Literal["probe", "run", "exec", "burn", "serve"]
    pid: int
    marker: str = ""
    """The job marker given on the command line; a stale agent is found and ended by it."""
    boot_id: str = ""
    abi: str
    cores: int
    page_bytes: int


class Probe(AgentEvent):
    """The device's offer: one event per API that could be loaded and has a device."""

    event: Literal["probe"] = "probe"
    facts: ApiFacts


class Device(AgentEvent):
    """The device and driver that really run this plan; a plan never falls back to another."""

    event: Literal["device"] = "device"
    facts: ApiFacts
    precision: Precision
    plan: str
    """Hash of the plan."""
    threads: int = 0
    """Threads of the CPU backend; 0 elsewhere."""
    cpus: tuple[int, ...] = ()
    """Cores that the agent's threads may use, as the kernel says; of a virtual phone the host's."""


SetupName = Literal[
    "slot", "library", "discovery", "context", "build", "pipeline", "cache", "allocate", "descriptors", "record",
    "upload", "input", "readback",
]  # fmt: skip
"""`discovery`: platforms and devices; `pipeline`: kernel objects or pipelines; `cache`: program binaries are kept;
`descriptors`: descriptor sets or arguments; `record`: the command buffer."""
NOT_BEFORE_FIRST = ("slot", "readback")
"""Events that are no set-up: the engine's slot is waited for because of others, and outputs are read afterwards."""


class Setup(AgentEvent):
    """One set-up step: its start and how long it took."""

    event: Literal["setup"] = "setup"
    step: SetupName
    start_ns: int
    duration_ns: int = Field(ge=0)
    detail: str = ""
    """E.g. the number of programs built, and whether from a cache."""
    cached: bool = False
    bytes: int = 0


def _is_absent(value: object) -> bool:
    return value is None


def _is_nothing(value: object) -> bool:
    return not value


class Sample(AgentEvent):
    """One inference, a stream of them, or an epoch of training: wall time from submission to completion, not profiled.

    Of one inference it is the latency. Of a stream it is not: its inferences overlap, and none waits for the host.
    """

    event: Literal["sample"] = "sample"
    index: int = Field(ge=0)
    phase: Literal["warmup", "timed"]
    start_ns: int
    duration_ns: int = Field(ge=0)
    """The duration of all inferences of the sample together."""
    inferences: int = Field(default=1, ge=1)
    """The number of inferences; a stream has several."""
    mean_of: int = Field(default=1, ge=1, exclude_if=lambda runs: runs == 1)
    """The runs, one after the other from `start_ns` on, of which somebody else's program tells the mean alone:
    `duration_ns` is that mean."""
    stage: str = Field(default="", exclude_if=_is_nothing)
    """The stage's name, of a plan that trains, where a sample is an epoch."""
    epoch: int | None = Field(default=None, ge=0, exclude_if=_is_absent)
    """The epoch of the stage, from 0 on."""
    loss: float | None = Field(default=None, exclude_if=_is_absent)
    """Mean over the samples that the epoch saw; null where it is not finite."""
    error: float | None = Field(default=None, ge=0, le=1, exclude_if=_is_absent)
    """Share of wrong answers, where there are answers."""
    context: int = Field(default=0, ge=0, exclude_if=_is_nothing)
    """Tokens of a text that were taken before `start_ns`, where a sample is a prompt and its answer."""
    prompt: int = Field(default=0, ge=0, exclude_if=_is_nothing)
    """Tokens of the prompt, of each sequence."""
    sequences: int = Field(default=1, ge=1, exclude_if=lambda sequences: sequences == 1)
    """Texts of one length that were taken side by side, each token of all at once."""
    computed: int = Field(default=0, ge=0, exclude_if=_is_nothing)
    """Tokens of the runs that took the prompt, with those that fill up a run; 0 of a program that does not tell."""
    tokens: tuple[int, ...] = Field(default=(), exclude_if=_is_nothing)
    """The tokens that were generated, by their numbers; of one sequence after the other."""
    token_count: int = Field(default=0, ge=0, exclude_if=_is_nothing)
    """Tokens that were generated, of a program that does not tell which."""
    token_ns: tuple[int, ...] = Field(default=(), exclude_if=_is_nothing)
    """The time at which each of them was known, on the clock of `start_ns`; one for all sequences."""
    log_probabilities: tuple[float, ...] = Field(default=(), exclude_if=_is_nothing)
    """The natural logarithm of each given token's probability behind those before it, where none is generated; the
    first of the text has none."""

    @property
    def answers(self) -> tuple[tuple[int, ...], ...]:
        """Return the tokens that were generated of each sequence."""
        each = len(self.tokens) // self.sequences
        return tuple(self.tokens[first * each : (first + 1) * each] for first in range(self.sequences))

    @property
    def runs(self) -> int:
        """The inferences that it stands for: those of a stream, or those of which it is the mean."""
        return self.inferences * self.mean_of

    @property
    def middle_ns(self) -> float:
        """The middle of the time that they took together."""
        return self.start_ns + self.duration_ns * self.mean_of / 2


class Line(AgentEvent):
    """One line that somebody else's program printed; `t_ns` is when it came."""

    event: Literal["line"] = "line"
    index: int = Field(ge=0)
    """The run of the program, with `phase`, as its sample has it."""
    phase: Literal["warmup", "timed"]
    stream: Literal["stdout", "stderr"]
    text: str
    whole: bool = True
    """False: the program ended, or printed 256 KiB, in the middle of it."""


class Process(AgentEvent):
    """One run of somebody else's program is over."""

    event: Literal["process"] = "process"
    index: int = Field(ge=0)
    phase: Literal["warmup", "timed"]
    pid: int
    start_ns: int
    end_ns: int
    status: int
    """Its exit status; of no meaning where a signal ended it."""
    signal: int = Field(ge=0)
    """The signal that ended it; 0: none did."""
    user_ns: int = Field(ge=0)
    """Time of the processor, with the children that it waited for."""
    system_ns: int = Field(ge=0)
    peak_rss_bytes: int = Field(ge=0)
    """Largest resident memory of any of these processes."""
    cpus: tuple[int, ...] = ()
    """Cores that it may use, as the kernel says; of a virtual phone the host's."""
    dropped_bytes: int = Field(default=0, ge=0)
    """Output of the block so far that the journal left out: it keeps 256 KiB."""


class Checkpoint(AgentEvent):
    """The variables of a plan are in a file, from which a run with `--resume` goes on bit for bit."""

    event: Literal["checkpoint"] = "checkpoint"
    file: str
    bytes: int = Field(ge=0)
    sha256: str
    """The hash of the whole file."""
    epochs: int = Field(default=0, ge=0)
    """Done in this run, of a plan that trains."""
    tokens: int = Field(default=0, ge=0)
    """Taken, of a plan that generates text."""
    start_ns: int
    duration_ns: int = Field(ge=0)


class Layer(AgentEvent):
    """Device time of one step, from OpenCL events or Vulkan time stamps, in the separate profiled pass."""

    event: Literal["layer"] = "layer"
    index: int = Field(ge=0)
    """Index of the step in the plan."""
    layer: str
    program: str
    duration_ns: int = Field(ge=0)
    repeat: int = Field(default=0, ge=0)
    """The number of the profiled pass."""


class Output(AgentEvent):
    """One output tensor was written to a file."""

    event: Literal["output"] = "output"
    name: str
    file: str
    bytes: int
    sha256: str
    finite: bool
    """False where the tensor holds a NaN or an infinity."""


class Ready(AgentEvent):
    """A resident agent (`serve`) has loaded and warmed its networks, and answers requests from now on."""

    event: Literal["ready"] = "ready"
    networks: tuple[str, ...] = ()


class Served(AgentEvent):
    """A resident agent's answer to one request."""

    event: Literal["served"] = "served"
    id: int = Field(ge=0)
    start_ns: int
    end_ns: int
    status: Literal["ok", "late", "unknown_network"]
    """`late`: its deadline was over when its turn came; nothing was computed."""
    first_ns: int = Field(default=0, exclude_if=_is_nothing)
    """The time of the first token, of a request that generates."""
    tokens: int = Field(default=0, ge=0, exclude_if=_is_nothing)
    """Tokens that were generated."""


class Warning(AgentEvent):
    """Something that casts a doubt on the result, but does not end the run."""

    event: Literal["warning"] = "warning"
    code: str
    message: str


class Result(AgentEvent):
    """Last line of a run that went well."""

    event: Literal["result"] = "result"
    samples: int
    run_ns: int
    suspended_ns: int | None = None
    """Time since the agent's turn in which the system slept: by how much CLOCK_BOOTTIME left CLOCK_MONOTONIC behind."""


class Error(AgentEvent):
    """Last line of a run that failed."""

    event: Literal["error"] = "error"
    code: Literal[
        "usage", "plan_invalid", "limit", "no_device", "unsupported", "build_failed", "out_of_memory",
        "device_error", "io", "storage_full", "deadline", "cancelled", "power_contaminated", "program_failed",
        "too_hot", "internal",
    ]  # fmt: skip
    message: str
    step: str = ""
    kernel: str = ""
    """The kernel, with `limit`, that the driver refuses in its work-group, by its name in the plan's programs."""
    work_group: int = Field(default=0, ge=0)
    """Work-items that the plan asks for in its work-group."""
    work_group_limit: int = Field(default=0, ge=0)
    """The most work-items in a work-group of this kernel that the driver allows; 0: it does not tell."""


Event = Annotated[
    Hello
    | Probe
    | Device
    | Setup
    | Phase
    | Sample
    | Layer
    | Power
    | Rails
    | Sampler
    | Memory
    | Output
    | Line
    | Process
    | Checkpoint
    | Ready
    | Served
    | Warning
    | Result
    | Error,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(line: str | bytes) -> Event:
    """Validate one line of the agent. Raises pydantic.ValidationError on anything else."""
    return EVENT.validate_json(line)


__all__ = ["EVENT", "Api", "Event", "parse_event"]
