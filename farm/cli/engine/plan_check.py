"""`farm plan --check`: an OpenCL plan run on this workstation through pyopencl, beside the reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from orchestrator.model.device import Precision

if TYPE_CHECKING:
    from kernels.ir.graph import Graph
    from kernels.plan.model import Bundle
    from orchestrator.model.record import OutputCheck
    from orchestrator.report.listing import Listing


@dataclass(frozen=True)
class PlanCheck:
    """Outputs of a plan for seeded random inputs, compared with those of the reference."""

    device: str
    """The OpenCL device on this workstation."""
    outputs: tuple[OutputCheck, ...]

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.outputs)

    def as_data(self) -> dict[str, Any]:
        return {"device": self.device, "ok": self.ok, "outputs": [each.model_dump() for each in self.outputs]}


def check_plan(bundle: Bundle, graph: Graph, seed: int) -> PlanCheck:
    """Run the plan here. Raises UsageError (a plan of another API), PlanError (no OpenCL here, or it refuses)."""
    import numpy as np

    from kernels.frontend.load import random_inputs
    from kernels.plan.opencl_interpreter import run_opencl
    from kernels.reference import evaluate
    from workers.engines.models.verify_outputs import verify

    if bundle.plan.api != "opencl":
        raise typer.BadParameter("--check runs plans for opencl; give --backend opencl")
    inputs = random_inputs(graph, seed)
    run = run_opencl(bundle, inputs)
    single = partial(evaluate, graph, inputs, dtype=np.float32)
    checks = verify(run.outputs, evaluate(graph, inputs), Precision(bundle.plan.precision), single)
    return PlanCheck(run.device, checks)


def render(check: PlanCheck) -> Listing:
    """A row for each output."""
    from orchestrator.report.listing import Head, Listing

    rows = [
        (each.name, f"{each.max_abs_difference:.2g}", f"{each.tolerance:.2g}", "right" if each.ok else "[red]WRONG[/]")
        for each in check.outputs
    ]
    return Listing(("output", Head("difference", True), Head("tolerance", True), f"on {check.device}"), rows)
