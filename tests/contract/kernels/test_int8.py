"""Products in 8 bits: what whole numbers give, near what fp64 gives, the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kernels.catalog.convolution import convolution_of
from kernels.compile import compile_graph
from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.lower.activation import AT_END
from kernels.lower.cpu.algorithms import int8_fits
from kernels.options import Backend, Limits, Options
from kernels.reference import OPERATIONS, evaluate
from orchestrator.model.device import ApiFacts, Precision
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, inputs_of
from workers.engines.models.verify_outputs import TOLERANCES

from .test_cpu_algorithms import CASES, random_convolution

Array = npt.NDArray[Any]


def quantized(x: Array) -> tuple[Array, Any]:
    """Whole numbers (q - zero) and the scale, in the agent's own steps of fp32."""
    least, most = np.float32(min(0, x.min())), np.float32(max(0, x.max()))
    scale = (most - least) / np.float32(255)
    inverse = np.float32(1) / scale
    zero = np.rint(-least * inverse)
    return np.clip(np.rint(x * inverse) + zero, 0, 255) - zero, scale


def quantized_weights(weight: Array) -> tuple[Array, Array]:
    """The weights in whole numbers and their scales, by output channel, the first axis."""
    scale = (np.abs(weight.astype(np.float64)).reshape(len(weight), -1).max(axis=1) / 127).astype(np.float32)
    return np.rint(weight / scale.astype(np.float64).reshape(-1, *[1] * (weight.ndim - 1))), scale


