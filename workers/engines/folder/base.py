"""The part of an engine from a folder that all of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from orchestrator.model.axes import AXES
from orchestrator.model.base import content_hash
from orchestrator.model.device import Api, DeviceFacts, EngineFacts, Precision
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment import Workload
from orchestrator.model.experiment.engine_settings import Unread
from orchestrator.model.job import Job
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt, Outcome
from workers.engines.engine import Engine, Work

from .program import HOW, FolderProgram
from .tool import Asked, Told


class FolderEngine(Engine):
    """An engine whose own benchmark runs on the phone."""

    takes: ClassVar[tuple[str, ...]] = ("model",)
    apis: ClassVar[tuple[Api, ...]] = (Api.CPU,)
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32,)
    programs: ClassVar[tuple[str, ...]]
    """Names of its program, the better one first."""
    formats: ClassVar[tuple[str, ...]]
    """Endings of the files that it takes as a model."""
    takes_folder: ClassVar[bool] = False
    """True if it is given the folder of the model's file."""
    doubts: ClassVar[Mapping[str, str]] = {
        "unverified": "the tool writes no outputs: check the model by a tool that does, before its times count",
        "zero_weights": "the tool times a network whose weights are all zero, with its halves where it has them",
        "placed": "the tool prints when all is over: power and energy are those of the time right before",
    }
    own_doubts: ClassVar[tuple[str, ...]] = ("unverified",)
    """The doubts that its results have in any case."""
    causes: ClassVar[Mapping[str, Outcome]] = {"killed": Outcome.KILLED}

    @abstractmethod
    def arguments(self, asked: Asked) -> list[str]:
        """Return the words behind the program's name. Raises Unsupported."""

    @abstractmethod
    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        """Read what a run printed. Raises Unread for whatever this version does not know."""

    def read(self, lines: Sequence[Line], asked: Asked) -> Told:
        """The same, with as many samples as asked. Raises Unread, whatever a damaged output makes of a reader."""
        try:
            told = self.told(lines, asked)
        except Unread:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as e:
            raise Unread(f"its output is not of the form that is known: {type(e).__name__}: {e}"[:300]) from e
        wanted = told.warmup + (1 if told.mean_of > 1 else asked.samples)
        if len(told.samples) != wanted:
            raise Unread(f"it told {counted(len(told.samples), 'sample')}, and {wanted} were asked for")
        return told

    def facts(self, device: DeviceFacts) -> EngineFacts:
        return super().facts(device).model_copy(update={"brought": True})

    def prepare(self, work: Work) -> FolderProgram:
        job, device = work.assignment.job, work.member.facts
        cell, files = job.cell, self.host.files
        why = {
            f"engine {self.name} runs no `sampling.frames`": cell.frames > 1,
            f"engine {self.name} runs a model as it is: leave out `batch`": cell.batch is not None,
            f"engine {self.name} counts its samples: leave out `sampling.load`": job.sampling.load > 0,
            f"engine {self.name} warms up by number: leave out `sampling.warmup_stable`": (
                job.sampling.warmup_stable is not None
            ),
            f"engine {self.name} has no folder for {device.abi}: `farm engines add {self.name} FOLDER --abi "
            f"{device.abi}`": device.abi not in cell.build,
        }
        for reason in (reason for reason, holds in why.items() if holds):
            raise Unsupported(reason, device=device.serial)
        build = EngineBuild.read(files.path(cell.build[device.abi]))
        model, model_files = self.model_of(cell.workload)
        asked = self.asked(job, model, **self.model_facts(model_files[model]))
        shapes = {
            "engine": self.name,
            "build": cell.build[device.abi],
            "model": cell.workload.files_sha256 or cell.workload.model_dump(mode="json"),
            "arguments": self.arguments(replace(asked, samples=1, warmup=0)),
        }
        return FolderProgram(
            content_hash(shapes), job, [], {name: files.path(sha256) for name, sha256 in build.files.items()},
            content_hash(build), tool=self, asked=asked, program=build.program, version=build.version,
            model_files=model_files,
        )  # fmt: skip

    def reader(self, job: Job) -> FolderProgram:
        return FolderProgram("", job, [], {}, "", tool=self, asked=self.asked(job))

    def asked(self, job: Job, model: str = "", **facts: Any) -> Asked:
        """Return what a job asks of the tool; the model's path is that below its own folder."""
        cell, threads = job.cell, AXES["threads"]
        axes = {threads.name: cell.options.get(threads.name, threads.default), **self.values(cell), **facts}
        return Asked(model, cell.backend, cell.precision, job.sampling.samples, job.sampling.warmup, axes)

    def model_of(self, workload: Workload) -> tuple[str, Mapping[str, Path]]:
        """Return the path of the file that the tool is given, and all files of the model. Raises Unsupported."""
        found = {name: self.host.files.path(sha256) for name, sha256 in workload.files_sha256.items()}
        fit = [name for name in found if name.endswith(self.formats)]
        if len(fit) != 1:
            raise Unsupported(
                f"engine {self.name} takes a model with one file {' or '.join(self.formats)}; {workload.model} has "
                f"{', '.join(fit) or 'none'}", remedy=f"convert it, or name another engine: {HOW}"
            )  # fmt: skip
        return fit[0], found

    def model_facts(self, path: Path) -> Mapping[str, Any]:  # noqa: ARG002 (most tools read the file themselves)
        """Return what the tool must be told of the model's file, beside the values of axes. Raises Unsupported."""
        return {}

    def judged(self, *, with_power: bool) -> tuple[Doubt, ...]:
        """Return the doubts about a block."""
        return tuple(self.doubt(word) for word in (*self.own_doubts, *(("placed",) * with_power)))
