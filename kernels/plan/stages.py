"""Loops of a plan, stages of a training or passes of a generation: what these promise of steps and buffers is true."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.errors import PlanError

from .model import ITEM_BYTES, Buffer, Pass, Plan, Stage, SwapIn, SwapOut
from .steps import LASTING, accesses, touched

_LEAST_BYTES = {"counter": 4, "report": 8}


def check_loops(plan: Plan, buffers: Mapping[str, Buffer]) -> None:
    """Raise PlanError unless the loops share out all steps, in order, and each can be run again and again."""
    expected = 0
    for index, loop in enumerate(plan.loops):
        where = f"stage {loop.name!r}" if isinstance(loop, Stage) else f"pass {index} of {loop.tokens} tokens"
        if loop.begin != expected or not loop.begin < loop.end <= len(plan.steps):
            raise PlanError(
                f"{where}: steps {loop.begin} to {loop.end}, where {expected} to at most {len(plan.steps)} fit"
            )
        if isinstance(loop, Stage):
            _check_variables(where, loop, buffers)
        else:
            _check_pass(where, loop, buffers, plan.generation.sequences if plan.generation else 1)
        _check_carried(where, plan, loop, buffers)
        expected = loop.end
    if plan.loops and expected != len(plan.steps):
        raise PlanError(f"steps from {expected} on are of no stage and of no pass")
    if plan.generation and (plan.stages or plan.inputs or plan.outputs):
        raise PlanError("a plan that generates has passes alone: no stages, inputs and outputs")
    if plan.generation and plan.generation.passes[-1].tokens != 1:
        raise PlanError(f"the last pass takes {plan.generation.passes[-1].tokens} tokens, where it generates one")


def _check_pass(where: str, each: Pass, buffers: Mapping[str, Buffer], sequences: int) -> None:
    if each.rows not in (1, each.tokens):
        raise PlanError(f"{where}: {each.rows} rows of logits, where there is one, or one for each token")
    wanted: dict[str, tuple[int, tuple[str, ...]]] = {
        "ids": (sequences * each.tokens, ("i32", "i64")),
        "position": (1, ("i32", "i64")),
        "logits": (sequences * each.rows * each.vocabulary, ("f32",)),
    }
    for name, (count, kinds) in wanted.items():
        buffer = buffers.get(getattr(each, name))
        kind = buffer.tensor.dtype if buffer and buffer.tensor else "u8"
        if buffer is None or kind not in kinds or buffer.bytes < count * ITEM_BYTES[kind]:
            raise PlanError(f"{where}: {getattr(each, name)!r} does not hold {count} {name} of {' or '.join(kinds)}")


def _check_variables(where: str, stage: Stage, buffers: Mapping[str, Buffer]) -> None:
    if stage.epochs * stage.batches >= 2**31:
        raise PlanError(f"{where}: {stage.epochs} epochs of {stage.batches} batches are more than a counter holds")
    for name, least in _LEAST_BYTES.items():
        buffer = buffers.get(getattr(stage, name))
        if buffer is None or buffer.role != "variable" or buffer.bytes < least:
            raise PlanError(f"{where}: its {name} {getattr(stage, name)!r} is no variable of at least {least} bytes")


def _check_carried(where: str, plan: Plan, loop: Stage | Pass, buffers: Mapping[str, Buffer]) -> None:
    """Raise PlanError unless all that a pass leaves to the next lies in variables: other memory is shared within a
    pass."""
    parameters = {program.id: program.parameters for program in plan.programs}
    known: set[str] = set()
    for step in plan.steps[loop.begin : loop.end]:
        if isinstance(step, SwapIn | SwapOut):
            raise PlanError(f"{where}: {step.layer!r} swaps, which a loop cannot")
        touches = list(accesses(step, parameters))
        results = {access.buffer for access in touches if not access.reads}  # given for operands that are absent, too
        for access in touches:
            carried = access.buffer not in known | results and buffers[access.buffer].role not in LASTING
            if access.reads and carried:
                raise PlanError(f"{where}: {step.layer!r} reads {access.buffer!r} before it is written")
        known |= set(touched(step))
