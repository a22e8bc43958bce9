"""The interface of an engine: it prepares a program for a device and a cell, and runs it for a block in a session.

Session, conditions, power, spool and records know an engine by the classes of this file alone. A program's block comes
to the agent's own events (`orchestrator/model/event.py`), whoever measured it: figures, reports and metrics read those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from orchestrator.model.device import Api, DeviceFacts, EngineAxis, EngineFacts, Precision, Reading
from orchestrator.model.event import Event, Sample
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.announcement import Learnt, Phase
from orchestrator.model.live.lease import Assignment
from orchestrator.model.power import PowerSeries
from orchestrator.model.record import (
    Doubt,
    LayerMemory,
    Outcome,
    OutputCheck,
    Predictions,
    Reconstruction,
    Replan,
    TrainedModel,
)
from workers.connection.ahead import Ahead
from workers.devices.fleet import Member
from workers.files.host_files import HostFiles
from workers.power import PowerMeter
from workers.session.supply import PlannedCut

from .models import Models

Commands = Sequence[Sequence[str]]


class Report(Protocol):
    """Told how far a session is, what the device's sampler said last where it samples, and what a training came to."""

    def __call__(
        self,
        phase: Phase,
        done: int,
        total: int,
        last_ms: float | None,
        reading: Reading | None = None,
        learnt: Learnt | None = None,
        /,
    ) -> None:
        """`done` samples of `total`; `last_ms` per inference of the latest; `learnt` in the latest epoch."""


@dataclass(frozen=True)
class Host:
    """The means that a host gives its engines."""

    state: Path
    """Folder for what an engine keeps on this host."""
    files: HostFiles
    """Files of experiments, by their hash."""
    give: Callable[[str], None] = lambda _: None
    """Gives the farm a file that was made here, by its SHA-256."""

    @cached_property
    def models(self) -> Models:
        """Return what cells compute, which its engines share."""
        return Models(self.files)

    @classmethod
    def alone(cls, state: Path) -> Host:
        """Return one whose state folder is the farm's own."""
        return cls(state, HostFiles(state))


@dataclass(frozen=True)
class Work:
    """One block that is to be made ready, before anybody waits for the device."""

    assignment: Assignment
    member: Member
    check: Callable[[], None]
    """Raises LeaseLost, JobCancelled; called often while something takes long."""
    report: Report
    cpus: str = ""
    """Cores to which the run is to be bound, as `0-3,6`; empty: any."""


@dataclass
class Trips:
    """The trips to a device that a session's blocks share: the one after a block prepares the next, and files that were
    compared for one are not compared again."""

    ahead: Ahead
    verified: set[str] = field(default_factory=set)
    """Folders on the device whose files were compared."""
    coming: Callable[[Trips], Commands] = lambda _: ()
    """The questions after the block that begins, for the trip that runs it: answered through `ahead`, if the run is
    over by then. Called when that trip is near."""
    expected: object = None
    """Kept by a program for its next block; only programs of the same engine can read it."""


@dataclass(frozen=True)
class Run:
    """One block in its session."""

    assignment: Assignment
    member: Member
    check: Callable[[], None]
    """Called before each step on the device. What it raises ends the run: whatever was started on the device is
    stopped, except after LeaseLost, when the device is not ours."""
    report: Report
    trips: Trips
    tidy: list[Sequence[str]]
    """Gets the commands that remove what the run leaves on the device."""
    cpus: str = ""
    discharging_sign: int = 0
    """Sign of the gauge's current while the battery discharges; 0: not known."""
    meter: PowerMeter | None = None
    cut: Callable[[float], PlannedCut | None] = lambda _: None
    """Makes the cut of the supply for a run that is expected to take so many seconds; None: it stays."""

    @property
    def name(self) -> str:
        """`<job>/<attempt>`: behind the device's marker it marks every process of the run."""
        return f"{self.assignment.job_id}/{self.assignment.attempt}"


class Coming(NamedTuple):
    """The questions of a program before its block begins, for the trip of the block before."""

    commands: Commands = ()
    undoing: Commands = ()
    """Commands that remove what these made, if the block does not begin."""


@dataclass(frozen=True)
class Measured:
    """The result of a run, before it is judged."""

    events: Sequence[Event] = ()
    """Set-up, samples, layers, phases, power, memory, outputs, the result: as the agent's journal has them."""
    went_well: bool = True
    """False: the run has no result; `judge` tells why, and no further block follows in the session."""
    resumed: bool = False
    """The connection was lost and found again."""
    evidence: tuple[str, ...] = ()
    """The last lines of a run that was killed."""
    series: tuple[PowerSeries, ...] = ()
    """Readings of the meter."""
    earlier: tuple[Sample, ...] = ()
    """Epochs of earlier attempts from which this one went on."""