def expected(graph: Graph, inputs: dict[str, Array]) -> dict[str, tuple[Array, Array, Array]]:
    """The outputs of each layer whose inputs are known: in whole numbers, in fp64, and how far apart these may be."""
    out = {}
    for node in graph.nodes:
        if node.op not in ("conv", "dense") or node.inputs[0] not in inputs:
            continue
        x, given = inputs[node.inputs[0]], graph.constants[node.inputs[1]]
        weight, by = quantized_weights(given.T if node.op == "dense" else given)
        pairs = [quantized(image) for image in x]
        q, scales = np.stack([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        shape = graph.shapes[node.output]
        tail = [1] * (len(shape) - 2)
        factor = scales.reshape(-1, 1, *tail) * by.reshape(1, -1, *tail)
        plain = {name: value for name, value in node.attributes.items() if name != "activation"}
        linear = type(node)(node.name, node.op, (), (), plain)
        operands = [graph.constants[name].astype(np.float64) if name else None for name in node.inputs[2:3]]
        extra = [inputs[name].astype(np.float64) if name else None for name in node.inputs[3:]]

        def apply(
            a: Array, w: Array, rest: list[Array | None], linear: Any = linear, op: str = node.op, shape: Any = shape
        ) -> Array:
            return np.asarray(OPERATIONS[op](linear, [a, w.T if op == "dense" else w, *rest], shape))

        sums = apply(q.astype(np.float64), weight.astype(np.float64), [])
        rest = [*operands, *extra] if operands else []
        base = apply(0 * q.astype(np.float64), weight.astype(np.float64), rest)
        exact = apply(x.astype(np.float64), (given.T if node.op == "dense" else given).astype(np.float64), rest)
        # half a step of either operand: |w| sx/2 + |x| sw/2 + sx sw/4 a product
        ones, size = np.ones_like(q, dtype=np.float64), np.abs(weight).astype(np.float64)
        bound = factor * (apply(ones, size, []) / 2 + apply(np.abs(q), np.ones_like(size), []) / 2
                          + apply(ones, np.ones_like(size), []) * 0.75)  # fmt: skip
        out[node.output] = (sums * factor + base, exact, bound)
    return out


@pytest.mark.parametrize(("isa", "threads"), [("generic", 1), ("avx2", 3), ("avx512f", 2)])
def test_products_are_exact(agent: Agent, isa: str, threads: int) -> None:
    build = Builder()
    outputs = [random_convolution(build, number, "int8") for number in range(CASES)]
    outputs += [random_convolution(build, CASES + number, "depthwise") for number in range(CASES // 2)]
    for number, rows in enumerate((1, 2, 17)):
        c, m = build.rng.integers(1, 300, 2).tolist()
        operands = [build.input(rows, c, name=f"d{number}"), build.constant(c, m, scale=c**-0.5), build.constant(m)]
        outputs.append(build.node("dense", operands[: 2 + number % 2], (rows, m)))
    graph = build.outputs(*outputs)
    for node in graph.nodes:
        node.attributes.pop("activation", None)
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, Options("cpu", "int8", keep_all=True), Limits())
    ended = agent.run(bundle, inputs, "--threads", threads, POCKETFARM_CPU_ISA=isa)
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    found = {port.name: ended.output(i).reshape(port.shape) for i, port in enumerate(bundle.plan.outputs)}
    wanted = expected(graph, {**inputs, **found})
    seen = in_single = 0
    for node in graph.nodes:
        if node.output not in wanted or node.output not in found:
            continue
        if node.op == "conv" and not int8_fits(convolution_of(graph, node), graph.constants[node.inputs[1]]):
            in_single += 1
            continue
        whole, exact, bound = wanted[node.output]
        size = max(1.0, float(np.abs(whole).max()))
        assert np.abs(found[node.output] - whole).max() <= 2e-6 * size, node.name
        assert (np.abs(found[node.output] - exact) <= bound + 2e-6 * size).all(), node.name
        seen += 1
    assert seen + in_single == sum(node.op in ("conv", "dense") for node in graph.nodes), "none is left out"
    assert seen >= CASES // 2 + 3, "how many do not fit is chance"


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_layers_end_in_functions(agent: Agent, api: Backend) -> None:
    """The layer computes them as a step of its own does; which is drawn."""
    build, outputs = Builder(), list[str]()
    for number, meant in enumerate(AT_END[name][1] for name in build.rng.permutation([*AT_END] * 2)):
        k, groups = ((int(build.rng.integers(1, 40)), 1), (64, 32), (20, 2))[number % 3]
        layer = build.conv(build.input(2, 32, 9, 11, name=f"x{number}"), k, (3, 2), groups=groups)
        outputs.append(build.node("map", [layer], build.graph.shapes[layer], expression=meant))
    dense = build.node("dense", [build.input(7, 90, name="d"), build.constant(90, k, scale=0.1)], (7, k))
    graph = build.outputs(*outputs, build.node("map", [dense], (7, k), expression=meant))
    inputs, ended = inputs_of(graph), {}
    for fuse in ("all", "bias+elementwise"):
        bundle = compile_graph(graph, Options(api, "int8", fuse=fuse), Limits(cpu_device=api != "cpu"))
        assert any("map" in program.kernel for program in bundle.plan.programs) == (fuse != "all")
        ended[fuse] = agent.run(bundle, inputs)
    for index in range(len(graph.outputs)):
        np.testing.assert_allclose(*(each.output(index) for each in ended.values()), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_a_gpu_gives_the_numbers_of_the_cpu(agent: Agent, api: Backend) -> None:
    """The last bit is equal on drivers that divide exactly (PoCL, lavapipe), with tiles of phones and of desktops."""
    build = Builder()
    k, groups = int(build.rng.integers(1, 40)), 16 * int(build.rng.integers(1, 3))
    pads = tuple(build.rng.integers(0, 3, 4).tolist())
    x = build.input(2, 32, 9, 11)
    outputs = [
        build.conv(x, k, (3, 2), (2, 1), pads, (1, 2), activation=("clip", -0.5, 1.5)),
        build.conv(x, 96, (2, 3), pads=pads, groups=32),
        build.conv(build.conv(x, groups * 2, (1, 1)), groups * 2, (3, 3), groups=2),
    ]
    rows, c, m = build.rng.integers(1, 90, 3).tolist()
    operands = [build.input(rows, c, name="d"), build.constant(c, m), build.constant(m)]
    graph = build.outputs(*outputs, build.node("dense", operands, (rows, m)))
    inputs = inputs_of(graph)
    desktop: dict[str, Any] = {"compute_units": 2, "unified_memory": False, "local_bytes": 32 << 10}
    if api == "opencl":  # as if it had dot products: its compiler says no, and bytes are multiplied one by one
        desktop |= {"dot_product": "khr", "opencl_c": "3.0"}
    wanted = agent.run(compile_graph(graph, Options("cpu", "int8"), Limits()), inputs)
    for limits in (Limits(cpu_device=True), Limits(max_work_group=64, **desktop)):
        bundle = compile_graph(graph, Options(api, "int8"), limits)
        assert sum("int8" in str(words) for words in bundle.plan.options.values()) == 5
        ended = agent.run(bundle, inputs)
        for index in range(len(bundle.plan.outputs)):
            np.testing.assert_array_equal(ended.output(index), wanted.output(index))


def test_vulkan_multiplies_by_the_drivers_dot_products(agent: Agent) -> None:
    probed = agent.call([str(agent.binary), "probe"]).all("probe")
    facts: ApiFacts = next(event.facts for event in probed if event.facts.api == "vulkan")
    if facts.dot_product != "khr":
        pytest.skip(f"{facts.device_name} has no shaderIntegerDotProduct")
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 19, 6, 7), 33, (3, 3)))
    bundles = [
        compile_graph(graph, Options("vulkan", "int8"), Limits(dot_product=dots))  # type: ignore[arg-type]
        for dots in ("khr", "")
    ]
    extension = b"SPV_KHR_integer_dot_product"
    said = [
        any(name.endswith("spv") and extension in content for name, content in each.files.items()) for each in bundles
    ]
    assert said == [True, False]
    by_driver, by_bytes = (agent.run(each, inputs_of(graph)).output(0) for each in bundles)
    np.testing.assert_array_equal(by_driver, by_bytes)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_nan_reaches_every_result(agent: Agent, api: Backend) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 20, 6, 6), 20, (3, 3)))
    inputs = inputs_of(graph)
    inputs["x"][0, 3, 5, 5] = np.nan
    assert np.isnan(agent.run(compile_graph(graph, Options(api, "int8"), Limits()), inputs).output(0)).all()


