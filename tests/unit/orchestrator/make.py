"""Devices, experiments and jobs for the orchestrator's tests."""

from __future__ import annotations

from typing import Any

from orchestrator.model.device import Api, ApiFacts, Device, DeviceFacts, DeviceState, Health, Precision, Source
from orchestrator.model.experiment import Conditions, DeviceChoice, Experiment, Matrix, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.record import Outcome, Record


def api(name: Api = Api.OPENCL, *precisions: Precision) -> ApiFacts:
    return ApiFacts(
        api=name, version="1", device_name=f"{name} driver", precisions=precisions or (Precision.FP32,),
        max_image_width=4096, max_image_height=4096,
    )  # fmt: skip


def device(serial: str = "A", *apis: ApiFacts, host: str = "lab", **state: Any) -> Device:
    facts = DeviceFacts(serial=serial, host=host, kind="phone", source=Source.VIRTUAL, apis=apis or (api(),))
    return Device(facts=facts, state=DeviceState(**{"health": Health.READY, **state}))


def experiment(**fields: Any) -> Experiment:
    return Experiment(**{"name": "first", "workload": Workload(network="squeezenet_v1_0"), **fields})


def many(blocks: int, *, name: str = "many", count: Any = "all", priority: int = 0, **more: Any) -> Experiment:
    choice = DeviceChoice(count=count)
    return experiment(name=name, sampling=Sampling(blocks=blocks), devices=choice, priority=priority, **more)


def job(experiment_id: str = "first-1", block: int = 0, candidates: tuple[str, ...] = ("A",), priority: int = 0) -> Job:
    cell = Cell(workload=Workload(network="squeezenet_v1_0"), backend=Api.OPENCL)
    return Job(
        experiment_id=experiment_id, cell=cell, block=block, candidates=candidates, priority=priority,
        sampling=Sampling(), conditions=Conditions(), measure=Measure(),
    )  # fmt: skip


def waiting(job_id: str, *candidates: str, experiment_id: str = "e", **fields: Any) -> WaitingJob:
    defaults: dict[str, Any] = {"label": job_id, "conditions": Conditions(), "priority": 0, "order": (0, 0)}
    return WaitingJob(job_id=job_id, experiment_id=experiment_id, candidates=candidates, **{**defaults, **fields})


def record(job: Job, *, attempt: int, token: int, serial: str = "A", **more: Any) -> Record:
    facts = device(serial).facts
    fields: dict[str, Any] = {
        "experiment_id": job.experiment_id, "job_id": job.job_id, "cell_id": job.cell.cell_id, "block": job.block,
        "attempt": attempt, "token": token, "worker": "w", "device": facts, "source": facts.source,
        "outcome": Outcome.OK, "started_at": 100.0, "ended_at": 101.0,
    }  # fmt: skip
    return Record(**{**fields, **more})


__all__ = ["Matrix", "api", "device", "experiment", "job", "many", "record", "waiting"]
