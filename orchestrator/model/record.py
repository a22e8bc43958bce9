"""The record of an attempt: raw samples, environment, provenance, outcome, doubts. Append-only."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field, FiniteFloat

from .base import Model, Word, rule
from .device import OURS, Api, ApiFacts, DeviceFacts, DeviceState, Precision, Source
from .doubts import Doubt as Doubt
from .doubts import DoubtCode as DoubtCode
from .doubts import InvalidCode as InvalidCode
from .doubts import Invalidity as Invalidity
from .event import Layer, Line, Memory, Output, Phase, Power, Process, Rails, Sample, Sampler, Setup
from .job import Role
from .power import ClockAnchor, GaugeCalibration, PowerSeries


class Outcome(Word):
    OK = "ok"
    INVALID = "invalid"
    """Measured, but under conditions that make the figures unusable; kept with its reasons."""
    FAILED = "failed"
    """Stable cause: another attempt would fail the same way."""
    LOST = "lost"
    """Transient cause: retried within the budget."""
    KILLED = "killed"
    """The device ended the agent (out of memory): a result."""
    CANCELLED = "cancelled"


class ConditionProof(Model):
    """One condition of the experiment: what was wanted, what was found, and what proves it."""

    name: str
    wanted: str
    before: str = ""
    """The state that the session found; empty: not told."""
    held: str = ""
    """The state read back for the block; empty: not told."""
    proven: bool
    """True if the device's own word proves it."""
    restored: bool | None = None
    """True if it was put back; None: nothing was changed, or another block of the session followed."""


class LayerMemory(Model):
    """Memory of the plan while one layer runs, from the memory plan (not measured)."""

    layer: str
    live_bytes: int = Field(ge=0)
    """Activations that are alive then."""
    weight_bytes: int = Field(ge=0)
    refused: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why another algorithm than the asked one computes it; empty where the asked one does."""


class Replan(Model):
    """A kernel that the driver refused in the work-group of the plan, which was then compiled anew within a limit."""

    kernel: str
    work_group: int = Field(ge=1)
    """Work-items that the refused plan asked for."""
    limit: int = Field(ge=1)
    """The most work-items in the next plan: as the driver told, else half."""
    reason: str
    """The agent's words."""


class Provenance(Model):
    """The exact programs that ran, and what ran them."""

    engine: str = Field(default=OURS.name, exclude_if=lambda value: value == OURS.name)
    """The engine that ran the program."""
    program_hash: str = Field(default="", validation_alias=AliasChoices("program_hash", "plan_hash"))
    """The hash of everything that shapes what ran: the plan's, of our own engine. Records of before call it so."""
    agent_sha256: str = ""
    agent_version: str = ""
    model_sha256: str = ""
    model_bytes: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Size of a language model's file; 0 of others."""
    driver_file: str = ""
    """The file that named the driver to the API's loader, where the cell chose one."""
    fingerprint: str = ""
    boot_id: str = ""
    farm_version: str = ""


class RunsOn(Model):
    """The device, driver and API that really ran, as the agent reported them."""

    api: Api
    precision: Precision
    facts: ApiFacts
    threads: int = 0


class OutputCheck(Model):
    """The comparison of the outputs with the host's reference for the same plan input."""

    name: str
    max_abs_difference: float
    """Largest absolute difference from the reference."""
    tolerance: float
    ok: bool
    rounding: float = 0.0
    """The reference's own loss in single precision, where the tolerance was widened for it."""
    psnr_db: float | None = None
    """Peak signal-to-noise ratio, of which the peak is the reference's largest absolute value; None where the two are
    equal, differ without bound, or the reference is zero."""


class Predictions(Model):
    """The predictions of a network for its shard of the experiment's set."""

    first: int = Field(ge=0)
    """Place of the first example in the set; the others follow."""
    top: tuple[tuple[int, ...], ...]
    """The numbers of each example's classes with the highest scores, best first, at most five; the smaller number
    first among equals."""
    margins: tuple[FiniteFloat, ...]
    """The best score less the second best, of each example; 0 where they are no finite numbers."""

    @rule
    def _of_the_same_examples(self) -> None:
        if len(self.top) != len(self.margins) or not all(self.top):
            raise ValueError("there is one margin of each example, and at least one class")


class TrainedModel(Model):
    """The network with the weights of the last epoch, and what the host found of it."""

    onnx_sha256: str
    """A kept file, which any experiment can name."""
    checkpoint_sha256: str
    """The hash of all variables of the training: two devices that computed alike have the same."""
    evaluated: int = Field(default=0, ge=0)
    """Samples that it was asked about: those held out, or where none were all; 0 without classes."""
    wrong: int = Field(default=0, ge=0)
    confusion: tuple[tuple[int, ...], ...] = ()
    """The counts of answers, by class, of each class."""

    @property
    def error(self) -> float | None:
        """Share of wrong answers."""
        return self.wrong / self.evaluated if self.evaluated else None


