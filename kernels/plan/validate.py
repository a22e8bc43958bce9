"""Check a plan before anything is allocated: a plan that cannot run says which limit, by how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from kernels.errors import LimitExceeded, PlanError, checkpoint
from kernels.options import Limits

from .model import (
    ITEM_BYTES,
    MAX_SCALARS,
    Argument,
    Buffer,
    BufferArgument,
    Copy,
    Dispatch,
    FloatArgument,
    IntArgument,
    Parameter,
    PartArgument,
    Plan,
    Program,
    Step,
    SwapIn,
    SwapOut,
    Transfer,
)
from .sides import check_sides, side_of
from .stages import check_loops
from .steps import Span, Touches, accesses, lifetimes

_KINDS: dict[type[object], tuple[str, ...]] = {
    BufferArgument: ("buffer",),
    PartArgument: ("buffer",),
    IntArgument: ("i32",),
    FloatArgument: ("f32",),
}


def validate(plan: Plan, limits: Limits, waves: Sequence[int] = ()) -> None:
    """Raise PlanError where a plan is malformed, LimitExceeded where it exceeds a limit.

    A limit of zero is unknown and not checked.

    `waves`: of each step, where those of one wave are to run in any order: they share no memory then.
    """
    _check_unique("pool", [pool.id for pool in plan.pools])
    _check_unique("buffer", [buffer.id for buffer in plan.buffers])
    _check_unique("program", [program.id for program in plan.programs])
    buffers = {buffer.id: buffer for buffer in plan.buffers}
    programs = {program.id: program for program in plan.programs}
    _check_ranges(plan)
    for program in plan.programs:
        _check_program(plan, program, limits)
    for index, step in enumerate(plan.steps):
        _check_step(f"step {index} ({step.layer})", step, buffers, programs)
    check_sides(plan)
    _check_swaps(plan.steps, buffers)
    _check_ports(plan, buffers)
    check_loops(plan, buffers)
    if waves:
        _check_waves(plan, waves)
    _check_overlaps(plan, waves)
    _check_memory(plan, limits)


def _check_unique(kind: str, ids: list[str]) -> None:
    for name in {name for name in ids if ids.count(name) > 1} if len(set(ids)) < len(ids) else ():
        raise PlanError(f"{kind} {name!r} is defined twice")


def _check_ranges(plan: Plan) -> None:
    """Every buffer lies in its pool, its content in the blob."""
    pools = {pool.id: pool for pool in plan.pools}
    for buffer in plan.buffers:
        where = f"buffer {buffer.id!r}"
        if buffer.pool not in pools:
            raise PlanError(f"{where} is in pool {buffer.pool!r}, which does not exist")
        beyond = buffer.offset + buffer.bytes - pools[buffer.pool].bytes
        if beyond > 0:
            raise PlanError(f"{where} ends {beyond} bytes beyond its pool {buffer.pool!r}")
        step = max(4, ITEM_BYTES[buffer.tensor.dtype]) if buffer.tensor else 4
        if buffer.offset % step:
            raise PlanError(f"{where} starts at offset {buffer.offset}, which is not a multiple of {step}")
        if buffer.blob_offset is not None:
            beyond = buffer.blob_offset + buffer.bytes - plan.blob_bytes
            if buffer.blob_offset < 0 or beyond > 0:
                outside = max(beyond, -buffer.blob_offset)
                raise PlanError(f"{where} takes content from outside the blob, by {outside} bytes")


def _check_program(plan: Plan, program: Program, limits: Limits) -> None:
    where = f"program {program.id!r}"
    scalars = sum(parameter.kind in ("i32", "f32") for parameter in program.parameters)
    api = side_of(plan, program)
    if api != "cpu" and scalars > MAX_SCALARS:
        raise PlanError(f"{where} has {scalars} scalars, {scalars - MAX_SCALARS} more than the {MAX_SCALARS} allowed")
    present = {"opencl": program.opencl, "vulkan": program.vulkan}
    if api in present:
        source = present[api]
        if source is None:
            raise PlanError(f"{where} has no code for {api}")
        if source.file not in plan.files:
            raise PlanError(f"{where} names the file {source.file!r}, which is not in the plan")
    size = program.work_group[0] * program.work_group[1] * program.work_group[2]
    _limit(f"{where}: work-group of {size} work-items", size, limits.max_work_group, "largest work-group")
    for axis, (wanted, most) in enumerate(zip(program.work_group, limits.max_work_item_sizes, strict=False)):
        _limit(
            f"{where}: work-group of {wanted} in dimension {axis}", wanted, most, f"largest size of dimension {axis}"
        )
    local = program.local_bytes
    _limit(f"{where}: {local} bytes of local memory", local, limits.local_bytes, "local memory")


def _check_step(
    where: str,
    step: Step,
    buffers: Mapping[str, Buffer],
    programs: Mapping[str, Program],
) -> None:
    if isinstance(step, Transfer):
        _check_ends(where, step, ((step.source, 0), (step.target, 0)), buffers)
    elif isinstance(step, Copy):
        _check_ends(where, step, ((step.source, step.source_offset), (step.target, step.target_offset)), buffers)
    elif isinstance(step, Dispatch):
        if step.program not in programs:
            raise PlanError(f"{where}: program {step.program!r} does not exist")
        if min(step.work_items) < 1:
            raise PlanError(f"{where}: work_items {step.work_items} has a dimension below 1")
        _check_arguments(where, programs[step.program].parameters, step.arguments, buffers)
    else:
        sizes = [_known(where, name, buffers).bytes for name in (step.buffer, step.host or step.buffer)]
        if sizes[0] != sizes[1]:
            raise PlanError(
                f"{where}: {step.buffer!r} of {sizes[0]} bytes has no place in {sizes[1]} bytes of the host's"
            )


def _check_swaps(steps: Sequence[Step], buffers: Mapping[str, Buffer]) -> None:
    """Nothing comes back that was not put away; a weight in host memory is not overwritten there."""
    offloaded = {name for name, buffer in buffers.items() if buffer.role == "offloaded"}
    if without := [name for name in sorted(offloaded) if buffers[name].blob_offset is None]:
        raise PlanError(f"buffer {without[0]!r} is offloaded and has no content in the blob")
    away = set(offloaded)
    for index, step in enumerate(steps):
        if isinstance(step, SwapOut):
            if (step.host or step.buffer) in offloaded:
                raise PlanError(f"step {index} ({step.layer}): {step.buffer!r} would overwrite an offloaded weight")
            away.add(step.host or step.buffer)
        elif isinstance(step, SwapIn) and (step.host or step.buffer) not in away:
            raise PlanError(f"step {index} ({step.layer}): {step.buffer!r} is swapped in before it was swapped out")


def _check_ends(
    where: str, step: Copy | Transfer, ends: Sequence[tuple[str, int]], buffers: Mapping[str, Buffer]
) -> None:
    for name, offset in ends:
        beyond = offset + step.bytes - _known(where, name, buffers).bytes
        if beyond > 0:
            raise PlanError(f"{where}: copies {beyond} bytes beyond buffer {name!r}")


def _check_arguments(
    where: str, parameters: Sequence[Parameter], given: Sequence[Argument], buffers: Mapping[str, Buffer]
) -> None:
    if len(parameters) != len(given):
        raise PlanError(f"{where}: {len(given)} arguments for {len(parameters)} parameters")
    for parameter, argument in zip(parameters, given, strict=True):
        if parameter.kind not in _KINDS[type(argument)]:
            raise PlanError(f"{where}: argument {parameter.name!r} is not of kind {parameter.kind}")
        if isinstance(argument, BufferArgument):
            buffer = _known(where, argument.buffer, buffers)
            if isinstance(argument, PartArgument) and not argument.part[0] < argument.part[1] <= buffer.bytes:
                part = "bytes {} to {}".format(*argument.part)
                raise PlanError(f"{where}: {parameter.name!r} is {part} of {buffer.id!r}, which has {buffer.bytes}")


def _known(where: str, name: str, buffers: Mapping[str, Buffer]) -> Buffer:
    if name not in buffers:
        raise PlanError(f"{where}: buffer {name!r} does not exist")
    return buffers[name]


def _check_ports(plan: Plan, buffers: Mapping[str, Buffer]) -> None:
    for role, ports in (("input", plan.inputs), ("output", plan.outputs)):
        _check_unique(role, [port.name for port in ports])
        for port in ports:
            buffer = _known(f"{role} {port.name!r}", port.buffer, buffers)
            needed = ITEM_BYTES[port.dtype]
            for size in port.shape:
                needed *= size
            if buffer.role not in (role, "data" if role == "input" else role) or buffer.bytes < needed:
                raise PlanError(f"{role} {port.name!r}: buffer {buffer.id!r} is {buffer.role}, {buffer.bytes} bytes")


def _check_waves(plan: Plan, waves: Sequence[int]) -> None:
    """Steps of one wave need nothing of each other, so that they may run in any order."""
    parameters = {program.id: program.parameters for program in plan.programs}
    for wave, steps in groupby(zip(waves, enumerate(plan.steps), strict=True), key=lambda pair: pair[0]):
        earlier = defaultdict[str, Touches](Touches)
        for _, (index, step) in steps:
            checkpoint()
            own = list(accesses(step, parameters))
            for access in own:
                if (other := earlier[access.buffer].latest(access)) >= 0:
                    layer = plan.steps[other].layer
                    raise PlanError(f"{layer!r} and {step.layer!r} of wave {wave} both touch {access.buffer!r}")
            for access in own:
                earlier[access.buffer].add(access, index)


def _check_overlaps(plan: Plan, waves: Sequence[int]) -> None:
    """No two buffers share bytes of a pool while both live."""
    buffers = {buffer.id: buffer for buffer in plan.buffers}
    roles = {name: buffer.role for name, buffer in buffers.items()}
    by_pool: dict[str, list[tuple[Buffer, Span]]] = {}
    for name, spans in lifetimes(plan.steps, roles, waves).items():
        by_pool.setdefault(buffers[name].pool, []).extend((buffers[name], span) for span in spans)
    for held in by_pool.values():
        _check_pool(sorted(held, key=lambda pair: pair[0].offset), "wave" if waves else "step")


def _check_pool(held: list[tuple[Buffer, Span]], time: str) -> None:
    """Check the buffers of one pool, in the order of their offsets."""
    ends = np.array([buffer.offset + buffer.bytes for buffer, _ in held], np.int64)
    first, last = (np.array([getattr(span, name) for _, span in held], np.int64) for name in ("first", "last"))
    for index, (buffer, span) in enumerate(held):
        checkpoint()
        clash = (ends[:index] > buffer.offset) & (first[:index] <= span.last) & (last[:index] >= span.first)
        for other, its in (held[found] for found in np.flatnonzero(clash)):
            if other is not buffer:
                shared = min(other.offset + other.bytes, buffer.offset + buffer.bytes) - buffer.offset
                raise PlanError(
                    f"buffers {other.id!r} and {buffer.id!r} share {shared} bytes of pool {buffer.pool!r} "
                    f"from {time} {max(span.first, its.first)} on, where both live"
                )


def _check_memory(plan: Plan, limits: Limits) -> None:
    for pool in (pool for pool in plan.pools if not pool.api):
        buffers = [buffer for buffer in plan.buffers if buffer.pool == pool.id]
        largest = max(buffers, key=lambda buffer: buffer.bytes, default=None)
        holding = f" (largest buffer: {largest.id!r})" if largest else ""
        what = f"pool {pool.id!r}{holding} of {pool.bytes} bytes"
        _limit(what, pool.bytes, limits.max_buffer_bytes, "largest allocation")
    total = sum(pool.bytes for pool in plan.pools if not pool.api)
    _limit(f"the plan's {total} bytes of memory", total, limits.memory_budget_bytes, "memory budget")
    if total != plan.requires.total_bytes:
        raise PlanError(f"the plan requires {plan.requires.total_bytes} bytes, but its pools have {total}")


def _limit(what: str, value: int, most: int, name: str) -> None:
    if most and value > most:
        raise LimitExceeded(f"{what} exceeds the device's {name} of {most} by {value - most}")
