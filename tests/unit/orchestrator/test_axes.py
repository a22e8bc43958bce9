"""An axis declares what compiling shows: plans are compared with the declarations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.catalog.convolution import CONVOLUTIONS
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.ir.graph import Graph
from kernels.options import COMPILE_AXES, Backend, Choice, Limits, Options
from orchestrator.model import axes
from orchestrator.model.axes import AXES
from tests.unit.kernels.back.graphs import Builder

VALUES: dict[str, tuple[Any, ...]] = {
    "algorithm": ("auto", "direct", "winograd", "im2col", "implicit_gemm"),
    "granularity": (0, 4, 16),
    "pixels": (0, 1, 2),
    "product": ("auto", "blocked", "tiled"),
    "transpose": ("auto", "naive", "tiled"),
    "threads": (0, 2),
    "fuse": ("all", "none", "activation"),
    "memory_budget": (0, 240_000),
    "largest_object": (0, 80_000),
    "concat": ("auto", "join", "split"),
    "in_place": (True, False),
    "order": ("memory", "waves"),
    "swap": ("auto", "never"),
    "pools": ("auto", "offsets", "objects"),
    "transfers": ("auto", "copy", "map", "map_all"),
    "workspace": (0, 1 << 16),
    "workspace_split": ("rows", "channels"),
    "on_cpu": ("none", "products", "after conv1"),
}
ASKED = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})
BACKENDS = ("opencl", "vulkan", "cpu")


def test_every_axis_of_the_compiler_is_tried() -> None:
    missing, gone = COMPILE_AXES.keys() - VALUES.keys(), VALUES.keys() - COMPILE_AXES.keys()
    assert not missing and not gone, f"VALUES above lacks values of {missing} that change the plan; it has {gone}"
    assert all(axis.default == getattr(Options("cpu"), name) for name, axis in COMPILE_AXES.items())


@cache
def network() -> Graph:
    """Something for every axis: two branches that are joined, a residual, wide windows, a transposition, a product."""
    build = Builder(np.random.default_rng(1))
    x = build.input(1, 32, 16, 16)
    narrow = build.conv(x, 32, (1, 1))
    wide = build.conv(narrow, 32, (3, 3), pads=(1, 1, 1, 1), activation=("relu",))
    branch = build.conv(build.conv(x, 32, (1, 1)), 32, (1, 1))
    joined = build.node("concat", [wide, branch], (1, 64, 16, 16), axis=1)
    mixed = build.conv(joined, 32, (3, 3), pads=(1, 1, 1, 1))
    added = build.node("add", [mixed, branch], (1, 32, 16, 16))
    rows = build.node("reshape", [added], (1, 32, 256), shape=(1, 32, 256))
    turned = build.node("transpose", [rows], (1, 256, 32), perm=(0, 2, 1))
    product = build.node("matmul", [rows, turned], (1, 32, 32))
    return build.outputs(product)


def plan_of(backend: str, asked: Mapping[str, Any]) -> str:
    """Hash of the plan; why there is none otherwise."""
    if "tuned" in asked:
        return _compiled.__wrapped__(backend, tuple(asked.items()))
    return _compiled(backend, tuple(sorted(asked.items())))


@cache
def _compiled(backend: Backend, asked: tuple[tuple[str, Any], ...]) -> str:
    try:
        return compile_graph(network(), Options(backend, **dict(asked)), Limits()).plan.plan_hash
    except CompileError as e:
        return f"refused: {e}"


def meant(backend: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if backend in AXES[name].backends}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BACKENDS), ASKED, st.data())
def test_what_is_unused_changes_no_plan(backend: str, asked: dict[str, Any], data: st.DataObject) -> None:
    asked = meant(backend, asked)
    unused = axes.unused(backend, asked)
    if axes.conflict(backend, asked):
        assert plan_of(backend, asked).startswith("refused")
    elif unused:
        name = data.draw(st.sampled_from(sorted(unused)))
        other = data.draw(st.sampled_from(VALUES[name]))
        assert plan_of(backend, asked) == plan_of(backend, {**asked, name: other}), unused[name]


@pytest.mark.parametrize(
    ("backend", "asked", "unused"),
    [
        ("vulkan", {"algorithm": "direct", "workspace_split": "channels"}, {"workspace_split"}),
        ("opencl", {"granularity": 8, "workspace": 1 << 18}, {"workspace"}),
        ("opencl", {"pixels": 1, "workspace": 1 << 18}, {"workspace"}),
        ("opencl", {"pixels": 1, "product": "blocked", "transpose": "naive", "tuned": False}, {"tuned"}),
        ("opencl", {"algorithm": "winograd", "workspace": 1 << 18}, set()),
        ("cpu", {"in_place": False, "threads": 2, "algorithm": "direct", "tuned": False}, {"in_place", "tuned"}),
        ("opencl", {"algorithm": "direct", "tuned": False}, set()),  # products are tuned too
    ],
)  # fmt: skip
def test_what_makes_no_difference(backend: str, asked: dict[str, Any], unused: set[str]) -> None:
    assert axes.unused(backend, asked).keys() == unused


BESIDE: dict[str, dict[str, Any]] = {
    "workspace": {"algorithm": "winograd"},
    "workspace_split": {"algorithm": "winograd", "workspace": 100_000},
    "swap": {"memory_budget": 240_000},
    "in_place": {"fuse": "none"},
}
"""The options that let an axis make a difference in this network."""


@pytest.mark.parametrize("name", [name for name, axis in COMPILE_AXES.items() if not axis.at_run])
def test_the_hash_holds_what_shapes_the_plan(name: str) -> None:
    backend = AXES[name].backends[0]
    found = {plan_of(backend, {**BESIDE.get(name, {}), name: value}) for value in VALUES[name]}
    assert len(found) > 1, found


TUNED = {name: Choice("direct", "2x1x4") for name, _ in CONVOLUTIONS.cases(network())}


@pytest.mark.parametrize("name", [name for name, axis in COMPILE_AXES.items() if "opencl" in axis.backends])
def test_what_was_tuned_does_not_hide_what_is_asked(name: str) -> None:
    for value in VALUES[name]:
        asked = {**BESIDE.get(name, {}), name: value}
        left_out = {other: given for other, given in asked.items() if other != name}
        if plan_of("opencl", asked) != plan_of("opencl", left_out) and "algorithm" not in left_out:
            hint = f"is {name} among `tile_options` in kernels/catalog/convolution/__init__.py?"
            assert plan_of("opencl", {**asked, "tuned": TUNED}) != plan_of("opencl", {**left_out, "tuned": TUNED}), hint


def test_the_hash_does_not_hold_the_words() -> None:
    plans = [
        compile_graph(network(), Options("opencl", algorithm="im2col", fuse=fuse), Limits()).plan
        for fuse in ("all", "activation+bias+concat+elementwise+normalisation+padding+residual")
    ]
    assert plans[0].plan_hash == plans[1].plan_hash
    assert plans[0].options["fuse"] != plans[1].options["fuse"]
    assert COMPILE_AXES.keys() <= plans[0].options.keys()


@pytest.mark.parametrize("name", [name for name, axis in COMPILE_AXES.items() if len(axis.backends) < len(BACKENDS)])
def test_an_axis_is_refused_where_it_means_nothing(name: str) -> None:
    backend = next(each for each in BACKENDS if each not in AXES[name].backends)
    other = next(value for value in VALUES[name] if value != AXES[name].default)
    assert plan_of(backend, {name: other}).startswith(f"refused: {name} is an option of ")
