"""A suite: what is compared every night, on which phones, how long, and whom to tell. One YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from orchestrator.analysis.comparison import METRICS
from orchestrator.analysis.comparison.metrics import MIN_BLOCKS
from orchestrator.model.base import Model, rule
from orchestrator.model.experiment import DeviceChoice, Name, Sides
from orchestrator.model.quantity import Seconds, Share
from orchestrator.spec.validation import read_text, validate

from .schedule import cron_of

WANTED = "a suite is a mapping: `name: ...`, `experiments: [...]`, `sides: {candidate: ...}`"
LEAST_BUDGET_S = 10.0


def _metric(value: str) -> str:
    if value not in METRICS:
        raise ValueError(f"there is no metric `{value}`: known are {', '.join(METRICS)}")
    return value


Metric = Annotated[str, AfterValidator(_metric)]


class Suite(Model):
    """One suite file, validated."""

    schema_version: Literal[1] = 1
    name: Name
    description: str = ""
    experiments: tuple[str, ...] = Field(min_length=1)
    """Experiment files, relative to the suite's."""
    sides: Sides
    """The sides of the comparison: both run next to each other on the same phones in every round."""
    devices: DeviceChoice | None = None
    """The devices, instead of the experiments' own `devices`."""
    expected: tuple[str, ...] = ()
    """Serials that have to take part; who is away is told. Not given: those of the night before."""
    budget: Seconds = 7200.0
    """The time that a night may take, with a unit: `2 h`. What is not known by then is told as unknown."""
    rounds: int = Field(default=12, ge=MIN_BLOCKS, le=1000)
    """Blocks of each configuration on each side to begin with, best a multiple of four; configurations that are unknown
    after them get more."""
    most_rounds: int = Field(default=60, ge=MIN_BLOCKS, le=1000)
    """The most blocks of a configuration on each side, before what changed is repeated."""
    canary: int = Field(default=10, ge=0, le=1000)
    """The blocks of a device after which one block of a small reference workload runs; 0: none."""
    metrics: tuple[Metric, ...] = ()
    """The metrics that are compared; none: all that the experiments measure."""
    margins: dict[Metric, Share] = Field(default_factory=dict)
    """Sides that differ by less are the same, by metric: `{latency: 2 %}`."""
    schedule: Annotated[str, AfterValidator(cron_of)] | None = None
    """The schedule, in local time: `02:30` every day, or fields of cron, `30 2 * * mon-fri`; none: by hand alone."""
    tell: tuple[str, ...] = ()
    """Whom to tell how a night went: addresses."""

    @field_validator("experiments", "tell", "expected")
    @classmethod
    def _each_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(values)) != len(values):
            raise ValueError("a value is listed twice")
        return values

    @rule
    def _consistent(self) -> None:
        if self.most_rounds < self.rounds:
            raise ValueError(f"most_rounds {self.most_rounds} is below rounds {self.rounds}")
        if self.budget < LEAST_BUDGET_S:
            raise ValueError(
                f"a budget of {self.budget:g} s is less than {LEAST_BUDGET_S:g} s: write e.g. `budget: 2 h`"
            )
        if self.devices is not None and self.devices.count == "any":
            raise ValueError("sides are compared device by device: give `devices.count` as `all` or a number")


def load(path: Path) -> Suite:
    """Read and validate a suite file. Raises SpecError with every problem: its place, its field, what is allowed."""
    return validate(read_text(path), Suite, str(path), WANTED)
