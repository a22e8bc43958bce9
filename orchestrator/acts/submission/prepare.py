"""Check an experiment and keep its files, so that it may be stored and run without the folder that it came from."""

from __future__ import annotations

import hashlib
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from orchestrator.acts.elf import MACHINES
from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.acts.engine_folder import read_folder
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.axes import COMMAND, ENGINE, MATRIX_AXES
from orchestrator.model.device import OURS
from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import Experiment, Matrix, Sides, Training, Workload
from orchestrator.model.experiment.engine_settings import EngineSettings
from orchestrator.model.experiment.language_model import DEFAULTS, Text

from .check import check_decoder, check_examples, check_labels, check_last_shard, check_network, checked_graph, shards
from .gather import Gathered, engines_files, file_of, gather, program_files
from .prompt import with_prompt
from .training_sets import kept

if TYPE_CHECKING:
    from kernels.ir.graph import Graph

RELATIVE = "paths are relative to the experiment file, or suite"


def prepare(experiment: Experiment, base: Path, artifacts: Artifacts, project: str = "") -> Experiment:
    """The experiment with its files, which lie relative to `base`, kept and named by their content. `project`: it has
    engines beside those of the farm.

    Raises SpecError for a name that nobody knows and for what no phone can meet, ModelFileError where a file cannot be
    used.
    """
    _check_names(experiment.matrix)
    for path, why in experiment.conditions.impossible():
        raise SpecError(f"{'.'.join(('conditions', *path))}: {why}")
    builds = EngineBuilds(artifacts, project)
    return _with_builds(_with_files(experiment, base, artifacts, builds), builds)


def _with_builds(experiment: Experiment, builds: EngineBuilds) -> Experiment:
    """The experiment with the builds of its engines, as its project has them now."""
    engines = {*experiment.matrix.options.get(ENGINE.name, ())}
    engines |= {side.axes.get(ENGINE.name) for _, side in experiment.sides or ()}
    if not (own := builds.offered(engines)):
        return experiment
    given = experiment.engine or EngineSettings()
    return experiment.model_copy(update={"engine": given.model_copy(update={"builds": own})})


def _check_names(matrix: Matrix) -> None:
    """A typing error is told now; whether an algorithm fits a network is the compiler's to say."""
    for name, values in matrix.options.items():
        if name not in MATRIX_AXES:  # an engine's own: its host says which there are
            continue
        known = dict.fromkeys(word for backend in MATRIX_AXES[name].names for word in MATRIX_AXES[name].known(backend))
        for asked in (str(value).split(" ")[0] for value in values if known):
            if asked not in known:
                near = get_close_matches(asked, known, n=1)
                hint = f"did you mean `{near[0]}`? " if near else ""
                raise SpecError(f"matrix.{name}: there is no `{asked}`; {hint}known: {', '.join(known)}")


def _with_files(experiment: Experiment, base: Path, artifacts: Artifacts, builds: EngineBuilds) -> Experiment:
    """The experiment with its files kept, and checked as a worker will read them."""
    if (own := experiment.strategy) is not None and own.file is not None:
        strategy = own.model_copy(update={"file_sha256": artifacts.put(file_of(base, own.file, "strategy.file"))})
        experiment = experiment.model_copy(update={"strategy": strategy})
    if experiment.engine and experiment.engine.models:
        update = {"models_sha256": engines_files(experiment.engine.models, base, artifacts)}
        experiment = experiment.model_copy(update={"engine": experiment.engine.model_copy(update=update)})
    found, axes = with_prompt(gather(experiment.workload, base, artifacts), experiment.matrix, base, artifacts)
    experiment = experiment.model_copy(update={"matrix": axes})
    workload = _checked(found, experiment.matrix, base, artifacts)
    others = [
        _checked(gather(each, base, artifacts), experiment.matrix, base, artifacts) for each in experiment.workloads
    ]
    experiment = experiment.model_copy(update={"workloads": tuple(others)})
    sides = _sides(experiment, base, found, artifacts, builds)
    if (dataset := workload.dataset) is None:
        return experiment.model_copy(update={"workload": workload, "sides": sides})
    check_labels(dataset, artifacts)
    check_last_shard(experiment.matrix, dataset)
    sampling = experiment.sampling.model_copy(update={"blocks": shards(dataset)})
    return experiment.model_copy(update={"workload": workload, "sampling": sampling, "sides": sides})


def _checked(found: Gathered, axes: Matrix, base: Path, artifacts: Artifacts) -> Workload:
    """Return the workload, which every model can do, with the size of its set. Raises SpecError, ModelFileError.

    A graph is made once for each model and batch, and let go when all is checked of it.
    """
    workload = found.workload
    if workload.language_model is not None:
        check_decoder(found, _longest(axes).capacity, artifacts, axes.batch or (1,))
        return workload
    dataset, training = workload.dataset, workload.training
    needs_graph = found.model or found.arrays or dataset or training or workload.parameters
    for name in axes.network or (workload.network,):
        check_network(name, "matrix.network" if axes.network else "workload.network")
        model = found.of_network(name)
        for batch in (axes.batch or (None,)) if needs_graph else ():
            graph = checked_graph(model, training.batch if training and batch is None else batch)
            if dataset is not None:
                dataset = dataset.model_copy(update={"size": check_examples(model, graph, batch)})
            if training is not None:
                training = _with_set(training, model.workload.label, graph, base, artifacts)
            del graph  # before the next is made: its weights are as large as the model
    return workload.model_copy(update={"dataset": dataset, "training": training})


