"""Each fusion on its own, off on its own, all and none: the same results, from other steps."""

from __future__ import annotations

from collections import Counter

import pytest

from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir import compositions
from kernels.ir.fusion import ALL, FUSIONS, fusions
from kernels.ir.graph import Graph
from kernels.lower.activation import AT_END
from kernels.options import Limits, Options
from kernels.passes import optimise

from .graphs import TOLERANCE, Builder, check, some

pytestmark = pytest.mark.slow

WITHOUT = {name: "+".join(sorted(ALL - {name})) for name in FUSIONS}


def block() -> Graph:
    """Something for every fusion: normalised, added to, with another branch, activated, joined."""
    b = Builder()
    x = b.input(2, 8, 5, 6)
    shape = (2, 8, 5, 6)
    normalised = b.node("affine", [b.conv(x, 8, (1, 1), bias=False), b.constant(8), b.constant(8)], shape)
    wide = b.node("pad", [normalised], (2, 8, 7, 8), pads=(1, 1, 1, 1), mode="constant", value=0.0)
    scaled = b.node("mul", [b.conv(wide, 8, (3, 3)), b.constant(8, 1, 1)], shape)
    summed = b.node("relu", [b.node("add", [scaled, x], shape)], shape)
    biased = b.node("add", [b.conv(summed, 4, (1, 1), bias=False), b.constant(4, 1, 1)], (2, 4, 5, 6))
    clipped = b.node("clip", [biased], (2, 4, 5, 6), min=-0.5, max=0.5)
    return b.outputs(b.node("concat", [summed, clipped], (2, 12, 5, 6), axis=1))


@pytest.mark.parametrize("fuse", ["all", "none", *FUSIONS, *WITHOUT.values()])
def test_every_choice_computes_the_same(fuse: str) -> None:
    check(block(), fuse=fuse)


def _kernels(fuse: str) -> Counter[str]:
    plan = compile_graph(block(), Options("opencl", fuse=fuse), Limits()).plan
    kinds = {program.id: program.kernel.split("_")[0] for program in plan.programs}
    return Counter(kinds[step.program] for step in plan.steps if step.kind == "dispatch")


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("activation", {"map": 2}),
        ("bias", {"binary": 1}),  # the addition applies the clip
        ("concat", {"copy": 2}),
        ("normalisation", {"affine": 1, "binary": 2}),  # the residual addition cannot pass the scale
        ("padding", {"pad": 1}),
        ("residual", {"binary": 1}),
    ],
)
def test_a_fusion_that_is_off_leaves_its_steps(name: str, more: dict[str, int]) -> None:
    fused, without = _kernels("all"), _kernels(WITHOUT[name])
    assert without - fused == Counter(more)
    assert fused - without == Counter()


def chain() -> Graph:
    """A layer, SiLU, Gelu, a gate of channels."""
    b = Builder()
    shape = (2, 6, 5, 7)
    layer = b.conv(b.input(2, 3, 5, 7), 6, (1, 1))
    silu = b.node("mul", [layer, b.node("sigmoid", [layer], shape)], shape)
    gelu = b.node("map", [silu], shape, expression=compositions.gelu("a"))
    gate = b.node("sigmoid", [b.node("global_average_pool", [gelu], (2, 6, 1, 1))], (2, 6, 1, 1))
    gated = b.node("map", [gate, gelu], shape, expression=("mul", "a", "b"))
    return b.outputs(b.node("add", [gated, b.constant(6, 1, 1)], shape))


@pytest.mark.parametrize("fuse", ["all", WITHOUT["elementwise"]])
def test_a_chain_of_elements_is_one_kernel(fuse: str) -> None:
    check(chain(), fuse=fuse)
    steps = Counter(node.op for node in optimise(chain(), fuse=fusions(fuse)).nodes)
    apart = {"map": 2, "mul": 1, "sigmoid": 2, "add": 1} if fuse != "all" else {"map": 2, "sigmoid": 1}
    assert steps == {"conv": 1, "global_average_pool": 1, **apart}


@pytest.mark.parametrize("cpu_device", [True, False])
@pytest.mark.parametrize("algorithm", ["auto", "direct", "dot_uneven", "scalar", "winograd"])
def test_layers_end_in_functions(algorithm: str, cpu_device: bool) -> None:
    """The order is drawn; the last layer's is a product's end."""
    b = Builder()
    x = b.input(2, 6, 7, 9)
    (precision,) = some(("fp32", "fp16", "fp16_arithmetic"), 1, f"{algorithm} {cpu_device}")
    *ends, last = (AT_END[name][1] for name in b.rng.permutation([*AT_END, *AT_END])[:4])
    layers = ((3, 1),) * 3 if algorithm == "winograd" else ((3, 1), (3, 6), (1, 1))
    for end, (kernel, groups) in zip(ends, layers, strict=True):
        layer = b.conv(x, 6, (kernel, kernel), pads=(kernel // 2,) * 4, groups=groups)
        x = b.node("map", [layer], (2, 6, 7, 9), expression=end)
    flat = b.node("reshape", [x], (2, 378), shape=(2, 378))
    layer = b.node("dense", [flat, b.constant(378, 5, scale=0.05)], (2, 5))
    graph = b.outputs(b.node("map", [layer], (2, 5), expression=last))
    fuse = WITHOUT["rows"]  # else the product is given the expression
    four = 2 * TOLERANCE[precision]  # layers behind each other, each of which rounds: errors add up like a walk
    check(graph, precision, tolerance=four, algorithm=algorithm, cpu_device=cpu_device, fuse=fuse)
    plan = compile_graph(graph, Options("opencl", algorithm=algorithm, fuse=fuse), Limits(cpu_device=cpu_device)).plan
    assert not [program.kernel for program in plan.programs if "map" in program.kernel]


def test_nothing_is_fused_with_none() -> None:
    graph = block()
    assert Counter(n.op for n in optimise(graph, fuse=frozenset()).nodes) == Counter(n.op for n in graph.nodes)
    ends = {"pack": 1, "unpack": 1}
    assert _kernels("none") == {"conv": 3, "affine": 1, "binary": 3, "map": 2, "copy": 2, "pad": 1, **ends}


def test_names_are_checked_and_recorded() -> None:
    assert fusions("all") == ALL
    assert fusions("residual+activation") == {"residual", "activation"}
    with pytest.raises(
        OptionError, match=r"no fusion 'pooling'; write all, none, or some of activation, bias, branches, concat"
    ):
        compile_graph(block(), Options("opencl", fuse="activation+pooling"), Limits())
    plan = compile_graph(block(), Options("opencl", fuse="bias+concat"), Limits()).plan
    assert plan.options["fuse"] == "bias+concat"
    assert compile_graph(block(), Options("opencl", keep_all=True), Limits()).plan.options["fuse"] == "none"
