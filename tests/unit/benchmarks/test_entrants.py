"""The contenders that take part in a benchmark."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.engine import entrants as module
from benchmarks.engine.entrants import Setting, entrants
from benchmarks.engine.registry import CONTENDERS, Entry
from kernels.frontend.load import load_workload
from kernels.passes.simplified import simplified
from kernels.tuning import Database

SETTING = Setting(
    binary=Path("agent"), device="", threads=(1, 2), spirv_cache=Path("spirv"), caches=Path("caches"),
    database=Database(),
)  # fmt: skip


def test_a_cpu_engine_has_a_row_for_each_number_of_threads(tmp_path: Path) -> None:
    found = entrants(["ours CPU", "ours Vulkan", "onnxruntime CPU"], SETTING, tmp_path)
    titles = [each.name for each in found.contenders]
    assert titles == ["ours CPU 1T", "ours CPU 2T", "ours Vulkan", "onnxruntime CPU 1T", "onnxruntime CPU 2T"]
    assert found.rows == []


def test_what_is_not_installed_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "CONTENDERS", {**CONTENDERS, "new": Entry("gpu", "new", ("no_such_package",))})
    found = entrants(["new"], SETTING, tmp_path)
    assert found.contenders == []
    assert [(row.contender, row.status, row.why) for row in found.rows] == [
        ("new", "absent", "not installed: no_such_package")
    ]


def test_others_get_normalisation_and_activations_folded_but_nothing_of_ours() -> None:
    graph = simplified(load_workload(network="resnet18", onnx=None, seed=1))
    operations = {node.op for node in graph.nodes}
    assert not operations & {"affine"}
    assert {"conv", "add", "max_pool"} <= operations
    assert all(len([name for name in node.inputs if name]) <= 3 for node in graph.nodes if node.op == "conv")


def test_in_halves_only_those_take_part_that_have_them(tmp_path: Path) -> None:
    names = ["ours Vulkan", "ours CPU", "torch CPU"]
    found = entrants(names, dataclasses.replace(SETTING, precision="fp16"), tmp_path)
    assert [each.name for each in found.contenders] == ["ours Vulkan"]
    assert "computes in fp32 only" in {row.contender: row.why for row in found.rows}["ours CPU"]
