"""Functions that an API lets a device compute roughly, and a network may magnify: quotients, logarithms near one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for
from onnx import TensorProto, helper

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.ir import compositions
from kernels.ir.compositions import gelu
from kernels.ir.expressions import Expression
from kernels.ir.graph import Array
from kernels.options import Backend, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder
from tests.unit.kernels.front.onnx_models import save_model

from .onnx_cases import limits_here

SHAPE = (64, 129)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan], np.float32)


def _numbers(rng: np.random.Generator) -> Array:
    return (rng.standard_normal(SHAPE) * 10.0 ** rng.integers(-8, 8, SHAPE)).astype(np.float32)


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_quotients_are_exact_and_logarithms_near_one_are_good(agent: Agent, api: Backend, seed: int) -> None:
    build, rng = Builder(), np.random.default_rng(seed)
    a, b, x = (build.input(*SHAPE, name=name) for name in "abx")
    quotient = build.node("map", [a, b], SHAPE, expression=("div", "a", "b"))
    graph = build.outputs(quotient, build.node("map", [x], SHAPE, expression=("log", "a")))
    inputs = {"a": _numbers(rng), "b": _numbers(rng)}
    inputs["a"][0, :81], inputs["b"][0, :81] = np.repeat(SPECIAL, 9), np.tile(SPECIAL, 9)
    inputs["a"][1:9] = np.round(inputs["a"][1:9]) + 0.5  # as steps of quantisation are
    inputs["x"] = (1 + rng.choice([-1, 1], SHAPE) * 10.0 ** rng.uniform(-6, -0.3, SHAPE)).astype(np.float32)
    inputs["x"][0, : SPECIAL.size] = SPECIAL
    ended = agent.run(compile_graph(graph, Options(api), limits_here(agent.binary, api)), inputs, "--samples", 1)
    assert not ended.code, ended.events[-1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ended.output(0).reshape(SHAPE), inputs["a"] / inputs["b"])
        wanted = np.log(inputs["x"].astype(np.float64))
    np.testing.assert_allclose(ended.output(1).reshape(SHAPE), wanted, rtol=1e-6)


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_casts_round_to_the_nearest_half(agent: Agent, api: Backend, seed: int) -> None:
    """Numbers are of every exponent, ties, and about the ends of what halves hold; against NumPy and ml_dtypes."""
    rng, edges = np.random.default_rng(seed), np.float32([65504, 65519.99, 65520, 2.0**-14, 2.0**-24, 2.0**-25])
    ties = (rng.integers(0, 1 << 18, 4096, np.uint32) * 0x2000 + 0x1000 + (0x33 << 24)).view(np.float32)
    any_bits = rng.integers(0, 1 << 32, 8192, np.uint32).view(np.float32)
    x = np.concatenate([edges, np.nextafter(edges, np.float32(0)), ties, -ties, any_bits, SPECIAL])
    x = np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x).astype(np.float32)  # GPUs may drop these
    build = Builder()
    given = build.input(x.size, name="x")
    kinds = ("float16", "bfloat16")
    graph = build.outputs(*(build.node("map", [given], (x.size,), expression=(kind, "a")) for kind in kinds))
    ended = agent.run(compile_graph(graph, Options(api), limits_here(agent.binary, api)), {"x": x}, "--samples", 1)
    assert not ended.code, ended.events[-1]
    for index, kind in enumerate(kinds):
        with np.errstate(all="ignore"):
            wanted = x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind.upper()))).astype(
                np.float32
            )
        np.testing.assert_array_equal(ended.output(index), wanted)
        number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(ended.output(index)[number]), np.signbit(wanted[number]))


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_a_hash_that_fp32_does_not_hold_finds_its_row(agent: Agent, api: Backend, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.INT64),
        helper.make_node("Mul", ["w", "prime"], ["product"]),
        helper.make_node("Mod", ["product", "size"], ["place"]),
        helper.make_node("Gather", ["table", "place"], ["y"]),
    ]
    table = np.arange(97 * 3, dtype=np.float32).reshape(97, 3)
    constants = {"prime": np.int64(31337), "size": np.int64(97), "table": table}
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (4,)}, ["y"], constants))
    x = np.float32([5, 535, 536, -70000])
    ended = agent.run(compile_graph(graph, Options(api), limits_here(agent.binary, api)), {"x": x}, "--samples", 1)
    wanted = table[(x.astype(np.int64) * 31337) % 97]
    np.testing.assert_array_equal(ended.output().reshape(4, 3), wanted)


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_sums_that_pass_what_fp32_holds_and_come_back_are_exact(
    agent: Agent, api: Backend, tmp_path: Path, seed: int
) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.INT64),
        helper.make_node("CumSum", ["w", "axis"], ["sums"]),
        helper.make_node("ReduceSum", ["w", "axis"], ["sum"]),
        helper.make_node("ReduceMean", ["w"], ["mean"], axes=[1]),
        helper.make_node("Cast", ["w"], ["bytes"], to=TensorProto.UINT8),
        helper.make_node("MatMulInteger", ["bytes", "weight"], ["product"]),
        *(
            helper.make_node("Cast", [name], [to], to=1)
            for name, to in (("sums", "y"), ("sum", "z"), ("mean", "m"), ("product", "p"))
        ),
    ]
    random = np.random.default_rng(seed)
    weight = random.integers(200, 256, (500, 3)).astype(np.uint8)
    constants = {"axis": np.array([1]), "weight": weight}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 500)}, ["y", "z", "m", "p"], constants)
    there = random.integers(-(2**15), 2**20, (2, 249))
    x = np.concatenate([there, -there[:, ::-1], [[8192, 1], [4095, -4097]]], 1).astype(np.float32)
    plan = compile_graph(load_onnx(path), Options(api), limits_here(agent.binary, api))
    ended = agent.run(plan, {"x": x}, "--samples", 1)
    sums = np.cumsum(x.astype(np.int64), 1)
    assert np.abs(sums).max() > 2**24
    wanted = sums.astype(np.float32)
    np.testing.assert_array_equal(ended.output(0).reshape(2, 500), wanted)
    np.testing.assert_array_equal(ended.output(1).reshape(-1), wanted[:, -1])
    np.testing.assert_array_equal(ended.output(2).reshape(-1), np.trunc(sums[:, -1] / 500))
    products = x.astype(np.int64) % 256 @ weight.astype(np.int64)
    np.testing.assert_array_equal(ended.output(3).reshape(2, 3), products.astype(np.float32))


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_gelu_in_halves_is_the_nearest_half_or_almost(agent: Agent, api: Backend, seed: int) -> None:
    """It is written as exporters do in two ways, and as a layer's end; against SciPy in double precision."""
    any_half = np.random.default_rng(seed).integers(0, 1 << 16, 8192, np.uint16).view(np.float16)
    edges = np.float16([0, -0.0, np.inf, -np.inf, np.nan, 65504, -65504])
    x = np.concatenate([np.linspace(-6, 6, 8185).astype(np.float16), edges, any_half])
    legacy = ("mul", ("mul", "a", ("add", ("erf", ("div", "a", 1.4142135381698608)), 1.0)), 0.5)
    build = Builder()
    given = build.input(x.size, name="x")
    outputs = [build.node("map", [given], (x.size,), expression=each) for each in (gelu("a"), legacy)]
    graph = build.outputs(*outputs, _layer_that_ends(build, given, x.size, gelu("a")))
    bundle = compile_graph(graph, Options(api, "fp16"), limits_here(agent.binary, api))
    assert len({program.id for program in bundle.plan.programs if program.kernel.startswith("map")}) == 1
    ended = agent.run(bundle, {"x": x.astype(np.float32)}, "--samples", 1)
    assert not ended.code, ended.events[-1]
    with np.errstate(invalid="ignore"):
        wanted = x.astype(np.float64) * scipy.special.ndtr(x.astype(np.float64))
    wanted[np.isneginf(x)] = np.nan  # infinity times nothing, as the formula says
    there = np.isfinite(wanted)
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(wanted[there]), 2.0**-14))) - 10)
    for found in (ended.output(index).reshape(-1) for index in range(3)):
        np.testing.assert_array_equal(found[~there], wanted[~there])
        assert np.max(np.abs(found[there] - wanted[there]) / unit) < 0.53


