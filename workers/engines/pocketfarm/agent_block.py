"""The request of a job to the agent."""

from __future__ import annotations

from typing import cast

from orchestrator.model.device import Api
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.lease import Assignment
from workers.session.supply import DISCHARGING_S

from .measure import Block, Setup
from .measure.run_request import CpuUse
from .plans.compiler_options import options_of

LAYER_PASSES = 1
"""Profiled passes of a block: its repetitions are the other blocks."""


def threads_of(cell: Cell) -> int:
    """Return the threads of the CPU backend; 0: as many as there are cores. The sequential reference has one."""
    options = options_of(cell)
    return 1 if options.algorithm == "sequential" and cell.backend is Api.CPU else options.threads


def cpu_use_of(cell: Cell) -> CpuUse:
    """Return how the CPU backend uses its threads, by the cell's axes."""
    return CpuUse(
        per_call=cell.options.get("thread_life") == "per_call",
        in_order=cell.options.get("thread_life") == "in_order",
        pinned=bool(cell.options.get("pin_threads", False)),
        pipeline=str(cell.options.get("pipeline", "none")),
    )


def creates_per_frame(cell: Cell) -> bool:
    """Return whether nothing of an inference stays for the next; there are no times of layers then."""
    return cell.options.get("objects") == "per_frame"


def setup_of(job: Job) -> Setup:
    """Return which compiled programs the block may find."""
    return cast(Setup, job.cell.options.get("setup", "cold" if job.sampling.mode == "cold" else "any"))


def block_of(assignment: Assignment, cpus: str = "", discharging_sign: int = 0) -> Block:
    """Return how the agent is to run this job."""
    job: Job = assignment.job
    sampling, await_s = job.sampling, DISCHARGING_S[job.conditions.supply]
    return Block(
        name=f"{assignment.job_id}/{assignment.attempt}",
        warmup=sampling.warmup,
        samples=sampling.samples,
        deadline_s=sampling.deadline + await_s,
        layer_passes=LAYER_PASSES if "layers" in job.measure.quantities and not creates_per_frame(job.cell) else 0,
        threads=threads_of(job.cell),
        inferences=job.inferences,
        cpu_use=cpu_use_of(job.cell),
        create_per_frame=creates_per_frame(job.cell),
        launch=str(job.cell.options.get("launch", "auto")),
        power_period_ms=max(1, round(job.measure.power_period * 1000)) if job.measures_power else 0,
        idle_s=sampling.idle,
        load_s=sampling.load,
        stop_temp_c=job.conditions.stop_temp,
        warmup_stable=sampling.warmup_stable or 0.0,
        cpus=cpus,
        await_discharging_s=await_s,
        discharging_sign=discharging_sign,
        setup=setup_of(job),
        context=job.cell.text.context if job.cell.text else 0,
        generate=job.cell.text.generate if job.cell.text else 0,
        checkpoint_every=job.cell.workload.training.checkpoint if job.cell.workload.training else 0,
    )
