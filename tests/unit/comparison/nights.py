"""Nights of an experiment in a ledger."""

from __future__ import annotations

import math
import random
from typing import Any

from orchestrator.analysis.statistics import Mode
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, DeviceState, Health, Precision, Reading
from orchestrator.model.event import Memory, Sample
from orchestrator.model.experiment import Matrix, Sampling, Workload
from orchestrator.model.record import Outcome, Provenance
from orchestrator.spec.expansion.expand import expand
from tests.unit.orchestrator import make

BACKENDS = (Api.OPENCL, Api.CPU)
MODES: dict[Mode, dict[str, str]] = {"steady": {}, "cold": {}, "sustained": {"load": "1 min", "deadline": "5 min"}}
"""The fields that each takes beside its name."""


def night(
    ledger: Ledger,
    number: int,
    *,
    slow: dict[str, float] | None = None,
    blocks: int = 6,
    failing: str = "",
    name: str = "nightly",
    backends: tuple[Api, ...] = BACKENDS,
    network: str = "lenet",
    build: str = "8.0",
    cycles: int | None = None,
    mode: Mode = "steady",
) -> str:
    """A run of both backends in turns; `slow`: by backend, the factor of its time."""
    experiment = make.experiment(
        name=name,
        workload=Workload(network=network),
        matrix=Matrix(backend=backends, precision=(Precision.FP32,)),
        sampling=Sampling.model_validate({"blocks": blocks, "mode": mode, **MODES[mode]}),
    )
    experiment_id = f"{name}-{number}"
    jobs = expand(experiment, experiment_id, [make.device("A", *(make.api(each) for each in BACKENDS))]).jobs
    assert ledger.submit(experiment_id, experiment, jobs)
    generator = random.Random(f"{name} {number}")
    for turn, job in enumerate(jobs):
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 60.0)
        assert begun is not None
        backend = str(job.cell.backend)
        value = 10.0 * (slow or {}).get(backend, 1.0) * math.exp(generator.gauss(0, 0.003))
        more: dict[str, Any] = {"outcome": Outcome.FAILED, "cause": "out_of_memory"}
        if backend != failing:
            sample = Sample(seq=0, t_ns=0, index=0, phase="timed", start_ns=1, duration_ns=round(value * 1e6))
            memory = Memory(seq=0, t_ns=0, device_bytes=1, device_peak_bytes=2**20, vm_hwm_bytes=0, vm_rss_bytes=1)
            more = {"samples": (sample,), "memory": memory}
        at = 86400.0 * number + 60.0 * turn
        state = DeviceState(health=Health.READY, reading=Reading(at=at, battery_cycles=cycles))
        given = {
            "started_at": at, "ended_at": at + 30, "provenance": Provenance(fingerprint=build), "state_before": state,
        }  # fmt: skip
        ledger.keep(make.record(job, attempt=begun.attempt, token=begun.token, **{**given, **more}))
    return experiment_id
