"""A job says words to hosts, each known since a protocol: the table of these words is whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from kernels.frontend.networks import NETWORKS
from kernels.ir.fusion import FUSIONS
from kernels.ir.placement import KINDS
from orchestrator.model.axes import AXES
from orchestrator.model.experiment import Experiment, Matrix, Workload
from orchestrator.model.experiment.engine_settings import EngineSettings
from orchestrator.model.experiment.sides import Sides
from orchestrator.model.job import Job
from orchestrator.model.live.since import OLDEST_PROTOCOL, PROTOCOL, SINCE, has

from . import make

OLDEST = {
    "Cell": "agent backend driver driver_sha256 options precision printed workload",
    "Conditions": "affinity airplane_mode background_stopped battery_percent battery_saver_off battery_temp_max "
    "battery_temp_min bluetooth_off clocks free_storage screen_dimmed settled skin_temp_max supply sync_off "
    "thermal_status_max",
    "Dataset": "inputs inputs_sha256 labels labels_sha256 mean scale shard size",
    "Job": "block candidates cell conditions experiment_id measure priority role sampling",
    "Measure": "power_period power_source quantities",
    "Printed": "column path regex stream unit",
    "Range": "max min",
    "Sampling": "blocks canary deadline frames idle load max_blocks mode order samples target_interval warmup "
    "warmup_stable",
    "Training": "batch checkpoint dataset epochs learning_rate loss momentum pretraining schedule seed steps",
    "TrainingSet": "held_out inputs inputs_sha256 labels labels_sha256 named scale size",
    "Workload": "choices choices_sha256 command dataset files files_sha256 input input_sha256 network onnx "
    "onnx_sha256 parameters seed sizes training wait",
    "Axes": "affinity algorithm batch choices concat engine frames fuse granularity in_place largest_object "
    "launch memory_budget objects on_cpu order pin_threads pipeline pixels pools product setup side swap thread_life "
    "threads transfers transpose tuned updates workspace workspace_split",
}
"""The fields of a job and the axes that hosts of `OLDEST_PROTOCOL` know."""
OLDEST_VALUES = {
    "Axes.affinity": "any big little",
    "Axes.algorithm": "auto depthwise direct dot dot_uneven im2col implicit_gemm matrix_units pointwise scalar "
    "sequential window winograd winograd_2x2 winograd_4x4 winograd_large",
    "Axes.choices": "best none worst",
    "Axes.concat": "auto join split",
    "Axes.fuse": "activation bias concat depthwise elementwise normalisation padding residual rows squeeze",
    "Axes.launch": "auto recorded single",
    "Axes.objects": "kept per_frame",
    "Axes.on_cpu": "convolutions gemm im2col joins normalisation pooling products softmax",
    "Axes.order": "auto memory waves",
    "Axes.pipeline": "across balanced by_kind none",
    "Axes.pools": "auto objects offsets",
    "Axes.product": "auto blocked matrix_units panels registers split_depth tiled warpgroups",
    "Axes.setup": "cached cold warm",
    "Axes.side": "baseline candidate",
    "Axes.swap": "auto never",
    "Axes.thread_life": "in_order kept per_call",
    "Axes.transfers": "auto copy map map_all",
    "Axes.transpose": "auto naive tiled",
    "Axes.updates": "device host",
    "Axes.workspace_split": "channels rows",
    "Cell.backend": "cpu opencl vulkan",
    "Cell.precision": "fp16 fp16_arithmetic fp32 imprecise int8 relaxed",
    "Conditions.clocks": "default fixed_performance locked",
    "Conditions.supply": "any cut discharging",
    "Job.role": "canary work",
    "Measure.power_source": "auto gauge meter model nvml odpm perfetto rapl trace",
    "Measure.quantities": "latency layers memory power",
    "Printed.stream": "stderr stdout",
    "Printed.unit": "ms ns s us",
    "Sampling.mode": "cold steady sustained",
    "Sampling.order": "abba interleaved random",
    "Training.loss": "cross_entropy mean_squared_error",
    "Training.steps": "apart auto joined per_node",
    "TrainingSet.named": "digits",
    "Workload.network": "alexnet autoencoder_784 caffenet cifar10_quick classifier_784 googlenet inception_v3 lenet "
    "mobilenet_v1 mobilenet_v2 pynet pynet_full pynet_level_1 pynet_level_2 pynet_level_3 pynet_level_4 pynet_level_5 "
    "resnet18 resnet50 squeezenet_v1_0 squeezenet_v1_1 vgg16",
}
"""The values that these hosts know, of fields and axes that take some words alone; engines tell theirs themselves."""
LATER = {
    "Axes.fuse=branches": "matrix.fuse: branches",
    "Axes.product=one_row": "matrix.product: one_row",
    "Axes.product=packed": "matrix.product: packed",
    "Axes.product=packed_rows": "matrix.product: packed_rows",
    "Axes.context": "workload.language_model",
    "Axes.generate": "workload.language_model",
    "Axes.prompt": "workload.language_model",
    "Cell.build": "engine.builds",
    "Cell.model_files": "engine.models",
    "Conditions.stop_temp": "conditions.stop_temp",
    "Workload.language_model": "workload.language_model",
    "Workload.language_model_bytes": "workload.language_model",
    "Workload.language_model_sha256": "workload.language_model",
    "Workload.model": "workload.model",
    "Workload.prompt_sha256": "workload.language_model",
}
"""The others, with the word of an experiment that has them sent."""
SAY = "give its word a row in `SINCE` (a value in `VALUES`), with a protocol of its own, and one here in `LATER`"
NEW_MEANINGS = {"matrix.ENGINE.AXIS", "sides.engine", "workload.batch"}
"""Words that are told by fields and axes which older hosts know as something else."""


JOINED = {"affinity": ("any", "big", "little"), "engine": (), "fuse": FUSIONS, "on_cpu": KINDS}
"""The words of axes whose values are texts, some joined; engines are announced by their hosts."""
PARTS = {
    "Axes": "matrix", "Cell": "matrix", "Conditions": "conditions", "Measure": "measure", "Printed": "engine.result",
    "Sampling": "sampling", "Training": "workload.training", "TrainingSet": "workload.training.dataset",
    "Workload": "workload",
}  # fmt: skip
"""The parts of an experiment of which a job has the values; its role is the scheduler's."""
FULL = {
    "workload": {"network": "lenet", "training": {"dataset": {"named": "digits"}, "batch": 4, "epochs": 1}},
    "engine": {"result": {"unit": "ms", "column": "t"}},
}
"""An experiment's fields by which it has all parts."""


