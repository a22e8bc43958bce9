"""`BlockFigures`: one block as the statistics see it. A change here, or of what a field means, is one more in
`FIGURES_VERSION`: rows of another version are made anew from their records when they are asked for."""

from __future__ import annotations

from math import fsum

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.job import Role
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.record import (
    ConditionProof,
    Doubt,
    Invalidity,
    LayerMemory,
    Outcome,
    Predictions,
    Provenance,
    RunsOn,
    TrainedModel,
)

from .plateau import Plateau
from .times import Mean, Times

FIGURES_VERSION = 8


class Rate(Model):
    """Frames per second of a block's timed samples."""

    samples: int = Field(ge=1)
    frames: int = Field(ge=1)
    """The frames of the largest sample."""
    median_per_s: float
    slowest_per_s: float


class Value(Model):
    """A figure with its standard uncertainty, in the unit of its name; the gain's uncertainty is in it."""

    value: float
    std: float = Field(ge=0)
    systematic: float = Field(default=0.0, ge=0)
    """Part of that which is the same in every block, the gain's left out."""


class Energy(Model):
    """Energy of the block's load phase by the first of its sources of power."""

    source: PowerSource
    scope: Scope
    name: str
    """The name of the gauge, meter, rail or counter."""
    absolute: bool
    """True if the gain is known; otherwise figures compare only on this device."""
    gain_uncertainty: float = Field(ge=0)
    """Standard uncertainty of the gain as a share, which all blocks of the device have in common."""
    load_s: float
    inferences: int = Field(ge=0)
    per_inference_j: Value | None = None
    """Net of the idle power; None without a rest or an inference."""
    gross_per_inference_j: Value | None = None
    per_token_j: dict[str, Value] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Net energy of a token by the name of its quantity: of a prompt's, and of one that is generated."""
    load_power_w: Value
    idle_power_w: Value | None = None
    doubts: tuple[Doubt, ...] = ()


class Course(Model):
    """The course of a sustained load: the time of an inference, or of a token behind an answer's first; and what the
    phone told meanwhile."""

    load_s: float = Field(gt=0)
    bins_ms: tuple[float | None, ...]
    """Medians of equal parts of the load; None of one in which none ended."""
    first_ms: float | None
    """Median of the first minute, or of the first fifth of a shorter load."""
    last_ms: float | None
    """Median of the last tenth."""
    power_w: tuple[float | None, ...] = ()
    """Mean power of the same parts by the best source, gross; empty where none was measured, as the two below."""
    temp_c: tuple[float | None, ...] = ()
    """Temperature of the skin, else of the battery."""
    clock_hz: tuple[float | None, ...] = ()
    plateau: Plateau | None = None
    """None where inferences or tokens are too few to tell it."""


class Memory(Model):
    """Bytes; the figures have different meanings and are never added up."""

    device_peak_bytes: int
    vm_hwm_bytes: int
    pss_bytes: int | None = None


class LayerTime(Model):
    """Device time of one step of the plan, from the profiled passes."""

    index: int
    layer: str
    program: str
    median_ms: float


class PerLayer(Model):
    """The figures of a block layer by layer; a row holds them apart, because few questions are about them."""

    steps: tuple[LayerTime, ...] = ()
    """The steps' times, in the plan's order."""
    layers: dict[str, Mean] = Field(default_factory=dict)
    """Layers by name: the time of all steps of a layer in one profiled pass."""
    planned: tuple[LayerMemory, ...] = ()
    """Memory by layer of the plan (not measured)."""

    @property
    def refused(self) -> dict[str, str]:
        """Layer -> why another algorithm than the asked one computes it."""
        return {each.layer: each.refused for each in self.planned if each.refused}

    @property
    def as_asked(self) -> dict[str, Mean]:
        """`layers` without those."""
        return {name: times for name, times in self.layers.items() if name not in self.refused}


