"""The part of an engine from a package that all of them share; each adds its name, its lists and its driver."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from orchestrator.model.axes import AXES, axes_of
from orchestrator.model.base import content_hash
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import Sampling
from orchestrator.model.job import Job
from orchestrator.model.record import Outcome
from workers.devices.install import file_sha256
from workers.engines.engine import Engine, Host, Work
from workers.files.kept_folders import note_use, prune, write_whole

from .environment import Environment
from .program import DrivenProgram

DRIVE = Path(__file__).with_name("drive.py")
KEPT, SAID = 32, 600
"""Prepared programs that are kept on the host's disk; characters of a converter's words."""
CONVERT_S, IN_USE_S = 600, 3600.0
"""The time that a converter has, and for which a prepared program may still wait for its device."""


class PackagedEngine(Engine):
    takes = ("network", "onnx")
    apis: ClassVar[tuple[Api, ...]] = (Api.CPU,)
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32,)
    doubts: ClassVar[Mapping[str, str]] = {
        "remark": "the engine says so itself: read the time with it",
    }
    causes: ClassVar[Mapping[str, Outcome]] = {"killed": Outcome.KILLED, "wrong_output": Outcome.INVALID}

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        folder = Path(str(sys.modules[type(self).__module__].__file__)).parent
        self.driver = folder / "driver.py"
        self.environment = Environment(self.name, folder / "requirements.txt", host.state / "engines")
        self._folder = host.state / "cache" / "packaged"

    def lacks(self, device: DeviceFacts) -> str:
        if device.kind == "phone" and not device.profile:
            return "its packages are for the farm's own machines, not for phones"
        return "" if self.environment.is_ready else f"install it on its host: `farm engines install {self.name}`"

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:  # noqa: ARG002
        """Return the model's files by the names that the driver knows, what it makes in `folder`; `model`: in ONNX."""
        return {"model.onnx": model}

    def convert(self, program: Path, options: Sequence[str], folder: Path, made: Sequence[Path]) -> None:
        """Run a converter, a program or a script, in a folder, in which it is to make files. Raises Unsupported."""
        with program.open("rb") as file:  # a script names its Python by the folder of when it was installed
            first = [str(self.environment.python)] if file.read(2) == b"#!" or program.suffix == ".py" else []
        argv = [*first, str(program), *options]
        try:
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=CONVERT_S)
            said = "" if done.returncode == 0 else " ".join((done.stderr + done.stdout).split())[-SAID:] or "it failed"
        except subprocess.TimeoutExpired:
            said = f"it was not done after {CONVERT_S} s"
        if said or not all(path.is_file() for path in made):
            raise Unsupported(
                f"{program.name} makes no model for engine {self.name} of it: {said or 'its file is not there'}",
                remedy=f"leave engine {self.name} out for this model",
            )

    def prepare(self, work: Work) -> DrivenProgram:
        job = work.assignment.job
        cell, workload = job.cell, job.cell.workload
        serial = work.member.facts.serial
        asked = {"workload.dataset": workload.dataset, "workload.training": workload.training}
        for what in [name for name, is_asked in (asked | {"sampling.frames": cell.frames > 1}).items() if is_asked]:
            raise Unsupported(f"engine {self.name} runs no `{what}`", device=serial, remedy="our own does")
        if why := self.lacks(work.member.facts):
            raise Unsupported(f"engine {self.name}: {why}", device=serial)
        shapes = {
            "engine": self.name,
            "environment": self.environment.identity,
            "programs": [file_sha256(self.driver), file_sha256(DRIVE)],
            "workload": workload.model_dump(mode="json"),
            "batch": cell.batch,
            "settings": (settings := self._settings(job, work.member.facts)),
        }
        identity = content_hash(shapes)
        folder = self._folder / identity
        if not note_use(folder):
            work.report("compiling", 0, 0, None)
            write_whole(folder, partial(self._make, job, settings))
            prune(self._folder, KEPT, IN_USE_S)
        files = {path.name: path for path in sorted(folder.iterdir())}
        models, argv = self.host.models, [str(self.environment.python), "-I", "drive.py", _counts(job.sampling)]
        return DrivenProgram(
            identity, job, argv, files, identity,
            engine=type(self),
            reference=models.reference(workload, cell.batch),
            rounded=partial(models.rounded, Precision(cell.precision), workload, cell.batch),
        )  # fmt: skip

    def _settings(self, job: Job, device: DeviceFacts) -> dict[str, Any]:
        """The driver's: on which device of the API it runs, and the values of the engine's axes."""
        cell = job.cell
        api = device.api(cell.backend)
        values = {name: cell.options.get(name, AXES[name].default) for name in sorted(axes_of(self.name))}
        return {
            "threads": 0,
            **values,
            "backend": str(cell.backend),
            "precision": str(cell.precision),
            "device": api.device_name if api else "",
        }

    def _make(self, job: Job, settings: dict[str, Any], made: Path) -> None:
        """Write everything that is pushed into a folder."""
        cell, models = job.cell, self.host.models
        graph = models.graph(cell.workload, cell.batch)
        model = made / "model.onnx"
        if cell.workload.onnx is not None:
            shutil.copyfile(models.file(cell.workload.onnx, cell.workload.onnx_sha256), model)
        else:
            to_onnx(graph, model)
        names = [path.name for path in self.files(graph, model, made).values()]
        for path in made.iterdir():
            if path.name not in names:
                path.unlink()
        inputs: dict[str, Any] = dict(models.inputs(cell.workload, cell.batch))
        np.savez(made / "inputs.npz", **inputs)
        given = {**settings, "files": names, "inputs": list(graph.inputs), "outputs": list(graph.outputs)}
        (made / "settings.json").write_text(json.dumps(given))
        shutil.copyfile(DRIVE, made / "drive.py")
        shutil.copyfile(self.driver, made / "driver.py")


def _counts(sampling: Sampling) -> str:
    """Return how often `drive.py` runs the model: a word of its command line, since it shapes no program."""
    return json.dumps(
        {
            "samples": sampling.samples,
            "warmup": sampling.warmup,
            "warmup_stable": sampling.warmup_stable or 0.0,
            "load_ns": round(sampling.load * 1e9),
        }
    )
