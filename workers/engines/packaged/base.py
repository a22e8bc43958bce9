"""The part of an engine from a package that all of them share; each adds its name, its lists and its driver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from orchestrator.model.base import content_hash
from orchestrator.model.device import Api, DeviceFacts, EngineAxis, EngineFacts, Precision
from orchestrator.model.errors import SetupError, SpecError, Unsupported
from orchestrator.model.experiment import MOST_SAMPLES, Sampling
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Outcome
from workers.devices.install import file_sha256
from workers.engines.engine import Engine, Host, Work
from workers.engines.models import Arrays
from workers.files.kept_folders import note_use, prune, write_whole

from .environment import Environment, normal
from .program import DrivenProgram, VerifiedProgram

DRIVE = Path(__file__).with_name("drive.py")
ROOT = Path(__file__).resolve().parents[3]
"""The folder of the farm's own packages, which a converter in an engine's Python may import."""
VERSION = "version"
"""The axis of the versions that are installed beside each other."""
KEPT, SAID = 32, 600
"""Prepared programs that are kept on the host's disk; characters of a converter's words."""
CONVERT_S, IN_USE_S = 600, 3600.0
"""The time that a converter has, and for which a prepared program may still wait for its device."""


class PackagedEngine(Engine):
    takes: ClassVar[tuple[str, ...]] = ("network", "onnx")
    apis: ClassVar[tuple[Api, ...]] = (Api.CPU,)
    precisions: ClassVar[tuple[Precision, ...]] = (Precision.FP32,)
    package: ClassVar[str]
    """The package among those of `requirements.txt` whose version is the engine's."""
    reads: ClassVar[tuple[str, ...]] = ("model.onnx",)
    """The files of a model by the names that the driver knows; a user's own are told by the ends of their names."""
    index: ClassVar[str] = ""
    """A further index of packages, asked where pip finds them nowhere else."""
    doubts: ClassVar[Mapping[str, str]] = {
        "remark": "the engine says so itself: read the time with it",
    }
    causes: ClassVar[Mapping[str, Outcome]] = {"killed": Outcome.KILLED, "wrong_output": Outcome.INVALID}

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        folder = Path(str(sys.modules[type(self).__module__].__file__)).parent
        self.driver = folder / "driver.py"
        self.environment = Environment(self.name, folder / "requirements.txt", host.state / "engines", self.index)
        self._folder = host.state / "cache" / "packaged"

    def lacks(self, device: DeviceFacts) -> str:
        if device.kind == "phone" and not device.profile:
            return "its packages are for the farm's own machines, not for phones"
        install = f"install it on its host: `farm engines install {self.environment.engine}`"
        return "" if self.environment.is_ready else install

    @property
    def version(self) -> str:
        """Return the version that runs, where a cell asks for no other."""
        return self.environment.packages[self.package]

    def facts(self, device: DeviceFacts) -> EngineFacts:
        """The same, with its versions as an axis."""
        words = (self.version, *self.environment.versions)
        help_ = f"the version that runs: `farm engines install {self.name}==VERSION` adds one"
        axis = EngineAxis(name=VERSION, help=help_, default=self.version, words=words)
        return super().facts(device).model_copy(update={"axes": (*self.axes, axis)})

    def version_of(self, wheel: Path) -> str:
        """Return the version of a wheel of the engine's own package, by its name. Raises SetupError."""
        package, version, *rest = (*wheel.name.split("-"), "", "")
        if not wheel.is_file() or wheel.suffix != ".whl" or normal(package) != normal(self.package) or len(rest) < 4:
            raise SetupError(f"{wheel} is no wheel of {self.package}", remedy=f"name a {self.package}-VERSION-*.whl")
        if version == self.version:
            raise SetupError(f"{wheel.name} has the version that ships", remedy=f"build it as {version}+mine")
        return version

    def install(self, version: str, wheel: Path | None = None) -> None:
        """Install a version of it on this machine; a wheel that somebody built as that version. Raises SetupError."""
        if version == self.version:
            self.environment.install()
            return
        other = self.environment.resolve(self.package, version, wheel)
        other.install(*(("--find-links", str(wheel.parent.absolute())) if wheel else ()))

    def at(self, cell: Cell) -> PackagedEngine:
        """Return the same with the version that a cell asks for, which may not be installed."""
        version = str(cell.options.get(f"{self.name}.{VERSION}", self.version))
        if version == self.version:
            return self
        other = copy(self)
        other.environment = self.environment.beside(version)
        return other

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:  # noqa: ARG002
        """Return the model's files by the names that the driver knows, what it makes in `folder`; `model`: in ONNX."""
        return {"model.onnx": model}

    def convert(self, program: Path, options: Sequence[str], folder: Path, made: Sequence[Path]) -> None:
        """Run a converter, a program or a script, in a folder, in which it is to make files; of other programs it finds
        those of the engine's environment alone. Raises Unsupported."""
        with program.open("rb") as file:  # a script names its Python by the folder of when it was installed
            first = [str(self.environment.python)] if file.read(2) == b"#!" or program.suffix == ".py" else []
        argv = [*first, str(program), *options]
        alone = {**os.environ, "PATH": str(self.environment.python.parent)}  # MNN's calls pip, whosever that is
        try:
            done = subprocess.run(
                argv, cwd=folder, env=alone, capture_output=True, text=True, check=False, timeout=CONVERT_S
            )
            said = "" if done.returncode == 0 else _last_words(done.stderr + done.stdout)
        except subprocess.TimeoutExpired:
            said = f"it was not done after {CONVERT_S} s"
        if said or not all(path.is_file() for path in made):
            raise Unsupported(
                f"{program.name} makes no model for engine {self.name} of it: {said or 'its file is not there'}",
                remedy=f"leave engine {self.name} out for this model",
            )

    def prepare(self, work: Work) -> DrivenProgram:
        return self.at(work.assignment.job.cell)._prepared(work)

    def _prepared(self, work: Work) -> DrivenProgram:
        job = work.assignment.job
        cell, workload = job.cell, job.cell.workload
        serial = work.member.facts.serial
        is_stream = workload.dataset is None and cell.frames > 1
        several = cell.text is not None and cell.text.batch > 1
        asked = {"workload.training": workload.training, "sampling.frames": is_stream, "workload.batch": several}
        for what in [name for name, is_asked in asked.items() if is_asked]:
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
            **({"files": cell.model_files} if cell.model_files else {}),
        }
        identity = content_hash(shapes)
        folder = self._folder / identity
        if not note_use(folder):
            work.report("compiling", 0, 0, None)
            write_whole(folder, partial(self._make, job, settings))
            prune(self._folder, KEPT, IN_USE_S)
        files = {path.name: path for path in sorted(folder.iterdir())}
        argv = [str(self.environment.python), "-I", "drive.py", _counts(job.sampling)]
        files["inputs.npz"], pushed = self._inputs(folder.name, job)
        return self.program(identity, job, argv, files, pushed)

    def program(self, identity: str, job: Job, argv: list[str], files: dict[str, Path], pushed: str) -> DrivenProgram:
        """Return the program of a block, all of whose files were made."""
        cell, models = job.cell, self.host.models
        given = cell.workload, cell.batch, job.examples
        return VerifiedProgram(
            identity, job, argv, files, pushed,
            engine=type(self),
            reference=models.reference(*given),
            rounded=partial(models.rounded, Precision(cell.precision), *given),
        )  # fmt: skip

    def _inputs(self, model: str, job: Job) -> tuple[Path, str]:
        """Return a file of a block's inputs, of a set its part; and the hash of it and of its model's folder."""
        part = job.examples
        identity = content_hash({"model": model, "examples": [part.start, part.stop] if part else []})
        folder = self._folder.with_name("packaged-inputs") / identity
        if not note_use(folder):
            write_whole(folder, partial(self._write_inputs, job))
            prune(folder.parent, KEPT, IN_USE_S)
        return folder / "inputs.npz", identity

    def _write_inputs(self, job: Job, folder: Path) -> None:
        arrays: dict[str, Any] = dict(self.inputs(job))
        np.savez(folder / "inputs.npz", **arrays)

    def inputs(self, job: Job) -> Arrays:
        """Return what a block's model is given, by name."""
        return self.host.models.inputs(job.cell.workload, job.cell.batch, job.examples)

    def _settings(self, job: Job, device: DeviceFacts) -> dict[str, Any]:
        """The driver's: on which device of the API it runs, and the values of the engine's axes."""
        cell = job.cell
        api = device.api(cell.backend)
        return {
            "threads": cell.options.get("threads", 0),
            **self.values(cell),
            "backend": str(cell.backend),
            "precision": str(cell.precision),
            "device": api.device_name if api else "",
            **({"set": True} if cell.workload.dataset else {}),
            **({"text": text._asdict()} if (text := cell.text) else {}),
        }

    def _own(self, files: Mapping[str, str], folder: Path) -> list[str]:
        """Copy a user's files by the names that the driver knows. Raises SpecError for what it does not read."""
        ends = {Path(name).suffix: name for name in self.reads}
        given = {Path(name).suffix: sha256 for name, sha256 in files.items()}
        if given.keys() != ends.keys() or len(files) != len(given):
            raise SpecError(
                f"engine.models: engine {self.name} reads {' and '.join(f'*{end}' for end in ends)}, "
                f"and was given {', '.join(sorted(files))}"
            )
        for end, sha256 in given.items():
            shutil.copyfile(self.host.files.path(sha256), folder / ends[end])
        return list(self.reads)

    def _make(self, job: Job, settings: dict[str, Any], made: Path) -> None:
        """Write everything that is pushed into a folder."""
        given = {**settings, **self.model(job, made), "own": bool(job.cell.model_files)}
        (made / "settings.json").write_text(json.dumps(given))
        shutil.copyfile(DRIVE, made / "drive.py")
        shutil.copyfile(self.driver, made / "driver.py")

    def model(self, job: Job, made: Path) -> dict[str, Any]:
        """Write the model's files into a folder; return what the driver is told of them: `files`, its names."""
        cell, models = job.cell, self.host.models
        graph = models.graph(cell.workload, cell.batch)
        if cell.model_files:
            names = self._own(cell.model_files, made)
        else:
            model = made / "model.onnx"
            if cell.workload.onnx is not None:
                shutil.copyfile(models.file(cell.workload.onnx, cell.workload.onnx_sha256), model)
            else:
                to_onnx(graph, model)
            names = [path.name for path in self.files(graph, model, made).values()]
            for path in made.iterdir():
                if path.name not in names:
                    path.unlink()
        ports = {"inputs": list(graph.inputs), "outputs": list(graph.outputs)}
        shapes = {name: graph.shapes[name] for names in ports.values() for name in names}
        return {**ports, "files": names, "shapes": shapes}


def _counts(sampling: Sampling) -> str:
    """Return how often `drive.py` runs the model: a word of its command line, since it shapes no program."""
    return json.dumps(
        {
            "samples": sampling.samples,
            "warmup": sampling.warmup,
            "warmup_stable": sampling.warmup_stable or 0.0,
            "load_ns": round(sampling.load * 1e9),
            "least_ns": round(sampling.load * 1e9 / MOST_SAMPLES),
        }
    )


def _last_words(said: str) -> str:
    """Return the end of what a converter printed; of an exception of Python its own line."""
    if "Traceback (most recent call last)" in said:
        said = said[said.rindex("Traceback (most recent call last)") :].strip().rpartition("\n")[2]
    return " ".join(said.split())[-SAID:] or "it failed"
