"""Keep the files of a workload and read each of them once; what was read is handed on to whatever checks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.errors import CompileError
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Workload
from orchestrator.model.experiment.workload import why_no_files

from .choices_file import read_choices

if TYPE_CHECKING:
    from kernels.frontend.input_file import Arrays, Given
    from kernels.frontend.onnx.reading.model_file import ModelFile
    from kernels.ir.graph import Graph

KEPT = "sha256:"
"""The word before the hash of a model that the farm has already: what a training left."""


@dataclass(frozen=True)
class Gathered:
    """A workload, its files kept and named by their content, with what was read of them."""

    workload: Workload
    given: Given
    """The sizes that an ONNX file may leave open, as the workload's input or examples have them."""
    model: ModelFile | None = None
    arrays: Arrays | None = None
    """The arrays of the input."""
    examples: Path | None = None
    """The kept set, which stays on disk."""

    def graph(self, batch: int | None) -> Graph:
        """Import the model, or build the network with weights that are zero. Raises CompileError."""
        from kernels.frontend.load import load_workload

        workload, sizes = self.workload, self.workload.every_size
        if self.model is None:
            return load_workload(network=workload.network, onnx=None, seed=None, batch=batch, sizes=sizes)
        from kernels.frontend.onnx import import_model

        return import_model(self.model, batch=batch, sizes=sizes, given=self.given)

    def of_network(self, name: str | None) -> Gathered:
        return replace(self, workload=self.workload.model_copy(update={"network": name}))

    def of_model(self, name: str, field: str, base: Path, artifacts: Artifacts) -> Gathered:
        """The same with a further model kept and read. Raises ModelFileError."""
        sha256, model = _model(name, field, base, artifacts)
        named = {"network": None, "onnx": name, "onnx_sha256": sha256}
        return replace(self, workload=self.workload.model_copy(update=named), model=model)

    def of_decoder(self, name: str, base: Path, artifacts: Artifacts) -> Gathered:
        """The same with a language model kept; read, if it is no GGUF file. Raises ModelFileError."""
        from kernels.frontend.gguf import is_gguf
        from kernels.frontend.load import decoder_path

        field, model, own = "workload.language_model", None, base / name
        kept = artifacts.named(name.removeprefix(KEPT)) if name.startswith(KEPT) else ""
        with told(field, own, name):
            path = artifacts.path(kept) if kept else decoder_path(own)
        if is_gguf(path):
            sha256 = kept or artifacts.put(file_of(base, name, field))
        else:
            sha256, model = _model(name if kept or path == own else str(path), field, base, artifacts)
        size = artifacts.path(sha256).stat().st_size
        update = {"language_model_sha256": sha256, "language_model_bytes": size}
        return replace(self, workload=self.workload.model_copy(update=update), model=model)


def gather(workload: Workload, base: Path, artifacts: Artifacts) -> Gathered:
    """Keep and read the files that lie relative to `base`. Raises ModelFileError."""
    from kernels.frontend.examples import given_by
    from kernels.frontend.input_file import NOTHING_GIVEN, Given, read_arrays

    def kept(name: str, field: str) -> str:
        return artifacts.put(file_of(base, name, f"workload.{field}"))

    found, update = Gathered(workload, NOTHING_GIVEN), dict[str, object]()
    if workload.onnx is not None:
        found = found.of_model(workload.onnx, "workload.onnx", base, artifacts)
    if workload.language_model is not None:
        found = found.of_decoder(workload.language_model, base, artifacts)
    if workload.choices is not None:
        update["choices_sha256"] = sha256 = kept(workload.choices, "choices")
        read_choices(artifacts.path(sha256), workload.choices)
    if workload.input is not None:
        update["input_sha256"] = sha256 = kept(workload.input, "input")
        with told("workload", path := artifacts.path(sha256), workload.input):
            arrays = read_arrays(path)
        found = replace(found, arrays=arrays, given=Given.of(arrays, workload.input))
    if workload.files is not None:
        update["files_sha256"] = program_files(workload.files, "workload.files", base, artifacts)
    if workload.model is not None:
        update["files_sha256"] = program_files(workload.model, "workload.model", base, artifacts)
    if (dataset := workload.dataset) is not None:
        inputs = kept(dataset.inputs, "dataset.inputs")
        labels = kept(dataset.labels, "dataset.labels") if dataset.labels else None
        update["dataset"] = dataset.model_copy(update={"inputs_sha256": inputs, "labels_sha256": labels})
        with told("workload.dataset", path := artifacts.path(inputs), dataset.inputs):
            found = replace(found, examples=path, given=given_by(path, dataset.inputs))
    return replace(found, workload=found.workload.model_copy(update=update))


@contextmanager
def told(field: str, path: Path, name: str) -> Iterator[None]:
    """Raise the compiler's errors as ModelFileError, in which a kept file has the name that the experiment gives it."""
    try:
        yield
    except CompileError as e:
        raise ModelFileError(f"{field}: {e}".replace(f"{path}: ", f"{name}: ")) from e


def file_of(base: Path, name: str, field: str) -> Path:
    """The file of this name. Raises ModelFileError where there is none."""
    path = base / name
    if not path.is_file():
        raise ModelFileError(f"{field}: there is no file {path}", remedy="paths are relative to the experiment file")
    return path


def engines_files(models: Mapping[str, Sequence[str]], base: Path, artifacts: Artifacts) -> dict[str, dict[str, str]]:
    """Keep the files of a model for engines: engine -> name -> SHA-256. Raises ModelFileError."""
    return {
        engine: {Path(name).name: artifacts.put(file_of(base, name, f"engine.models.{engine}")) for name in names}
        for engine, names in models.items()
    }


def program_files(name: str, field: str, base: Path, artifacts: Artifacts) -> dict[str, str]:
    """Keep the files of a command, or of an engine's model, which `field` names: name below the folder -> SHA-256.
    Raises ModelFileError."""
    place = base / name
    if place.is_file():
        place, found = place.parent, [place]
    else:
        found = sorted(path for path in place.rglob("*") if path.is_file())
    named = {path.relative_to(place).as_posix(): path for path in found}
    if why := why_no_files(named, place):
        raise ModelFileError(
            f"{field}: {why}", remedy="paths are relative to the experiment file; rename what no phone takes"
        )
    return {name: artifacts.put(path) for name, path in named.items()}


def _model(name: str, field: str, base: Path, artifacts: Artifacts) -> tuple[str, ModelFile]:
    """Keep a model as one file, with its external data inside; and read it as it was kept."""
    from kernels.frontend.one_file import one_file
    from kernels.frontend.onnx import read_model

    if (start := name.removeprefix(KEPT)) != name:
        sha256, path = artifacts.named(start), None
    else:
        path = file_of(base, name, field)
        sha256 = artifacts.put(path)
    with told("workload", path or base, name):
        model = read_model(artifacts.path(sha256), Path(name))
        content = one_file(model, path) if path else None
    return sha256 if content is None else artifacts.put_bytes(content), model
