"""32 bits in the place of 64: where bounds allow it, with the same results, or told where a device has no other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.compile import compile_graph
from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.programs import held
from kernels.ir.types import of_numpy
from kernels.options import Limits, Options
from kernels.passes.types import in_types, narrow
from kernels.reference import evaluate
from tests.contract.kernels.typed_fuzz import cases

from .onnx_models import save_model

CASES = 300


def test_drawn_graphs_compute_the_same_in_32_bits(seed: int, tmp_path: Path) -> None:
    """Compare devices that have 64 bits, and others where the inputs are in range and nothing is refused."""
    found, counts = cases(np.random.default_rng([seed, 91]), 0, CASES, tmp_path / "m.onnx"), Counter[str]()
    for one in found:
        for graph in one.graphs:
            given = one.case.given(graph)
            wanted = evaluate(graph, given)
            small = all(np.all(np.abs(x.astype(np.float64)) < 2**31) for x in given.values() if x.dtype.kind in "iu")
            for wide in (True, False):
                try:
                    changed = narrow(graph, wide=wide)
                except UnsupportedNode:
                    counts["refused"] += 1
                    continue
                assert all(changed.types[name] == of_numpy(array.dtype) for name, array in changed.constants.items())
                ports = (*graph.inputs, *graph.outputs)
                assert not wide or all(changed.types[name] == graph.types[name] for name in ports)
                assert wide or all(held(kind) != "i64" for kind in changed.types.values())
                files = {} if wide else compile_graph(graph, Options("opencl"), Limits(int64=False)).files
                assert not any(b"#define LONG " in text for text in files.values())
                counts["changed"] += changed.types != graph.types
                if wide or small:
                    for name, array in evaluate(in_types(changed, on_gpu=True), given).items():
                        np.testing.assert_array_equal(array, wanted[name], err_msg=f"{one.case.name} {name}")
    assert counts["refused"] > CASES // 20 and counts["changed"] > CASES // 4, counts


def test_what_may_pass_32_bits_is_refused_where_a_device_has_no_more(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.INT64),
        helper.make_node("Mul", ["w", "w"], ["z"], name="square"),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    limits, options = Limits(int64=False), Options("vulkan")
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (4,)}, ["y"], {}))
    with pytest.raises(UnsupportedNode, match=r"whole numbers \(i64\) may pass 2\^31.*cast them to INT32.*or use cpu"):
        compile_graph(graph, options, limits)
    clip = helper.make_node("Clip", ["x", "low", "high"], ["between"])
    nodes[0].input[0] = "between"
    constants = {"low": np.float32(-46000), "high": np.float32(46000)}
    bounded = load_onnx(save_model(tmp_path / "b.onnx", [clip, *nodes], {"x": (4,)}, ["y"], constants))
    texts = compile_graph(bounded, options, limits).files.values()
    assert not any(b"int64" in text for text in texts)