def test_a_host_gets_nothing_that_it_does_not_know() -> None:
    """An unknown field or value is refused, time and again; an unknown axis is ignored: figures of something else."""
    kept = {f"Workload.{name}" for name, field in Workload.model_fields.items() if field.exclude}
    sent = {f"{name}.{each}" for name, model in _models(Job).items() for each in model["properties"]} - kept
    sent |= {f"{place}={each}" for place, each in _values()} | {f"Axes.{name}" for name in AXES}
    known = {f"{name}.{each}" for name, fields in OLDEST.items() for each in fields.split()}
    known |= {f"{place}={each}" for place, values in OLDEST_VALUES.items() for each in values.split()}
    assert sent - known == LATER.keys(), SAY
    assert {*LATER.values(), *NEW_MEANINGS} == SINCE.keys(), SAY
    fitting = all(OLDEST_PROTOCOL < since <= PROTOCOL for since, _ in SINCE.values())
    assert fitting, "raise `PROTOCOL` to the newest row; a row of `OLDEST_PROTOCOL` says nothing more"


def test_an_experiment_says_any_value_that_it_has(seed: int) -> None:
    """The next new value may be of any axis or field: alone or among others, of a side, of a further workload."""
    chance = random.Random(seed)
    parts = {
        "workload": Workload.model_validate(FULL["workload"]),
        "engine": EngineSettings.model_validate(FULL["engine"]),
    }
    plain = make.experiment().model_copy(update=parts)
    told = [(place, value) for place, value in _values() if place not in ("Job.role", "Axes.side")]
    for place, value in chance.sample(told, 20):
        model, _, name = place.partition(".")
        path = f"{PARTS[model]}.{name}"
        others = {each for at, each in told if at == place} - {value}
        for said in _said(plain, path, value):
            usual = {each for each in others if has(plain, path, each)}
            assert has(said, path, value) and {each for each in others if has(said, path, each)} <= usual, path


def test_a_job_that_asks_for_nothing_new_has_no_new_field() -> None:
    job = make.job()
    parts = {"Cell": job.cell, "Conditions": job.conditions, "Workload": job.cell.workload}
    plain = {f"{name}.{each}" for name, part in parts.items() for each in part.model_dump()}
    assert not plain & LATER.keys(), "give a new field `exclude_if` at its default"


def _models(root: type[Job]) -> dict[str, dict[str, Any]]:
    """The models of a job's tree that were always there, by schema; a further one is within a new field."""
    schema = root.model_json_schema()
    found = {**schema["$defs"], root.__name__: schema}
    return {name: found[name] for name in OLDEST if name in found}


@cache
def _values() -> list[tuple[str, str]]:
    """Each value that a job may have of a field or an axis that takes some words alone, with the place."""
    words = {"Workload.network": set(NETWORKS)}
    for name, axis in AXES.items():
        named = axis.words or {each for backend in axis.names for each in axis.known(backend)}
        free = axis.type is str and not named and JOINED[name]
        words[f"Axes.{name}"] = {*(named or free or ())}
    defs = Job.model_json_schema()["$defs"]
    for name, model in _models(Job).items():
        for field, schema in model["properties"].items():
            words.setdefault(f"{name}.{field}", set()).update(_enumerated(schema, defs))
    return sorted((place, value) for place, values in words.items() for value in values)


def _enumerated(schema: object, defs: dict[str, Any]) -> Iterator[str]:
    """The words of a field's schema, at any depth; not those of the fields of a model, which are in its own."""
    if isinstance(schema, list):
        for each in schema:
            yield from _enumerated(each, defs)
    elif isinstance(schema, dict):
        named = defs.get(schema.get("$ref", "").rpartition("/")[2], {})
        words = named.get("enum") or schema.get("enum") or [schema.get("const")]
        yield from (each for each in words if isinstance(each, str))
        for each in schema.values():
            yield from _enumerated(each, defs)


def _with(model: Any, path: list[str], value: str) -> Any:
    """The same with a value at a path, unchecked: beside which others it may stand is another question."""
    name, *rest = path
    here = getattr(model, name)
    if not rest and isinstance(model, Matrix):
        return Matrix.model_validate({name: value})
    found = _with(here, rest, value) if rest else (value,) if isinstance(here, tuple) else value
    assert name in type(model).model_fields
    return model.model_copy(update={name: found})


def _said(plain: Experiment, path: str, value: str) -> Iterator[Experiment]:
    """An experiment that says a value, in each way that its place has."""
    root, _, rest = path.partition(".")
    said = _with(plain, path.split("."), value)
    yield said
    if root == "workload":
        yield plain.model_copy(update={"workloads": (plain.workload, said.workload)})
    if root == "matrix":
        side = Sides.model_validate({"candidate": {"axes": {rest: value}}})
        yield plain.model_copy(update={"sides": side})