class Epoch(Model):
    """One of a training, as the device told it."""

    stage: str
    """`pretrain:LAYER`, or `train` for all layers together."""
    epoch: int = Field(ge=0)
    """The number of the epoch in its stage, from 0 on."""
    loss: float | None = None
    """Mean over the samples; None where it was not finite."""
    error: float | None = None
    """Share of wrong answers while it was trained; None without classes."""
    ms: float = Field(ge=0)


class Stage(Model):
    """One epoch of a stage of a training: the mean of those that the block ran, with what lies between them."""

    name: str
    epochs: int = Field(ge=1)
    """The number of epochs."""
    epoch_ms: float = Field(ge=0)
    epoch_j: float | None = None
    """Net of the idle power; None where that is not known."""

    @property
    def net_power_w(self) -> float | None:
        return None if self.epoch_j is None or not self.epoch_ms else 1e3 * self.epoch_j / self.epoch_ms


class Trained(Model):
    """The course of a training."""

    epochs: tuple[Epoch, ...]
    """The epochs in order; of many about as many as a chart can show, each stage's first and last among them."""
    count: int = Field(ge=1)
    """The number of all epochs."""
    stages: tuple[Stage, ...] = ()
    """The stages that the block ran, in order."""
    model: TrainedModel | None = None
    """None where it was not trained to its end."""

    @property
    def whole(self) -> Stage | None:
        """One epoch of each stage together; None where an earlier attempt trained a stage."""
        if not self.stages or {each.stage for each in self.epochs} != {each.name for each in self.stages}:
            return None
        joules = [each.epoch_j for each in self.stages if each.epoch_j is not None]
        return Stage(
            name="all", epochs=1, epoch_ms=fsum(each.epoch_ms for each in self.stages),
            epoch_j=fsum(joules) if len(joules) == len(self.stages) else None,
        )  # fmt: skip


class BlockFigures(Model):
    """One block of one cell on one device, in one attempt."""

    version: int = FIGURES_VERSION
    experiment_id: str
    job_id: str
    attempt: int
    token: int
    cell_id: str
    block: int
    """Number of the round."""
    role: Role = "work"
    worker: str
    serial: str
    model: str = ""
    """The model of the device."""
    profile: str = ""
    """The profile of a virtual phone; empty elsewhere."""
    source: Source
    boot_id: str = ""
    fingerprint: str = ""
    """The device's, where the run told none."""
    battery_cycles: int | None = None
    """The battery's cycles of the phone, before the block."""
    started_at: float
    """Unix time."""
    ended_at: float
    outcome: Outcome
    cause: str = ""
    reasons: tuple[str, ...] = ()
    invalid: tuple[Invalidity, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    conditions: tuple[ConditionProof, ...] = ()
    runs_on: RunsOn | None = None
    provenance: Provenance = Provenance()
    times: Times | None = None
    """None without a timed sample."""
    inferences: int = 0
    """The inferences of all timed samples."""
    stream: bool = False
    """True if a sample has several inferences, so that its time is no latency."""
    rate: Rate | None = None
    setup_ns: dict[str, int] = Field(default_factory=dict)
    """Time in each step of the agent, in order of first appearance, with waiting for the slot and reading back."""
    setup_cached: bool = False
    """True if a step used what the farm had kept."""
    first_ns: int | None = 0
    """Time of the first sample, a warm-up or not; None where it is a stream, 0 without a sample."""
    first_timed_ms: float = 0.0
    memory: Memory | None = None
    values: dict[str, float] = Field(default_factory=dict)
    """The quantities without figures of their own."""
    pass_ms: float | None = None
    """Median time of a whole profiled pass on the device."""
    energy: Energy | None = None
    """None where power was not measured, or not over the load."""
    course: Course | None = None
    """The course of the load in mode `sustained`."""
    per_layer: PerLayer | None = None
    psnr_db: float | None = None
    """The least of its outputs against the reference; None where they are equal, or were not compared."""
    answer: tuple[int, ...] = ()
    """The tokens that a language model answered with, the first of many; a block's answers are alike."""
    trained: Trained | None = None
    """The training's course, where the workload is one."""
    predictions: Predictions | None = None
    """The predictions, where the workload has a set: agreement is made of them; a row holds them apart."""
