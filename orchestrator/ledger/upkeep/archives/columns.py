"""The row of a block in an archive: flat columns for whoever reads it with pandas, DuckDB or pyarrow, and what the
ledger itself needs to take it in again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from orchestrator.figures import BlockFigures
from orchestrator.figures.one_block import frames_per_s
from orchestrator.model.job import AnyJob

FORMAT = 1
"""One more where a reader of this version could not take in a file of the other."""

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("experiment_id", "experiment", "job_id", "state")),
        *((name, pa.string()) for name in ("network", "backend", "precision", "options", "role")),
        ("block", pa.int64()),
        ("attempt", pa.int64()),
        *((name, pa.string()) for name in ("serial", "model", "source", "host", "outcome", "cause")),
        *((name, pa.float64()) for name in ("started_at_s", "ended_at_s")),
        ("samples", pa.int64()),
        *((f"{name}_ms", pa.float64()) for name in ("median", "min", "mean", "p90", "p99", "mad")),
        ("frames_per_s", pa.float64()),
        ("setup_ms", pa.float64()),
        *((f"{name}_bytes", pa.int64()) for name in ("device_peak", "resident_peak", "pss")),
        *((name, pa.float64()) for name in ("energy_per_inference_j", "energy_per_inference_std_j")),
        *((name, pa.float64()) for name in ("load_power_w", "idle_power_w")),
        *((name, pa.string()) for name in ("power_source", "power_scope", "doubts")),
        *((name, pa.string()) for name in ("job_row", "attempt_row", "figures_row", "figures", "record")),
        ("record_sha256", pa.string()),
    ]
)
"""A row a (job, attempt); one a job that was never tried. The last columns are JSON of the ledger's rows; `record` is
the raw record as the host sent it. None stands for what is not known."""


def of_job(job: AnyJob, name: str, state: str) -> dict[str, Any]:
    return {
        "experiment_id": job.experiment_id,
        "experiment": name,
        "job_id": job.job_id,
        "state": state,
        "network": job.cell.workload.label,
        "backend": str(job.cell.backend),
        "precision": str(job.cell.precision),
        "options": json.dumps(job.cell.options, sort_keys=True),
        "role": job.role,
        "block": job.block,
    }


def of_figures(block: BlockFigures) -> dict[str, Any]:
    """Flat columns with their units."""
    times, energy, memory = block.times, block.energy, block.memory
    made: dict[str, Any] = {"model": block.model, "doubts": " ".join(doubt.code for doubt in block.doubts)}
    made["setup_ms"] = sum(block.setup_ns.values()) / 1e6 if block.setup_ns else None
    made["frames_per_s"] = frames_per_s(block)
    if times is not None:
        made |= {f"{name}_ms": getattr(times, f"{name}_ms") for name in ("median", "min", "mean", "p90", "p99", "mad")}
        made["samples"] = times.count
    if memory is not None:
        made |= {"device_peak_bytes": memory.device_peak_bytes, "resident_peak_bytes": memory.vm_hwm_bytes}
        made["pss_bytes"] = memory.pss_bytes
    if energy is not None:
        net, idle = energy.per_inference_j, energy.idle_power_w
        made |= {"power_source": energy.source, "power_scope": energy.scope, "load_power_w": energy.load_power_w.value}
        made |= {"energy_per_inference_j": net.value, "energy_per_inference_std_j": net.std} if net else {}
        made |= {"idle_power_w": idle.value} if idle else {}
    return made