@pytest.mark.parametrize("network", ["lenet", "mobilenet_v1", "squeezenet_v1_1"])
def test_a_network_in_8_bits(agent: Agent, network: str) -> None:
    """All layers with weights in 8 bits, and the output stays near."""
    graph = load_workload(network=network, onnx=None, seed=1)
    inputs = random_inputs(graph, 3)
    bundle = compile_graph(graph, Options("cpu", "int8"), Limits())
    kernels = [program.kernel for program in bundle.plan.programs]
    assert "conv2d_int8" in kernels
    assert ("depthwise_int8" in kernels) == (network == "mobilenet_v1")
    single = compile_graph(graph, Options("cpu"), Limits())
    assert bundle.plan.blob_bytes < 0.3 * single.plan.blob_bytes
    ended = agent.run(bundle, inputs, "--threads", 2)
    assert ended.code == 0
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    wanted = evaluate(graph, wide)[graph.outputs[0]].reshape(-1)
    found = ended.output(0).reshape(-1)
    assert np.abs(found - wanted).max() <= TOLERANCES[Precision.INT8] * np.abs(wanted).max()


def test_the_sets_give_the_same_bits(agent: Agent) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    bundle = compile_graph(graph, Options("cpu", "int8"), Limits())
    runs = [
        agent.run(bundle, random_inputs(graph, 5), POCKETFARM_CPU_ISA=isa) for isa in ("generic", "avx2", "avx512f")
    ]
    results = [run.output(0) for run in runs if run.code == 0]
    assert results
    for other in results[1:]:
        np.testing.assert_array_equal(other.view(np.uint32), results[0].view(np.uint32))
