"""The two sides of a mixed plan: who computes each step, and the segments that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from kernels.errors import PlanError

from .model import Dispatch, Plan, Pool, Program, Step, Transfer
from .steps import touched

TRANSFER = "transfer"


def side_of(plan: Plan, part: Program | Pool) -> str:
    """The API that a program or pool of a plan is for."""
    return part.api or plan.api


def check_sides(plan: Plan) -> None:
    """Raise PlanError unless a step stays on one side: only a transfer takes anything to the other."""
    pools = {pool.id: side_of(plan, pool) for pool in plan.pools}
    buffers = {buffer.id: pools[buffer.pool] for buffer in plan.buffers}
    programs = {program.id: side_of(plan, program) for program in plan.programs}
    for index, step in enumerate(plan.steps):
        if isinstance(step, Transfer):
            continue
        sides = {buffers[name] for name in touched(step)}
        sides |= {programs[step.program]} if isinstance(step, Dispatch) else set()
        if len(sides) > 1:
            raise PlanError(
                f"step {index} ({step.layer}) is on two sides, {' and '.join(sorted(sides))}: transfer first"
            )


def segments(plan: Plan) -> Iterator[tuple[str, list[tuple[int, Step]]]]:
    """API and steps, with their numbers, of each segment of a plan, in order; transfers have `TRANSFER`."""
    pools = {pool.id: side_of(plan, pool) for pool in plan.pools}
    buffers = {buffer.id: pools[buffer.pool] for buffer in plan.buffers}

    def side(numbered: tuple[int, Step]) -> str:
        step = numbered[1]
        return TRANSFER if isinstance(step, Transfer) else next((buffers[n] for n in touched(step)), plan.api)

    for api, steps in groupby(enumerate(plan.steps), side):
        yield api, list(steps)
