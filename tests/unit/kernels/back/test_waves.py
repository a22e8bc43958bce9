"""Steps of one wave may run in any order, and outputs are written where the caller reads them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, groupby

import numpy as np
import pytest
from hypothesis import given, settings

from kernels.compile import compile_graph
from kernels.frontend.networks import NETWORKS
from kernels.ir.graph import Graph
from kernels.lower.gpu import lower_gpu
from kernels.memory.waves import in_waves
from kernels.options import Limits, Options
from kernels.passes import prepare
from kernels.plan.model import BufferArgument, Bundle, Copy, Dispatch, PartArgument, Plan, Step
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import Builder, generator, inputs_of, relative_error, some
from .packed_matrices import packed_matrix, stored
from .test_saving_memory import pyramids, small_pyramid

pytestmark = pytest.mark.slow

Bytes = tuple[str, int, int, bool]
"""Pool, first byte, end, and whether they are written."""


def touched(plan: Plan, step: Step) -> Iterator[Bytes]:
    buffers = {buffer.id: buffer for buffer in plan.buffers}
    if isinstance(step, Copy):
        for name, start, writes in ((step.source, step.source_offset, False), (step.target, step.target_offset, True)):
            offset = buffers[name].offset + start
            yield buffers[name].pool, offset, offset + step.bytes, writes
    if isinstance(step, Dispatch):
        program = next(program for program in plan.programs if program.id == step.program)
        for parameter, argument in zip(program.parameters, step.arguments, strict=True):
            if isinstance(argument, BufferArgument):
                buffer = buffers[argument.buffer]
                begin, end = argument.part if isinstance(argument, PartArgument) else (0, buffer.bytes)
                yield buffer.pool, buffer.offset + begin, buffer.offset + end, parameter.access != "read"


def clash(plan: Plan, one: Step, other: Step) -> bool:
    return any(
        a[0] == b[0] and (a[3] or b[3]) and a[1] < b[2] and b[1] < a[2]
        for a in touched(plan, one)
        for b in touched(plan, other)
    )


def waves_of(plan: Plan) -> list[list[Step]]:
    """Return waves as a runner finds them: a step that touches what one since the last barrier did begins a wave."""
    waves: list[list[Step]] = [[]]
    for step in plan.steps:
        if any(clash(plan, step, other) for other in waves[-1]):
            waves.append([])
        waves[-1].append(step)
    return waves


def compiled(graph: Graph, **options: str) -> Bundle:
    return compile_graph(graph, Options("opencl", **options), Limits(cpu_device=True))  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(graph=pyramids())
def test_steps_of_one_wave_touch_nothing_of_each_other(graph: Graph) -> None:
    options, limits = Options("opencl"), Limits(cpu_device=True)  # as `compiled`: PoCL has algorithms of its own
    draft = lower_gpu(prepare(graph, options), options, limits)
    waved = in_waves(draft)
    assert sorted(map(repr, waved.steps)) == sorted(map(repr, draft.steps))
    assert waved.waves == sorted(waved.waves)
    plan = compiled(graph, order="waves").plan
    for _, wave in groupby(zip(waved.waves, plan.steps, strict=True), key=lambda pair: pair[0]):
        assert not [pair for pair in combinations([step for _, step in wave], 2) if clash(plan, *pair)]


@settings(max_examples=6, deadline=None)
@given(graph=pyramids())
def test_steps_of_one_wave_run_in_any_order(graph: Graph) -> None:
    bundle, inputs = compiled(graph, order="waves"), inputs_of(graph, generator(4))
    backwards = [step for wave in waves_of(bundle.plan) for step in reversed(wave)]
    turned = Bundle(bundle.plan.model_copy(update={"steps": tuple(backwards)}), bundle.files)
    wanted = evaluate(graph, inputs)
    for name, got in run_opencl(turned, inputs).outputs.items():
        assert relative_error(got, wanted[name]) <= 5e-5, name


@pytest.mark.parametrize(("network", "fewer"), some([("googlenet", 8), ("inception_v3", 30), ("resnet50", 4)], 2))
def test_networks_with_branches_have_fewer_waves(network: str, fewer: int) -> None:
    graph = NETWORKS[network](None)
    one_by_one, together = (len(waves_of(compiled(graph, order=order).plan)) for order in ("memory", "waves"))
    assert together <= one_by_one - fewer


def test_parts_of_a_concat_are_written_in_one_wave() -> None:
    build = Builder()
    parts = [build.conv(build.input(1, 8, 6, 6) if not n else "x", 8, (1, 1)) for n in range(3)]
    waves = waves_of(compiled(build.outputs(build.node("concat", parts, (1, 24, 6, 6), axis=1))).plan)
    assert [len(wave) for wave in waves] == [1, 3, 1]  # input to stacks, three convolutions, stacks to output


def test_parts_of_several_images_lie_apart_and_are_not_named() -> None:
    build = Builder()
    parts = [build.conv(build.input(2, 8, 6, 6) if not n else "x", 8, (1, 1)) for n in range(2)]
    plan = compiled(build.outputs(build.node("concat", parts, (2, 16, 6, 6), axis=1))).plan
    assert not [a for s in plan.steps if isinstance(s, Dispatch) for a in s.arguments if isinstance(a, PartArgument)]


@pytest.mark.parametrize("backend", ["opencl", "cpu"])
def test_an_output_is_written_where_the_caller_reads_it(backend: str) -> None:
    build = Builder()
    graph = build.outputs(build.node("add", [build.input(512), build.input(512, name="other")], (512,)))
    plan = compile_graph(graph, Options(backend), Limits(cpu_device=True)).plan  # type: ignore[arg-type]
    assert [step.kind for step in plan.steps] == ["dispatch"]
    assert [b.role for b in plan.buffers if b.id == plan.outputs[0].buffer] == ["output"]


def test_an_output_that_a_later_step_overwrites_is_copied() -> None:
    build = Builder()
    first = build.node("relu", [build.input(1, 8, 1, 1)], (1, 8, 1, 1))
    graph = build.outputs(first, build.node("sigmoid", [first], (1, 8, 1, 1)))
    inputs = inputs_of(graph, generator(5))
    got = run_opencl(compiled(graph), inputs).outputs
    wanted = evaluate(graph, inputs)
    assert all(np.allclose(got[name], wanted[name], rtol=1e-5) for name in graph.outputs)


def test_an_output_that_is_an_input_is_copied() -> None:
    build = Builder()
    x = build.input(1, 16)
    graph = build.outputs(x, build.node("relu", [x], (1, 16)))
    inputs = inputs_of(graph, generator(6))
    got = run_opencl(compiled(graph), inputs, repeats=2).outputs
    assert np.array_equal(got[x], inputs[x])


def test_waves_that_do_not_fit_the_budget_are_left() -> None:
    graph = small_pyramid()
    least = compiled(graph, order="memory").plan.requires.total_bytes
    options = Options("opencl", order="waves", memory_budget=least, swap="never", concat="join")
    assert compile_graph(graph, options, Limits(cpu_device=True)).plan.requires.total_bytes <= least


def test_a_copy_of_weights_is_made_for_its_reader(seed: int) -> None:
    """Copies for all layers of a chain would take many times the memory of the steps in order."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    width, y = int(rng.integers(1, 5)) * 32, build.input(8, 32)
    for layer in range(int(rng.integers(20, 30))):
        inputs = build.graph.shapes[y][1]
        weight = stored(build, f"{layer} w", packed_matrix("Q4_0", width, inputs, rng).T)
        y = build.node("dense", [y, weight], (8, width))
    taken = []
    for order in ("memory", "waves"):
        plan = compiled(build.outputs(y), order=order, product="registers").plan
        taken.append(sum(pool.bytes for pool in plan.pools if pool.id.startswith("arena")))
    assert taken[1] <= 2 * taken[0]
