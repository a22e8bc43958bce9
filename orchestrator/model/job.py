"""A job: one block of one cell of the matrix. Its identity is the hash of its content."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .base import Model, content_hash
from .device import Api, Precision
from .experiment import Conditions, Measure, Sampling, Workload


class Cell(Model):
    """One combination of the matrix: what is run, apart from where and how often."""

    workload: Workload
    backend: Api
    precision: Precision = Precision.FP32
    options: dict[str, int | str | bool] = Field(default_factory=dict)
    """Further axes, given to the compiler: `algorithm`, `granularity`, `threads`, `fuse`, `tuned` ..."""

    @cached_property
    def cell_id(self) -> str:
        return content_hash(self)

    @property
    def label(self) -> str:
        """Short name for tables, e.g. `squeezenet_v1_0 opencl fp32 granularity=4`."""
        rest = "".join(f" {key}={value}" for key, value in sorted(self.options.items()))
        return f"{self.workload.label} {self.backend} {self.precision}{rest}"


class ForeignCell(Cell):
    """A combination that somebody else measured: backend and precision are words of theirs. It cannot be run.

    The types are wider than a cell's, so whoever runs cells takes them by `Job`, which refuses foreign ones.
    """

    foreign: Literal[True]
    """Tells it from a cell: two that look alike differ in their identity too."""
    backend: str  # type: ignore[assignment]
    precision: str  # type: ignore[assignment]
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)  # type: ignore[assignment]
    """Further axes, as they were called there."""


Role = Literal["work", "canary"]
"""A canary is the same small reference workload again and again: it tells whether the device has changed."""


class Job(Model):
    """One block of one cell, for one of the candidate devices."""

    experiment_id: str
    cell: Cell
    block: int = Field(ge=0)
    candidates: tuple[str, ...] = Field(min_length=1)
    """Serials that may run it; exactly one where the experiment asks for every device."""
    sampling: Sampling
    conditions: Conditions
    measure: Measure
    priority: int = Field(default=0, ge=-100, le=100)
    role: Role = "work"

    @cached_property
    def job_id(self) -> str:
        return content_hash(self)


class ForeignJob(Job):
    """One block of a foreign cell: the ledger's place for a record that was imported. Never placed, never run."""

    cell: ForeignCell


AnyJob = Annotated[Job | ForeignJob, Field(union_mode="left_to_right")]
"""What the ledger may hold; an ordinary job is tried first, and refuses what is foreign."""
ANY_JOB: TypeAdapter[AnyJob] = TypeAdapter(AnyJob)
