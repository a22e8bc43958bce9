"""Single operations by name: what they compute, and that every size compiles."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload, random_inputs
from kernels.frontend.networks import BUILT_IN, FAMILIES, NETWORKS, OPERATIONS, known_words
from kernels.frontend.networks.pynet_layers import PYNET_LAYERS, SHAPES
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Dispatch, Plan
from kernels.reference import evaluate

MOST_WORK_GROUPS = 65535
"""The number of work-groups along a dimension that every Vulkan device takes."""


def test_names() -> None:
    assert {"matmul_256", "conv3x3_64", "transpose_512", "add_65536"} <= OPERATIONS.keys()
    assert list(BUILT_IN) == [*NETWORKS, *OPERATIONS, *PYNET_LAYERS]
    assert "vgg16, matmul_16 to 4096" in known_words() and "pynet_conv_0 to 34" in known_words()


def test_the_layers_of_study_m_have_its_shapes() -> None:
    """The last of its table, and every one once: none is the same as another."""
    graph = BUILT_IN["pynet_conv_34"](None)
    (node,) = graph.nodes
    assert (graph.shapes["data"], graph.shapes[node.inputs[1]]) == ((1, 16, 2880, 3968), (3, 16, 3, 3))
    assert graph.shapes[node.output] == (1, 3, 2880, 3968)
    assert len(set(SHAPES)) == len(PYNET_LAYERS) == 35


@pytest.mark.parametrize("name", OPERATIONS)
def test_inputs_have_the_size_of_the_name(name: str) -> None:
    graph = BUILT_IN[name](None)
    assert graph.name == name and len(graph.nodes) == 1
    assert {graph.shapes[port][-1] for port in (*graph.inputs, *graph.outputs)} == {int(name.partition("_")[2])}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_it_computes(family: str, batch: int, seed: int) -> None:
    size = FAMILIES[family].sizes[0]
    graph = load_workload(network=f"{family}_{size}", onnx=None, seed=seed, batch=batch)
    inputs = random_inputs(graph, seed)
    (found,) = evaluate(graph, inputs).values()
    operands = [array.astype(np.float64) for array in inputs.values()]
    assert len({array.tobytes() for array in operands}) == len(operands) and len(found) == batch
    if family == "conv3x3":
        weight, bias = (graph.constants[name] for name in graph.nodes[0].inputs[1:])
        wide = np.pad(operands[0], ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
        wanted = np.einsum("ncyxij,kcij->nkyx", windows, weight) + bias[:, None, None]
    elif family == "matvec":
        weight, bias = (graph.constants[name] for name in graph.nodes[0].inputs[1:])
        wanted = operands[0] @ weight.astype(np.float64) + bias
    elif family == "matmul":
        wanted = np.einsum("nik,nkj->nij", *operands)
    else:
        wanted = operands[0].swapaxes(1, 2) if family == "transpose" else operands[0] + operands[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["opencl", "cpu"])
@pytest.mark.parametrize("name", [family.workload(family.sizes[-1]) for family in FAMILIES.values()])
def test_the_largest_compiles(name: str, backend: Backend) -> None:
    graph = BUILT_IN[name](1)
    plan = compile_graph(graph, Options(backend), Limits()).plan
    assert [port.name for port in plan.inputs] == list(graph.inputs)


@pytest.mark.parametrize("name", ["add_16777216", "transpose_4096"])
def test_dispatches_keep_to_the_work_groups_that_vulkan_takes(name: str) -> None:
    limits = Limits(cpu_device=name == "transpose_4096", max_work_group=1024)
    opencl, vulkan = (compile_graph(BUILT_IN[name](1), Options(api), limits).plan for api in ("opencl", "vulkan"))
    assert vulkan.programs[0].work_group == opencl.programs[0].work_group
    assert max(work_groups(opencl)) > MOST_WORK_GROUPS >= max(work_groups(vulkan))
    assert prod(work_groups(vulkan)) >= prod(work_groups(opencl))


def work_groups(plan: Plan) -> tuple[int, ...]:
    """Return the work-groups of the first dispatch along each dimension."""
    dispatch = next(step for step in plan.steps if isinstance(step, Dispatch))
    return tuple(items // size for items, size in zip(dispatch.work_items, plan.programs[0].work_group, strict=True))
