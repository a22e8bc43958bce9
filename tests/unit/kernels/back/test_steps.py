"""The lives of buffers, against a simulator that runs the steps and follows who reads what was written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compile.assemble import assemble
from kernels.errors import PlanError
from kernels.lower.gpu import lower_gpu
from kernels.memory.choose_layout import place_memory
from kernels.memory.waves import in_waves
from kernels.options import Limits, Options
from kernels.passes import prepare
from kernels.plan.model import (
    Argument,
    BufferArgument,
    Copy,
    Dispatch,
    Parameter,
    PartArgument,
    Step,
    SwapIn,
    SwapOut,
)
from kernels.plan.steps import Access, Touches, accesses, lifetimes, read, touched, written
from kernels.plan.validate import validate

from .test_saving_memory import small_pyramid

ROLES = {"in": "input", "w": "weight", "out": "output", "a": "activation", "b": "activation", "s": "scratch"}
PARAMETERS = {
    "p": tuple(Parameter(name=access, kind="buffer", access=access) for access in ("read", "readwrite", "write"))
}
names = st.sampled_from(list(ROLES))
passing = st.sampled_from([name for name, role in ROLES.items() if role in ("activation", "scratch")])


def dispatch(*buffers: str) -> Dispatch:
    given: list[Argument] = [BufferArgument(buffer=name) for name in buffers]
    return Dispatch(program="p", layer="l", work_items=(1, 1, 1), arguments=tuple(given))


steps = st.lists(
    st.one_of(
        st.builds(dispatch, names, names, names),
        st.builds(Copy, layer=st.just("l"), source=names, target=names, bytes=st.just(4)),
        st.builds(SwapOut, layer=st.just("l"), buffer=passing),
        st.builds(SwapIn, layer=st.just("l"), buffer=passing),
    ),
    max_size=24,
)


def needed(run: list[Step]) -> set[tuple[str, int]]:
    """Buffer and step, where the buffer holds what this or a later step reads.

    A write may leave other bytes as they are; a swap-in replaces them all, and what is swapped out is left behind.
    """
    found: set[tuple[str, int]] = set()
    since: dict[str, int] = {}
    for index, step in enumerate(run):
        if isinstance(step, SwapIn):
            since.pop(step.buffer, None)
        for name in read(step, PARAMETERS):
            found |= {(name, at) for at in range(since.get(name, index), index + 1)}
        for name in written(step, PARAMETERS):
            found.add((name, index))
            since.setdefault(name, index)
        if isinstance(step, SwapOut):
            since.pop(step.buffer, None)
    return found


@settings(max_examples=200, deadline=None)
@given(steps)
def test_a_buffer_lives_while_it_holds_what_is_read(run: list[Step]) -> None:
    lives = lifetimes(run, ROLES)
    lasting = {name for name, role in ROLES.items() if role not in ("activation", "scratch")}
    assert set(lives) == lasting | {name for step in run for name in touched(step)}
    alive = {(name, at) for name, spans in lives.items() for span in spans for at in range(span.first, span.last + 1)}
    assert needed(run) <= alive
    for name in lives.keys() - lasting:  # and no longer than from a use to a use
        uses = [index for index, step in enumerate(run) if name in touched(step)]
        ends = [index for span in lives[name] for index in (span.first, span.last)]
        assert ends == sorted(ends) and set(ends) <= set(uses)
        for span in lives[name]:
            assert not any(isinstance(run[i], SwapOut) for i in uses if span.first <= i < span.last)
            assert not any(isinstance(run[i], SwapIn) for i in uses if span.first < i <= span.last)
    for name in lasting:
        assert [(span.first, span.last) for span in lives[name]] == [(0, max(len(run) - 1, 0))]


@settings(max_examples=100, deadline=None)
@given(steps, st.data())
def test_over_waves_a_buffer_lives_in_every_order(run: list[Step], data: st.DataObject) -> None:
    waves = sorted(data.draw(st.lists(st.integers(0, 6), min_size=len(run), max_size=len(run))))
    plain = [step if isinstance(step, Dispatch | Copy) else dispatch("a", "b", "s") for step in run]
    order = data.draw(st.permutations(range(len(run))))
    turned = [plain[i] for i in sorted(order, key=lambda i: waves[i])]
    assert lifetimes(plain, ROLES, waves) == lifetimes(turned, ROLES, waves)


ACCESS = st.builds(
    lambda what, begin, size: Access("a", what != 1, what != 0, *([] if begin is None else [begin, begin + size])),
    st.integers(0, 2),
    st.none() | st.integers(0, 20),
    st.integers(1, 9),
)


@given(st.lists(st.tuples(ACCESS, st.integers(0, 9))))
def test_order_matters_where_one_writes_what_the_other_touches(done: list[tuple[Access, int]]) -> None:
    touches = Touches()
    for at, (one, mark) in enumerate(done):
        bytes_of = range(one.begin, min(one.end, 99))
        before = [
            known
            for other, known in done[:at]
            if (one.writes or other.writes) and set(bytes_of) & {*range(other.begin, min(other.end, 99))}
        ]
        assert touches.latest(one) == max(before, default=-1)
        touches.add(one, mark)


def test_a_part_is_all_that_a_step_touches() -> None:
    step = dispatch("a", "b", "s")
    part = PartArgument(buffer="s", part=(16, 48))
    step = step.model_copy(update={"arguments": (*step.arguments[:2], part)})
    assert list(accesses(step, PARAMETERS)) == [
        Access("a", True, False), Access("b", True, True), Access("s", False, True, 16, 48),
    ]  # fmt: skip


def test_buffers_of_one_wave_share_no_bytes() -> None:
    """Laid out step by step, a buffer takes bytes of one that an earlier step of the same wave still reads."""
    options, limits = Options("opencl"), Limits(cpu_device=True)
    waved = in_waves(lower_gpu(prepare(small_pyramid(), options), options, limits))
    plan = assemble(waved, place_memory(waved, options, limits), options, limits).plan
    validate(plan, limits, waved.waves)
    layout = place_memory(replace(waved, waves=[]), options, limits)
    by_steps = assemble(waved, layout, options, limits).plan
    validate(by_steps, limits)
    with pytest.raises(PlanError, match=r"share \d+ bytes of pool 'arena' from wave \d+ on"):
        validate(by_steps, limits, waved.waves)


def test_steps_of_one_wave_need_nothing_of_each_other() -> None:
    options, limits = Options("opencl"), Limits(cpu_device=True)
    draft = lower_gpu(prepare(small_pyramid(), options), options, limits)
    layout = place_memory(draft, replace(options, pools="objects"), limits)
    plan = assemble(draft, layout, options, limits).plan
    with pytest.raises(PlanError, match=r"of wave 0 both touch"):
        validate(plan, limits, [0] * len(plan.steps))
