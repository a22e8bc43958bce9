"""Check the files of an experiment as a worker will read them, and store them as artifacts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.errors import CompileError
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import ModelFileError, SpecError
from orchestrator.model.experiment import MOST_SHARDS, Dataset, Experiment, Matrix, Sides, Training, Workload

from .choices_file import read_choices
from .labels import read_labels
from .training_sets import kept

if TYPE_CHECKING:
    from kernels.frontend.input_file import Given
    from kernels.ir.graph import Graph

KEPT = "sha256:"
"""Before the hash of a model that the farm has already: what a training left."""


def with_files(experiment: Experiment, base: Path, artifacts: Artifacts) -> Experiment:
    """The experiment with its files checked, kept as artifacts, and named by their content."""
    if (own := experiment.strategy) is not None and own.file is not None:
        kept = own.model_copy(update={"file_sha256": artifacts.put(_file(base, own.file, "strategy.file"))})
        experiment = experiment.model_copy(update={"strategy": kept})
    workload = experiment.workload
    found: dict[str, str] = {}
    if workload.onnx is not None:
        kept_name = workload.onnx.removeprefix(KEPT)
        is_kept = kept_name != workload.onnx
        found["onnx_sha256"] = (
            artifacts.named(kept_name) if is_kept else _model(base, workload.onnx, "workload.onnx", artifacts)
        )
    if workload.input is not None:
        found["input_sha256"] = artifacts.put(_file(base, workload.input, "workload.input"))
    if workload.choices is not None:
        kept_choices = artifacts.put(_file(base, workload.choices, "workload.choices"))
        read_choices(artifacts.path(kept_choices), workload.choices)
        workload = workload.model_copy(update={"choices_sha256": kept_choices})
    given = _given(workload, base)
    models = [
        (workload.model_copy(update={"network": network}), batch)
        for network in experiment.matrix.network or (workload.network,)
        for batch in experiment.matrix.batch or (None,)
    ]
    named = "matrix.network" if experiment.matrix.network else "workload.network"
    for model, batch in models:
        _check(model, batch, found, given, artifacts, named)
    sides = _sides(experiment, base, found, given, artifacts)
    workload = workload.model_copy(update=found)
    if workload.training is not None:
        training = _training(models, found, workload.training, base, artifacts)
        workload = workload.model_copy(update={"training": training})
    if workload.dataset is None:
        return experiment.model_copy(update={"workload": workload, "sides": sides})
    dataset = _with_its_files(workload.dataset, base, artifacts)
    stored = artifacts.path(str(dataset.inputs_sha256))
    sizes = {_check_examples(model, batch, found, given, dataset, stored, artifacts) for model, batch in models}
    dataset = dataset.model_copy(update={"size": sizes.pop()})
    _check_labels(dataset, artifacts)
    _check_last_shard(experiment.matrix, dataset)
    sampling = experiment.sampling.model_copy(update={"blocks": _shards(dataset)})
    workload = workload.model_copy(update={"dataset": dataset})
    return experiment.model_copy(update={"workload": workload, "sampling": sampling})


def _training(
    models: Sequence[tuple[Workload, int | None]],
    found: dict[str, str],
    training: Training,
    base: Path,
    artifacts: Artifacts,
) -> Training:
    """With its set kept, which every network can take. Raises ModelFileError, SetupError."""
    from kernels.frontend.load import load_workload

    onnx = artifacts.path(found["onnx_sha256"]) if found else None
    for model, batch in models:
        graph = load_workload(
            network=model.network, onnx=onnx, seed=None, batch=batch or training.batch, sizes=model.every_size
        )
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            raise ModelFileError(f"workload.training: {model.label} has several inputs or outputs, and needs one each")
        dims, classes = graph.shapes[graph.inputs[0]][1:], (1, *graph.shapes[graph.outputs[0]])[-1]
        training = kept(training, base, dims, classes, artifacts)
    return training


def _given(workload: Workload, base: Path) -> Given:
    """The sizes that an ONNX file may leave open, as the workload's input or examples have them."""
    from kernels.frontend.examples import given_by
    from kernels.frontend.input_file import NOTHING_GIVEN, Given, read_arrays

    dataset, name = workload.dataset, workload.input
    if dataset is None and name is None:
        return NOTHING_GIVEN
    try:
        if dataset is not None:
            return given_by(_file(base, dataset.inputs, "workload.dataset.inputs"), dataset.inputs)
        return Given.of(read_arrays(_file(base, str(name), "workload.input")), str(name))
    except CompileError as e:
        raise ModelFileError(f"workload{'.dataset' if dataset else ''}: {e}".replace(f"{base}/", "")) from e


