"""A plan that cannot run says which limit, by how much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernels.compile import compile_graph
from kernels.errors import PlanError
from kernels.options import Limits, Options
from kernels.plan.model import BufferArgument, Bundle, PartArgument, Plan, Tensor
from kernels.plan.validate import validate

from .graphs import Builder


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_bundle().plan


def small_bundle(limits: Limits = Limits()) -> Bundle:  # noqa: B008
    build = Builder()
    x = build.conv(build.input(1, 4, 8, 8), 8, (3, 3), (1, 1), (1, 1, 1, 1))
    x = build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1))
    return compile_graph(build.outputs(build.conv(x, 4, (1, 1))), Options("opencl"), limits)


def test_a_compiled_plan_is_valid(plan: Plan) -> None:
    validate(plan, Limits())


def _changed(plan: Plan, part: str, index: int, **values: Any) -> Plan:
    items = list(getattr(plan, part))
    items[index] = items[index].model_copy(update=values)
    return plan.model_copy(update={part: tuple(items)})


MALFORMED: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "beyond_pool": (lambda p: _changed(p, "buffers", 0, offset=p.pools[0].bytes), "bytes beyond its pool 'weights'"),
    "no_pool": (lambda p: _changed(p, "buffers", 0, pool="nowhere"), "pool 'nowhere', which does not exist"),
    "beyond_blob": (lambda p: _changed(p, "buffers", 0, blob_offset=p.blob_bytes), "outside the blob, by "),
    "unaligned": (lambda p: _changed(p, "buffers", 0, offset=2), "not a multiple of 4"),
    "unaligned i64": (
        lambda p: _changed(p, "buffers", 0, offset=4, bytes=8, tensor=Tensor(shape=(1,), dtype="i64")), "multiple of 8"
    ),
    "twice": (lambda p: p.model_copy(update={"buffers": (*p.buffers, p.buffers[0])}), "defined twice"),
    "no_program": (lambda p: _changed(p, "steps", 0, program="none"), r"step 0 .*program 'none' does not exist"),
    "few_arguments": (lambda p: _changed(p, "steps", 0, arguments=()), "0 arguments for 6 parameters"),
    "wrong_kind": (
        lambda p: _changed(p, "steps", 0, arguments=p.steps[0].arguments[::-1]), "argument 'src' is not of kind buffer",
    ),
    "no_buffer": (
        lambda p: _changed(
            p, "steps", 0, arguments=(BufferArgument(buffer="none"), *p.steps[0].arguments[1:])
        ),
        "buffer 'none' does not exist",
    ),
    "part_beyond": (
        lambda p: _changed(
            p, "steps", 0,
            arguments=(PartArgument(buffer=p.buffers[0].id, part=(0, 1 << 40)), *p.steps[0].arguments[1:]),
        ),
        r"'src' is bytes 0 to 1099511627776 of .*, which has",
    ),
    "no_items": (lambda p: _changed(p, "steps", 0, work_items=(0, 1, 1)), "dimension below 1"),
    "no_code": (lambda p: _changed(p, "programs", 0, opencl=None), "has no code for opencl"),
    "no_file": (lambda p: p.model_copy(update={"files": {}}), "which is not in the plan"),
    "many_scalars": (
        lambda p: _changed(p, "programs", 0, parameters=p.programs[1].parameters + p.programs[1].parameters[5:]),
        "more than the 32 allowed",
    ),
    "output_role": (lambda p: _changed(p, "outputs", 0, buffer=p.inputs[0].buffer), "is input"),
    "wrong_total": (
        lambda p: p.model_copy(update={"requires": p.requires.model_copy(update={"total_bytes": 1})}),
        "requires 1 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(plan: Plan, case: str) -> None:
    change, message = MALFORMED[case]
    with pytest.raises(PlanError, match=message):
        validate(change(plan), Limits())


def test_overlap_of_buffers_that_live_together(plan: Plan) -> None:
    source, target = _pair(plan)
    index = plan.buffers.index(target)
    with pytest.raises(PlanError, match=r"share \d+ bytes of pool 'arena'"):
        validate(_changed(plan, "buffers", index, offset=source.offset), Limits())


def _pair(plan: Plan) -> tuple[Any, Any]:
    """Source and destination of the first convolution."""
    buffers = {buffer.id: buffer for buffer in plan.buffers}
    names = [argument.buffer for argument in plan.steps[1].arguments if isinstance(argument, BufferArgument)]
    return buffers[names[0]], buffers[names[-1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"max_buffer_bytes": 1000},
            r"'weights' .largest buffer: '.+'. of \d+ bytes exceeds the device's largest allocation of 1000",
        ),
        ({"memory_budget_bytes": 5000}, r"exceeds the device's memory budget of 5000 by \d+"),
        ({"max_work_group": 32}, r"work-group of 64 work-items exceeds the device's largest work-group of 32 by 32"),
        ({"max_work_item_sizes": (16, 16, 16)}, r"exceeds the device's largest size of dimension 0 of 16 by 48"),
    ],
)
def test_limits(plan: Plan, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        validate(plan, replace(Limits(), **change))


def test_local_memory(plan: Plan) -> None:
    with pytest.raises(PlanError, match="local memory of 1024 by 1024"):
        validate(_changed(plan, "programs", 0, local_bytes=2048), Limits(local_bytes=1024))


def test_the_compiler_fits_pools_and_groups_to_the_device() -> None:
    plan = small_bundle(Limits(max_buffer_bytes=4096, max_work_group=32, max_work_item_sizes=(16, 8, 8))).plan
    assert plan.requires.max_buffer_bytes <= 4096
    assert len(plan.pools) > len(small_bundle().plan.pools)
    assert {program.work_group for program in plan.programs} == {(16, 1, 1)}


def test_the_compiler_says_what_is_too_large() -> None:
    with pytest.raises(PlanError, match="largest allocation of 1000 by"):
        small_bundle(Limits(max_buffer_bytes=1000))
