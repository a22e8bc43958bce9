"""The stages of a plan that trains: what `Stage` promises is true of its steps and buffers."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.errors import PlanError

from .model import Buffer, Plan, Stage, SwapIn, SwapOut
from .steps import LASTING, accesses, touched

_LEAST_BYTES = {"counter": 4, "report": 8}


def check_stages(plan: Plan, buffers: Mapping[str, Buffer]) -> None:
    """Raise PlanError unless the stages share out all steps, in order, and each can be run again and again."""
    expected = 0
    for stage in plan.stages:
        where = f"stage {stage.name!r}"
        if stage.begin != expected or not stage.begin < stage.end <= len(plan.steps):
            raise PlanError(
                f"{where}: steps {stage.begin} to {stage.end}, where {expected} to at most {len(plan.steps)} fit"
            )
        if stage.epochs * stage.batches >= 2**31:
            raise PlanError(f"{where}: {stage.epochs} epochs of {stage.batches} batches are more than a counter holds")
        _check_variables(where, stage, buffers)
        expected = stage.end
    if plan.stages and expected != len(plan.steps):
        raise PlanError(f"steps from {expected} on are of no stage")
    _check_carried(plan, buffers)


def _check_variables(where: str, stage: Stage, buffers: Mapping[str, Buffer]) -> None:
    for name, least in _LEAST_BYTES.items():
        buffer = buffers.get(getattr(stage, name))
        if buffer is None or buffer.role != "variable" or buffer.bytes < least:
            raise PlanError(f"{where}: its {name} {getattr(stage, name)!r} is no variable of at least {least} bytes")


def _check_carried(plan: Plan, buffers: Mapping[str, Buffer]) -> None:
    """Raise PlanError unless all that a pass leaves to the next lies in variables: other memory is shared within a
    pass."""
    parameters = {program.id: program.parameters for program in plan.programs}
    for stage in plan.stages:
        known: set[str] = set()
        for step in plan.steps[stage.begin : stage.end]:
            if isinstance(step, SwapIn | SwapOut):
                raise PlanError(f"stage {stage.name!r}: {step.layer!r} swaps, which a loop cannot")
            for access in accesses(step, parameters):
                if access.reads and buffers[access.buffer].role not in LASTING and access.buffer not in known:
                    raise PlanError(
                        f"stage {stage.name!r}: {step.layer!r} reads {access.buffer!r} before it is written"
                    )
            known |= set(touched(step))