def _sides(
    experiment: Experiment, base: Path, found: dict[str, str], given: Given, artifacts: Artifacts
) -> Sides | None:
    """Both sides with their models and agents kept. Raises ModelFileError, SpecError."""
    if experiment.sides is None:
        return None
    made = {}
    for name, side in experiment.sides:
        own: dict[str, object] = {}
        if "network" in side.axes:
            networked = experiment.workload.model_copy(update={"network": side.axes["network"]})
            _check(networked, None, {}, given, artifacts, f"sides.{name}.axes.network")
        if side.onnx is not None:
            own["onnx_sha256"] = sha256 = _model(base, side.onnx, f"sides.{name}.onnx", artifacts)
            model = experiment.workload.model_copy(update={"network": None, "onnx": side.onnx})
            for batch in experiment.matrix.batch or (None,):
                _check(model, batch, {**found, "onnx_sha256": sha256}, given, artifacts, "")
        if side.agent is not None:
            own["agent_sha256"] = _agents(base / side.agent, f"sides.{name}.agent", artifacts)
        if side.driver is not None:
            file = _file(base, side.driver, f"sides.{name}.driver").absolute()
            own |= {"driver": str(file), "driver_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        made[name] = side.model_copy(update=own)
    return Sides(**made)


def _agents(folder: Path, field: str, artifacts: Artifacts) -> dict[str, str]:
    """The builds of an agent's folder by abi, kept."""
    found = {binary.parent.name: artifacts.put(binary) for binary in sorted(folder.glob("*/pocketfarm-agent"))}
    if not found:
        raise ModelFileError(
            f"{field}: there is no <abi>/pocketfarm-agent in {folder}",
            remedy="paths are relative to the experiment file, or suite; `make agent` builds one",
        )
    return found


def _shards(dataset: Dataset) -> int:
    """As many blocks. Raises SpecError for too many."""
    if dataset.shards <= MOST_SHARDS:
        return dataset.shards
    least = -(-(dataset.size or 0) // MOST_SHARDS)
    raise SpecError(
        f"workload.dataset: {dataset.size} examples in shards of {dataset.shard} are {dataset.shards} blocks",
        remedy=f"an experiment has at most {MOST_SHARDS} blocks: give `shard: {least}` or more",
    )


def _check_last_shard(axes: Matrix, dataset: Dataset) -> None:
    """A pipeline overlaps inferences: one alone has nothing to overlap with, and the agent refuses it."""
    last = len(dataset.examples(dataset.shards - 1))
    piped = set(axes.pipeline or ()) - {"none"}
    if piped and any(last // batch < 2 for batch in axes.batch or (1,)):
        raise SpecError(
            f"workload.dataset: the last shard has {last} of {dataset.size} examples, too few for a pipeline",
            remedy="give another `shard`, so that the last one has two inferences at least",
        )


def _with_its_files(dataset: Dataset, base: Path, artifacts: Artifacts) -> Dataset:
    inputs = artifacts.put(_file(base, dataset.inputs, "workload.dataset.inputs"))
    labels = artifacts.put(_file(base, dataset.labels, "workload.dataset.labels")) if dataset.labels else None
    return dataset.model_copy(update={"inputs_sha256": inputs, "labels_sha256": labels})


def _check_examples(
    workload: Workload,
    batch: int | None,
    found: dict[str, str],
    given: Given,
    dataset: Dataset,
    stored: Path,
    artifacts: Artifacts,
) -> int:
    """Number of examples of a kept set that a network can take. Raises ModelFileError."""
    from kernels.frontend.examples import Examples
    from kernels.frontend.load import load_workload

    onnx = artifacts.path(found["onnx_sha256"]) if found else None
    try:
        graph = load_workload(
            network=workload.network,
            onnx=onnx,
            seed=workload.seed,
            batch=batch,
            sizes=workload.every_size,
            given=given,
        )
        size = len(Examples(graph, stored, mean=dataset.mean, scale=dataset.scale))
    except CompileError as e:
        message = str(e)
        for stored_name, name in {str(stored): dataset.inputs, found.get("onnx_sha256", ""): workload.label}.items():
            message = message.replace(stored_name, name) if stored_name else message
        raise ModelFileError(f"workload.dataset: {message}") from e
    _check_predictions(workload.label, graph, batch)
    return size


def _check_predictions(model: str, graph: Graph, batch: int | None) -> None:
    """Whether a network's result holds the scores of as many examples as a job counts for an inference."""
    from kernels.frontend.examples import examples_in

    together = examples_in(graph)
    if together != (batch or 1):
        raise ModelFileError(
            f"workload.dataset: {model} takes {together} examples in one inference",
            remedy=f"give `matrix: {{batch: [{together}]}}`, and a `shard` that is a multiple of it",
        )
    if len(graph.outputs) != 1:
        raise ModelFileError(
            f"workload.dataset: {model} has {len(graph.outputs)} outputs ({', '.join(graph.outputs)}); predictions are "
            "read from one",
            remedy="export the model with its scores as the only output",
        )
    scores = prod(graph.shapes[graph.outputs[0]])
    if scores % together or scores < 2 * together:
        raise ModelFileError(
            f"workload.dataset: {model} gives {scores} numbers for {together} examples: these are no scores of classes",
            remedy="a set goes with a network that gives two scores or more for each example",
        )


def _check_labels(dataset: Dataset, artifacts: Artifacts) -> None:
    if dataset.labels is None or dataset.labels_sha256 is None:
        return
    stored = artifacts.path(dataset.labels_sha256)
    try:
        labels = read_labels(stored)
    except ModelFileError as e:
        raise ModelFileError(f"workload.dataset: {e}".replace(str(stored), dataset.labels)) from e
    if len(labels) != dataset.size:
        raise ModelFileError(
            f"workload.dataset: {dataset.labels} has {len(labels)} labels, {dataset.inputs} {dataset.size} examples"
        )


def _file(base: Path, name: str, field: str) -> Path:
    path = base / name
    if not path.is_file():
        raise ModelFileError(f"{field}: there is no file {path}", remedy="paths are relative to the experiment file")
    return path


def _model(base: Path, name: str, field: str, artifacts: Artifacts) -> str:
    """Keep a model as one file, with its external data inside."""
    from kernels.frontend.one_file import one_file

    path = _file(base, name, field)
    try:
        content = one_file(path)
    except CompileError as e:
        raise ModelFileError(f"workload: {e}".replace(str(path), name, 1)) from e
    return artifacts.put(path) if content is None else artifacts.put_bytes(content)


def _check(
    workload: Workload, batch: int | None, found: dict[str, str], given: Given, artifacts: Artifacts, named: str
) -> None:
    """Import the kept model and read the kept input as a worker will, so that a bad file is refused here and now."""
    from kernels.frontend.load import load_inputs, load_workload
    from kernels.frontend.networks import BUILT_IN, known_words

    if workload.network is not None and workload.network not in BUILT_IN:
        near = get_close_matches(workload.network, BUILT_IN, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise SpecError(f"{named}: no built-in network is called `{workload.network}`; {hint}known: {known_words()}")
    if workload.parameters:
        try:
            load_workload(network=workload.network, onnx=None, seed=None, batch=batch, sizes=workload.parameters)
        except CompileError as e:
            raise SpecError(f"workload.parameters: {e}") from e
    if not found:
        return
    stored = {name: artifacts.path(sha256) for name, sha256 in found.items()}
    try:
        graph = load_workload(
            network=workload.network,
            onnx=stored.get("onnx_sha256"),
            seed=workload.seed,
            batch=batch,
            sizes=workload.every_size,
            given=given,
        )
        if "input_sha256" in stored:
            load_inputs(graph, stored["input_sha256"])
    except CompileError as e:
        message = str(e)
        for field, path in stored.items():
            name = str(getattr(workload, field.removesuffix("_sha256")))
            message = message.replace(str(path), name).replace(path.name, name)
        raise ModelFileError(f"workload: {message}") from e