def _longest(axes: Matrix) -> Text:
    """Return the text that needs the most room."""
    return Text(**{name: max(map(int, axes.options.get(name, (usual,)))) for name, usual in DEFAULTS.items()})


def _with_set(training: Training, label: str, graph: Graph, base: Path, artifacts: Artifacts) -> Training:
    """Keep a training's set, which the network can take. Raises ModelFileError, SetupError."""
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise ModelFileError(f"workload.training: {label} has several inputs or outputs, and needs one each")
    dims, classes = graph.shapes[graph.inputs[0]][1:], (1, *graph.shapes[graph.outputs[0]])[-1]
    return kept(training, base, dims, classes, artifacts)


def _sides(
    experiment: Experiment, base: Path, found: Gathered, artifacts: Artifacts, builds: EngineBuilds
) -> Sides | None:
    """Both sides with their models and agents kept. Raises ModelFileError, SpecError."""
    if experiment.sides is None:
        return None
    made = {}
    for name, side in experiment.sides:
        own: dict[str, object] = {}
        if "network" in side.axes:
            model = found.of_network(str(side.axes["network"]))
            check_network(model.workload.network, f"sides.{name}.axes.network")
            if model.workload.parameters:
                checked_graph(model, None)
        if side.onnx is not None:
            other = found.of_model(side.onnx, f"sides.{name}.onnx", base, artifacts)
            own["onnx_sha256"] = other.workload.onnx_sha256
            for batch in experiment.matrix.batch or (None,):
                checked_graph(other, batch)
        if side.agent is not None:
            own["agent_sha256"] = _agents(base / side.agent, f"sides.{name}.agent", artifacts)
        if side.engine:
            own["engine_sha256"] = {
                engine: _build(engine, folder, f"sides.{name}.engine.{engine}", experiment, base, artifacts, builds)
                for engine, folder in side.engine.items()
            }
        if side.driver is not None:
            file = file_of(base, side.driver, f"sides.{name}.driver").absolute()
            own |= {"driver": str(file), "driver_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        made[name] = side.model_copy(update=own)
    return Sides(**made)


def _build(
    engine: str, folder: str, field: str, experiment: Experiment, base: Path, artifacts: Artifacts,
    builds: EngineBuilds,
) -> dict[str, str]:  # fmt: skip
    """Keep an engine's other build: of a command name -> SHA-256, of an engine that a person brought abi -> SHA-256 of
    its build. Raises SpecError, ModelFileError."""
    brought = [builds.read(engine, abi, each) for abi, each in builds.named().get(engine, {}).items()]
    if programs := {PurePath(each.program).name for each in brought}:
        return _folders(engine, base / folder, field, sorted(programs), artifacts, builds)
    if engine != COMMAND:
        raise SpecError(
            f"{field}: the farm takes no builds of this engine",
            remedy=f"it does of `{COMMAND}`, `{OURS.name}`, and what `farm engines add` brought; of an engine from "
            f"packages `farm engines install {engine}==VERSION`, and give `axes: {{{engine}.version: VERSION}}`",
        )
    if experiment.workload.command is None:
        raise SpecError(f"{field}: the workload is no command", remedy="give `workload: {command: ..., files: ...}`")
    return program_files(folder, field, base, artifacts)


def _folders(
    engine: str, place: Path, field: str, programs: list[str], artifacts: Artifacts, builds: EngineBuilds
) -> dict[str, str]:
    """Keep the builds of an engine's folder, in which each ABI has one of its own: abi -> SHA-256."""
    found = {abi: place / abi for abi in sorted(MACHINES.values()) if (place / abi).is_dir()}
    if not found:
        raise ModelFileError(f"{field}: there is no folder of an ABI, such as arm64-v8a, in {place}", remedy=RELATIVE)
    try:
        return {abi: builds.put(read_folder(path, engine, abi, programs, "", artifacts)) for abi, path in found.items()}
    except ModelFileError as e:
        raise ModelFileError(f"{field}: {e}", remedy=e.remedy) from e


def _agents(folder: Path, field: str, artifacts: Artifacts) -> dict[str, str]:
    """The builds of an agent's folder by abi, kept."""
    found = {binary.parent.name: artifacts.put(binary) for binary in sorted(folder.glob("*/pocketfarm-agent"))}
    if not found:
        raise ModelFileError(
            f"{field}: there is no <abi>/pocketfarm-agent in {folder}",
            remedy=f"{RELATIVE}; `make agent` builds one",
        )
    return found
