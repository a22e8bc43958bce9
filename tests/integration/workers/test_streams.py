"""Streams, batches and the CPU's threads from a job to its record, on this host and on a virtual phone."""

from __future__ import annotations

import pytest

from orchestrator.model.device import Api, Source
from orchestrator.model.experiment import Sampling
from orchestrator.model.record import Outcome, Record
from tests.unit.report.records import summarised
from workers.devices.workstation import enrol_workstation

from .conftest import Wiring
from .test_run import Runner, assignment, engines, here, there

FRAMES = 12
STREAMS = Sampling(warmup=1, samples=3, frames=FRAMES, deadline="60 s")


__all__ = ["engines", "here", "there"]


def ran(runner: Runner, serial: str, api: Api, **options: int | str | bool) -> Record:
    job = assignment(serial, api, sampling=STREAMS, frames=FRAMES, **options)
    record = runner(job)
    assert record.outcome is Outcome.OK, record.reasons
    assert all(check.ok for check in record.checks) and record.checks
    (summary,) = summarised([record], {record.cell_id: job.job.cell})
    assert summary.latency is None and summary.throughput is not None
    assert summary.throughput.frames == FRAMES
    times = [sample.duration_ns for sample in record.samples if sample.phase == "timed"]
    assert summary.throughput.frames_per_s == pytest.approx(FRAMES * 1e9 * len(times) / sum(times))
    return record


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 2, "algorithm": "im2col", "pipeline": "balanced", "pin_threads": True},
        {"threads": 2, "algorithm": "im2col", "thread_life": "per_call", "batch": 3},
        {"algorithm": "sequential"},
    ],
)
def test_study_c_on_a_virtual_phone(there: Runner, lab: Wiring, options: dict[str, int | str | bool]) -> None:
    record = ran(there, lab.serial, Api.CPU, **options)
    assert record.source is Source.VIRTUAL
    assert record.runs_on is not None
    assert record.runs_on.threads == (1 if options["algorithm"] == "sequential" else 2)
    piped = [step.detail for step in record.setup if step.step == "pipeline"]
    assert [text.partition(":")[0] for text in piped] == (["2 stages"] if "pipeline" in options else [])


@pytest.mark.parametrize(
    "options", [{"pipeline": "across", "threads": 2}, {"objects": "per_frame", "thread_life": "in_order"}]
)
def test_a_network_on_gpu_and_cpu(there: Runner, lab: Wiring, options: dict[str, int | str | bool]) -> None:
    record = ran(there, lab.serial, Api.OPENCL, on_cpu="products", **options)
    assert any("two APIs" in step.detail for step in record.setup) == ("pipeline" in options)


@pytest.mark.parametrize("api", [Api.OPENCL, Api.VULKAN])
def test_a_batch_in_a_stream_on_this_host(here: Runner, api: Api) -> None:
    launch = {"launch": "recorded"} if api is Api.OPENCL else {}
    for member, _ in enrol_workstation(here.bench.settings):
        if member.facts.api(api):
            record = ran(here, member.facts.serial, api, batch=4, **launch)
            assert [step.detail.endswith("command buffers") for step in record.setup if step.step == "record"] == [
                api is Api.OPENCL
            ]
            assert {sample.inferences for sample in record.samples} == {FRAMES // 4}
            return
    pytest.skip(f"this host has no {api}")