@dataclass(frozen=True)
class Verdict:
    """The judgement on a block."""

    outcome: Outcome = Outcome.OK
    """OK, INVALID or KILLED; any other end is an error that is raised."""
    cause: str = ""
    """One of the engine's `causes`, unless it is OK."""
    reasons: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    """Doubts that the engine declares; those about device, samples, conditions and power are found for it."""
    checks: tuple[OutputCheck, ...] = ()
    predictions: Predictions | None = None
    trained: TrainedModel | None = None
    reconstructions: tuple[Reconstruction, ...] = ()


@dataclass
class Program(ABC):
    """One cell made ready for one device. Each block has its own, of which like ones share what is large."""

    program_hash: str
    """The hash of everything that shapes what runs: the same program has the same hash on every host."""
    agent_sha256: str = field(default="", init=False)
    """The build that ran, where it was another than the device's agent."""
    layer_memory: tuple[LayerMemory, ...] = field(default=(), init=False)
    replans: tuple[Replan, ...] = field(default=(), init=False)
    """Changes that the device's driver forced on the program."""

    @abstractmethod
    def run(self, run: Run) -> Measured:
        """Run one block and return what it told, also where it failed or was killed.

        Raises transient errors, and what `run.check` raises.
        """

    def judge(self) -> Verdict:
        """Judge the last run; the device is free by then. Raises a StableError or TransientError for a failure."""
        return Verdict()

    def coming(self, run: Run) -> Coming:  # noqa: ARG002 (most have nothing to ask)
        """Return what may be asked of the device while the block before ends; `run` as it will be given."""
        return Coming()

    def again(self) -> Program:
        """Return the program of another block that computes the same."""
        return copy(self)


class Reader(Program):
    """A program whose results are what it prints, which can be read again."""

    @abstractmethod
    def read_again(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events of a run that ended well with the samples that its lines tell. `judge` then tells whether
        that is a result."""


class Engine(ABC):
    """Makes programs. One object serves all sessions of a host, from several threads."""

    name: ClassVar[str]
    """The value of the axis `engine`."""
    takes: ClassVar[tuple[str, ...]]
    """The workloads that it can run: fields of `workload` that say what runs."""
    apis: ClassVar[tuple[Api, ...]] = tuple(Api)
    precisions: ClassVar[tuple[Precision, ...]] = tuple(Precision)
    axes: ClassVar[tuple[EngineAxis, ...]] = ()
    """Axes of its own: in an experiment `matrix: {NAME.AXIS: ...}`; see `values`."""
    doubts: ClassVar[Mapping[str, str]] = {}
    """Doubts that its programs may have about a block, each with its remedy; see `doubt`."""
    causes: ClassVar[Mapping[str, Outcome]] = {}
    """Causes that its programs' verdicts may have, each with its outcome."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @classmethod
    def doubt(cls, word: str, detail: str = "") -> Doubt:
        """Return a doubt of one of its own kinds."""
        return Doubt(code=f"{cls.name}.{word}", detail=detail, advice=cls.doubts[word])

    @classmethod
    def values(cls, cell: Cell) -> dict[str, int | str | bool]:
        """Return a cell's values of the engine's own axes, by their names, the default where it has none."""
        return {axis.name: cell.options.get(f"{cls.name}.{axis.name}", axis.default) for axis in cls.axes}

    def lacks(self, device: DeviceFacts) -> str:  # noqa: ARG002 (most run anywhere)
        """Return why it cannot run on a device; empty where it can."""
        return ""

    def reader(self, job: Job) -> Reader | None:  # noqa: ARG002 (most read a file, or an agent's own events)
        """Return a program that reads again what one of a job printed; it cannot run. None: text is not enough."""
        return None

    def facts(self, device: DeviceFacts) -> EngineFacts:
        """Return what its host announces of it for a device."""
        return EngineFacts(
            name=self.name,
            takes=self.takes,
            apis=self.apis,
            precisions=self.precisions,
            axes=self.axes,
            missing=self.lacks(device),
        )

    @abstractmethod
    def prepare(self, work: Work) -> Program:
        """Make a block's program ready on this host: nothing is asked of the device, which others may have still.

        Raises StableError for what can never run, TransientError for what this host lacks now.
        """
