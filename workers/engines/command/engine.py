"""The engine that runs a command: it knows its words, its files, and where its samples are printed."""

from __future__ import annotations

from orchestrator.model.axes import AXES
from orchestrator.model.base import content_hash
from orchestrator.model.errors import SpecError
from orchestrator.model.job import Job
from orchestrator.model.record import Outcome
from workers.engines.engine import Engine, Work

from .doubts import DOUBTS
from .program import CommandProgram

CAUSES = {"killed": Outcome.KILLED}


class CommandEngine(Engine):
    name, takes = "command", ("command",)
    doubts, causes = DOUBTS, CAUSES

    def prepare(self, work: Work) -> CommandProgram:
        job = work.assignment.job
        cell = job.cell
        if cell.workload.command is None:
            raise SpecError(
                "engine `command` runs a `workload.command`", remedy='give `workload: {command: "./bench"}`'
            )
        argv = cell.workload.argv(values_of(job))
        identity = content_hash({"files": cell.workload.files_sha256})
        shapes = {
            "engine": self.name,
            "argv": argv,
            "files": identity,
            "printed": cell.printed and cell.printed.model_dump(),
        }
        files = {name: self.host.files.path(sha256) for name, sha256 in cell.workload.files_sha256.items()}
        return CommandProgram(content_hash(shapes), job, argv, files, identity)

    def reader(self, job: Job) -> CommandProgram:
        return CommandProgram("", job, [], {}, "")


def values_of(job: Job) -> dict[str, object]:
    """Return the values of the names that a command may have in braces."""
    cell, sampling = job.cell, job.sampling
    axes = {name: cell.options.get(name, axis.default) for name, axis in AXES.items()}
    own = {"samples": sampling.samples, "warmup": sampling.warmup, "seed": cell.workload.seed}
    return {**axes, **own, "backend": str(cell.backend), "precision": str(cell.precision)}


ENGINE = CommandEngine
