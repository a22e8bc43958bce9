"""A job says words to hosts, each known since a protocol: the table of these words is whole."""

from __future__ import annotations

from orchestrator.model.axes import AXES
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Job
from orchestrator.model.live.since import OLDEST_PROTOCOL, PROTOCOL, SINCE

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
    "Axes": "addition affinity algorithm batch choices concat engine frames fuse granularity in_place largest_object "
    "launch memory_budget objects on_cpu order pin_threads pipeline pixels pools product setup side swap thread_life "
    "threads transfers transpose tuned updates workspace workspace_split",
}
"""The fields of a job and the axes that hosts of `OLDEST_PROTOCOL` know."""
LATER = {
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
SAY = "give its word a row in `SINCE`, with a protocol of its own, and the field a row here in `LATER`"
NEW_MEANINGS = {"matrix.ENGINE.AXIS", "sides.engine", "workload.batch"}
"""Words that are told by fields and axes which older hosts know as something else."""


def test_a_host_gets_nothing_that_it_does_not_know() -> None:
    """An unknown field is refused, time and again; an unknown axis is ignored, and figures are of something else."""
    kept = {f"Workload.{name}" for name, field in Workload.model_fields.items() if field.exclude}
    sent = {f"{name}.{each}" for name, model in _models(Job).items() for each in model} - kept
    known = {f"{name}.{each}" for name, fields in OLDEST.items() for each in fields.split()}
    assert {*sent, *(f"Axes.{name}" for name in AXES)} - known == LATER.keys(), SAY
    assert {*LATER.values(), *NEW_MEANINGS} == SINCE.keys(), SAY
    fitting = all(OLDEST_PROTOCOL < since <= PROTOCOL for since, _ in SINCE.values())
    assert fitting, "raise `PROTOCOL` to the newest row; a row of `OLDEST_PROTOCOL` says nothing more"


def test_a_job_that_asks_for_nothing_new_has_no_new_field() -> None:
    job = make.job()
    parts = {"Cell": job.cell, "Conditions": job.conditions, "Workload": job.cell.workload}
    plain = {f"{name}.{each}" for name, part in parts.items() for each in part.model_dump()}
    assert not plain & LATER.keys(), "give a new field `exclude_if` at its default"


def _models(root: type[Job]) -> dict[str, list[str]]:
    """The models of a job's tree that were always there, with their fields; a further one is within a new field."""
    schema = root.model_json_schema()
    found = {**schema["$defs"], root.__name__: schema}
    return {name: list(each["properties"]) for name, each in found.items() if name in OLDEST}
