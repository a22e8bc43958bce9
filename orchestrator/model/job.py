"""A job: one block of one cell of the matrix. Its identity is the hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter

from .axes import AXES, ENGINE, axis_value_text
from .base import Model, canonical_json, content_hash, hash_of_text
from .device import Api, Precision
from .experiment import Conditions, Measure, Sampling, Workload
from .experiment.engine_settings import Printed
from .experiment.language_model import DEFAULTS, Text


class Cell(Model):
    """A point of the matrix: what is run, apart from where and how often."""

    workload: Workload
    backend: Api
    precision: Precision = Precision.FP32
    options: dict[str, int | str | bool] = Field(default_factory=dict)
    """Further axes, by name (`orchestrator/model/axes.py`): those that were asked for and may make a difference."""
    agent: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The build of the agent that runs it, abi -> SHA-256; none: the host's."""
    driver: str = Field(default="", exclude_if=lambda value: not value)
    """Path of the file that names its driver to the API's loader; empty: the usual one."""
    driver_sha256: str = Field(default="", exclude_if=lambda value: not value)
    """The hash of that file."""

    build: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The builds of its engine that a person brought, abi -> SHA-256 of an `EngineBuild`; none: the engine has none."""
    printed: Printed | None = Field(default=None, exclude_if=lambda value: value is None)
    """The place of the samples in what its command prints; None: a sample is a run of it."""
    model_files: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """A user's own file of the model for its engine, name -> SHA-256; none: the engine's is made of the workload's."""

    @cached_property
    def cell_id(self) -> str:
        return content_hash(self)

    def at(self, dimension: str, value: int) -> Cell:
        """The same with another value of an axis, or of a parameter of its network: `size`, `hidden.0`."""
        if dimension in AXES:
            return Cell.model_validate({**self.model_dump(), "options": {**self.options, dimension: value}})
        name, _, place = dimension.partition(".")
        sizes = self.workload.parameters[name]
        changed = value if isinstance(sizes, int) else (*sizes[: int(place)], value, *sizes[int(place) + 1 :])
        workload = self.workload.model_copy(update={"parameters": {**self.workload.parameters, name: changed}})
        return Cell.model_validate({**self.model_dump(), "workload": workload})

    def value(self, dimension: str) -> int:
        """Return the value of an axis that is a number and was asked for, or of a parameter of its network."""
        if dimension in AXES:
            return int(self.options[dimension])
        name, _, place = dimension.partition(".")
        sizes = self.workload.parameters[name]
        return sizes if isinstance(sizes, int) else sizes[int(place)]

    def has(self, values: Mapping[str, Sequence[int | str | bool]]) -> bool:
        """Return whether it has one of these values of each of these axes."""
        fields = {"backend": self.backend, "precision": self.precision, "network": self.workload.network}
        own: Mapping[str, object] = {**fields, **self.options, ENGINE.name: self.engine}
        return all(own.get(name) in given for name, given in values.items())

    @property
    def engine(self) -> str:
        """Return the name of the engine that runs it."""
        return str(self.options.get(ENGINE.name, ENGINE.default))

    @property
    def batch(self) -> int | None:
        """Frames that one inference, or a step of training, takes; None: as the model has it."""
        training = self.workload.training
        return self._count("batch") or (training.batch if training else None)

    @property
    def text(self) -> Text | None:
        """The text of its language model; None where it has none."""
        if self.workload.language_model is None:
            return None
        own = {name: int(self.options.get(name, default)) for name, default in DEFAULTS.items()}
        return Text(**own, batch=self.batch or 1)

    @property
    def frames(self) -> int:
        """Frames of a sample, examples of a shard; 1: a sample is one inference, whatever its batch."""
        return self.workload.dataset.shard if self.workload.dataset else self._count("frames") or 1

    @property
    def inferences(self) -> int:
        """The inferences of a sample; the last shard of a set may have fewer."""
        return max(1, self.frames // (self.batch or 1))

    def _count(self, name: str) -> int | None:
        """A whole number among the options; a foreign cell may call anything by that name."""
        value = self.options.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    @property
    def label(self) -> str:
        """Short name for tables, e.g. `squeezenet_v1_0 opencl fp32 granularity=4`."""
        return self._label(self.options)

    def _label(self, options: Mapping[str, object]) -> str:
        told = {key: value for key, value in sorted(options.items()) if value != "command" or key != ENGINE.name}
        rest = "".join(f" {key}={axis_value_text(key, value)}" for key, value in told.items())
        named = self.workload.placeholders if self.workload.command else {"backend", "precision"}
        words = (str(getattr(self, name)) for name in ("backend", "precision") if name in named)
        return f"{' '.join((self.workload.label, *words))}{rest}"


def labels_of(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Return the label of each of these cells, by the same keys; beside other engines those of our own name it too."""
    several = len({cell.engine for cell in cells.values()} - {""}) > 1
    return {
        key: cell._label({ENGINE.name: cell.engine, **cell.options} if several and cell.engine else cell.options)
        for key, cell in cells.items()
    }


class ForeignCell(Cell):
    """A cell that somebody else measured: backend and precision are as they named them. It cannot be run.

    The types are wider than a cell's, so whoever runs cells takes them by `Job`, which refuses foreign ones.
    """

    foreign: Literal[True]
    """Tells it from a cell: two that look alike differ in their identity too."""
    backend: str  # type: ignore[assignment]
    precision: str  # type: ignore[assignment]
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)  # type: ignore[assignment]
    """Further axes, as they were called there."""

    @property
    def engine(self) -> str:
        """Return what measured it, as far as it was named."""
        return str(self.options.get(ENGINE.name, ""))


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
        """The hash of its content, in which a choice of several devices is its own hash."""
        block, choice = b'{"block":%d' % self.block, b',"candidates":%s' % self.choice
        return hash_of_text(block, choice, self.text_after_candidates)

    @cached_property
    def choice(self) -> bytes:
        """Return the candidates' mark: the only one as a list, several as the SHA-256 of that list."""
        listed = canonical_json(self.candidates)
        return listed if len(self.candidates) == 1 else b'"%s"' % hashlib.sha256(listed).hexdigest().encode()

    @cached_property
    def text_after_candidates(self) -> bytes:
        """Its canonical text but block and candidates, which come first."""
        data = self.model_dump(mode="json", exclude={"block", "candidates"})
        return b"," + canonical_json(data)[1:]

    def with_block(self, block: int, job_id: str = "") -> Self:
        """The same job of another block, whose id may be known; it takes over what is known of their common text."""
        return self._like({"block": block}, ("job_id",), job_id)

    def with_candidates(self, candidates: tuple[str, ...]) -> Self:
        """The same block for another choice of devices: another job."""
        return self._like({"candidates": candidates}, ("job_id", "choice"))

    def _like(self, update: dict[str, object], unlike: Sequence[str], job_id: str = "") -> Self:
        made = self.model_copy(update=update)
        for name in unlike:
            made.__dict__.pop(name, None)
        if job_id:
            made.know_id(job_id)
        return made

    def know_id(self, job_id: str) -> None:
        """Its id is this one, whatever its content says."""
        self.__dict__["job_id"] = job_id

    def share_cell(self, other: Job) -> None:
        """Have the other's cell, where it is the same: what is once known of it, as its hash, is known of both."""
        if self.cell is not other.cell and self.cell == other.cell:
            self.__dict__["cell"] = other.cell

    @property
    def measures_power(self) -> bool:
        return "power" in self.measure.quantities

    @property
    def examples(self) -> range | None:
        """The part of the set that this block takes; None where there is no set."""
        dataset = self.cell.workload.dataset
        return dataset.examples(self.block) if dataset else None

    @property
    def inferences(self) -> int:
        """The inferences of a sample."""
        examples = self.examples
        return self.cell.inferences if examples is None else len(examples) // (self.cell.batch or 1)


class ForeignJob(Job):
    """One block of a foreign cell: the ledger's place for a record that was imported. Never placed, never run."""

    cell: ForeignCell


AnyCell = Annotated[Cell | ForeignCell, Field(union_mode="left_to_right")]
"""The cell of one."""
ANY_CELL: TypeAdapter[AnyCell] = TypeAdapter(AnyCell)
AnyJob = Annotated[Job | ForeignJob, Field(union_mode="left_to_right")]
"""A job that the ledger may hold; an ordinary one is tried first, and refuses what is foreign."""
ANY_JOB: TypeAdapter[AnyJob] = TypeAdapter(AnyJob)