def _layer_that_ends(build: Builder, x: str, size: int, expression: Expression) -> str:
    """A convolution that gives each number as it is, and a function of that."""
    image = build.node("reshape", [x], (1, 1, size // 128, 128), shape=(1, 1, size // 128, 128))
    layer = build.conv(image, 1, (1, 1), bias=False)
    build.graph.constants[build.graph.nodes[-1].inputs[1]][:] = 1
    return build.node("map", [layer], (1, 1, size // 128, 128), expression=expression)


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_layers_end_as_well_as_maps(agent: Agent, api: Backend, seed: int) -> None:
    """Functions of a layer's result are as good as those of a tensor; against SciPy in double precision."""
    x = np.random.default_rng(seed).uniform(-9, 9, 4096).astype(np.float32)
    x[: SPECIAL.size + 2] = *SPECIAL, 40, -40
    build, expressions = Builder(), (gelu("a"), ("tanh", "a"))
    given = build.input(x.size, name="x")
    maps = [build.node("map", [given], (x.size,), expression=each) for each in expressions]
    layers = [_layer_that_ends(build, given, x.size, each) for each in expressions]
    bundle = compile_graph(build.outputs(*maps, *layers), Options(api), limits_here(agent.binary, api))
    assert len([program for program in bundle.plan.programs if program.kernel.startswith("map")]) == 2
    ended = agent.run(bundle, {"x": x}, "--samples", 1)
    assert not ended.code, ended.events[-1]
    wide, scale = x.astype(np.float64), np.maximum(np.abs(x.astype(np.float64)), 1)
    with np.errstate(invalid="ignore"):
        wanted = np.stack([wide * scipy.special.ndtr(wide), np.tanh(wide)] * 2)
        wanted[::2, np.isneginf(x)] = np.nan  # infinity times nothing, as the formula says
        found = np.stack([ended.output(index).reshape(-1) for index in range(4)])
        np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=3e-7)


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_functions_are_good_for_numbers_of_every_size(agent: Agent, api: Backend, seed: int) -> None:
    """Relative to each result: of large and of small numbers, of what is not finite, of zeros that a model holds."""
    rng, build, shape = np.random.default_rng(seed), Builder(), (4, 1024)
    sizes = {"asinh": (-6, 37), "sinh": (-6, 1.94), "cosh": (-6, 1.94), "atanh": (-6, -0.01), "acosh": (-4, 37)}
    numbers = {name: 10.0 ** rng.uniform(*ends, shape) * rng.choice([-1, 1], shape) for name, ends in sizes.items()}
    numbers["acosh"] = 1 + np.abs(numbers["acosh"])
    numbers |= {"a": 10.0 ** rng.uniform(-3, 3, shape), "b": rng.uniform(-6, 6, shape)}
    numbers["a"].flat[:81], numbers["b"].flat[:81] = np.repeat(SPECIAL, 9), np.tile(SPECIAL, 9)
    numbers["a"].flat[81:162], numbers["b"].flat[81:162] = np.repeat(SPECIAL, 9), np.tile(np.arange(-4, 5) / 2, 9)
    for name in ("asinh", "acosh", "atanh"):
        numbers[name].flat[:3] = np.inf, -np.inf, np.nan
    inputs = {name: array.astype(np.float32) for name, array in numbers.items()}
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    wanted: list[Array] = []
    names: list[str] = []

    def give(expression: Expression, operands: str | tuple[str, ...], meaning: Array) -> None:
        names.append(build.node("map", list(operands), shape, expression=expression))
        wanted.append(meaning)

    for name in inputs:
        build.input(*shape, name=name)
    with np.errstate(all="ignore"):
        for name in sizes:
            meaning = getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)(wide[name])
            give(getattr(compositions, name)("a"), (name,), meaning)
        give(("pow", "a", "b"), ("a", "b"), np.where(wide["b"] == 0, 1, wide["a"] ** wide["b"]))
        give(("pow", -0.0, "a"), ("a",), (-0.0) ** wide["a"])
        give(("mul", "a", 0.0), ("b",), wide["b"] * 0.0)
        give(("div", "a", 0.0), ("b",), wide["b"] / 0.0)
        give(("div", 0.0, "a"), ("b",), 0.0 / wide["b"])
        give(compositions.remainder_of_dividend("a", 4.0), ("a",), np.fmod(wide["a"], 4.0))
        given = compile_graph(build.outputs(*names), Options(api), limits_here(agent.binary, api))
        ended = agent.run(given, inputs, "--samples", 1)
        assert not ended.code, ended.events[-1]
        for index, (name, meaning) in enumerate(zip(names, wanted, strict=True)):
            found, single = ended.output(index).reshape(shape), meaning.astype(np.float32)
            np.testing.assert_allclose(found, single, rtol=2e-5, atol=1e-37, err_msg=name)