class Reconstruction(Model):
    """A sample of a set, and what a network makes of it that was trained to answer with its input. As pictures: rows of
    pixels, a byte each or one of red, green and blue, in base64; 0 is black."""

    height: int = Field(ge=1)
    width: int = Field(ge=1)
    given: str
    answered: str
    difference: FiniteFloat
    """Root of the mean square of answer less input, as the network has them."""


class SessionPlace(Model):
    """The place of a block in its session: a session's blocks share its preparation, and run right after each other."""

    first: int = Field(ge=1)
    """Token of the session's first attempt."""
    number: int = Field(ge=1)
    """The block's number, from 1 on."""


class EarlierReading(Model):
    """The reading that a record told before its kept output was read again."""

    replaced_at: float
    """Unix time."""
    farm_version: str
    """The version of the farm that read it again."""
    outcome: Outcome
    cause: str
    reasons: tuple[str, ...]
    samples: tuple[Sample, ...]
    phases: tuple[Phase, ...]
    invalid: tuple[Invalidity, ...]
    doubts: tuple[Doubt, ...]


class Record(Model):
    """One attempt's record; the ledger accepts it once, from the newest fencing token only."""

    schema_version: Literal[1] = 1
    experiment_id: str
    job_id: str
    cell_id: str
    block: int
    attempt: int
    token: int
    worker: str
    device: DeviceFacts
    source: Source
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    outcome: Outcome
    cause: str = ""
    """Bounded word: an error's `cause`, or the agent's error code."""
    reasons: tuple[str, ...] = ()
    """Reasons for people: what happened, where, and what to do."""
    session: SessionPlace | None = Field(default=None, exclude_if=lambda value: value is None)
    """The place in a session that was given several blocks; None: it was to be the only one."""
    started_at: float
    """Unix time, by the host's clock."""
    ended_at: float
    clock_ahead_s: float | None = None
    """The time by which the farm's clock (Redis') was ahead of the host's, s; 0 where they agree to half a second."""
    clock: ClockAnchor | None = Field(default=None, exclude_if=lambda value: value is None)
    """Puts times of the device onto the host's clock; None: no power was sampled, or the device told no time, or an
    older worker measured."""
    runs_on: RunsOn | None = None
    setup: tuple[Setup, ...] = ()
    samples: tuple[Sample, ...] = ()
    layers: tuple[Layer, ...] = ()
    role: Role = "work"
    suspended_s: float | None = None
    """Time of the run in which the device was suspended; None: the agent did not tell."""
    phases: tuple[Phase, ...] = ()
    power: tuple[Power, ...] = ()
    """Readings of the battery gauge, raw."""
    rails: tuple[Rails, ...] = ()
    sampler: Sampler | None = None
    gauge: GaugeCalibration | None = None
    """The calibration by which `power` is to be read; None: there was none."""
    series: tuple[PowerSeries, ...] = ()
    """Readings of sources other than the agent."""
    conditions: tuple[ConditionProof, ...] = ()
    invalid: tuple[Invalidity, ...] = ()
    """The reasons why the block does not count, where its outcome is `invalid`."""
    replans: tuple[Replan, ...] = ()
    """Refusals of this device's driver by which the plan that ran was arrived at; later jobs know them."""
    layer_memory: tuple[LayerMemory, ...] = ()
    memory: Memory | None = None
    outputs: tuple[Output, ...] = ()
    processes: tuple[Process, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Runs of somebody else's program."""
    lines: tuple[Line, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Lines that it printed, from which the samples were read."""
    readings: tuple[EarlierReading, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Earlier readings of these lines, the first one first."""
    checks: tuple[OutputCheck, ...] = ()
    trained: TrainedModel | None = Field(default=None, exclude_if=lambda value: value is None)
    """The model of a training that went to its end."""
    earlier: tuple[Sample, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Epochs before `samples`, which earlier attempts of the training told; their times are of their own runs."""
    reconstructions: tuple[Reconstruction, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Outputs of a network that was trained to answer with its input: a few samples."""
    predictions: Predictions | None = None
    """The predictions, where the workload has a set."""
    provenance: Provenance = Provenance()
    doubts: tuple[Doubt, ...] = ()
    evidence: tuple[str, ...] = Field(default=(), max_length=50)
    """Lines that could not be read, last lines of a killed agent: at most 50, each cut at 500 characters."""
