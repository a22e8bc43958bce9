"""The benchmark of study P: its arguments, its tables, what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.engine.operation_runs import Measured
from benchmarks.engine.operation_tables import crossovers, steps, times
from benchmarks.engine.operations import apis_of, sizes_of
from tests.source_tree import ROOT


def test_sizes() -> None:
    assert sizes_of("matmul=60:256, add=256") == {"matmul": [64, 128, 256], "add": [256]}
    assert sizes_of("conv3x3")["conv3x3"][0] == 8


@pytest.mark.parametrize("words", ["multiply=2", "matmul=5", "matmul=large", "matmul=256:64"])
def test_sizes_that_do_not_exist(words: str) -> None:
    with pytest.raises(ValueError, match=r"multiply|matmul"):
        sizes_of(words)


def test_interfaces() -> None:
    assert apis_of("vulkan,opencl") == ["opencl", "vulkan", "cpu"]
    with pytest.raises(ValueError, match="'metal'"):
        apis_of("opencl,metal")


def test_tables() -> None:
    found = [
        *measured("opencl", (256, 2.0, 1.0), (1024, 2.0, 1.0), (4096, 2.0, 9.0)),
        *measured("cpu", (256, 1.0, 0.0), (1024, 4.0, 0.0), (4096, 16.0, 0.0)),
        Measured("add", 256, "vulkan", failed="no device"),
    ]
    assert "| add | opencl | one | 256 to 4096 | 512 | 768 |" in crossovers(found)
    assert "| add | vulkan | - | - | not measured | not measured |" in crossovers(found)
    assert "| add | cpu | 4096 | build 3 |" in steps(found)
    assert "| 1024 | 2 (3) | 3 | 4 (4) | 3 |" in times("add", found[:6])


def measured(api: str, *rows: tuple[int, float, float]) -> list[Measured]:
    return [
        Measured("add", size, api, "one", 0.0, "", [[ms]], [copies], {"build": 3.0, "tiny": 0.001})
        for size, ms, copies in rows
    ]


def test_numpy_and_pydantic_are_enough() -> None:
    barred = "onnx", "torch", "pyopencl", "redis", "celery", "typer", "rich", "yaml", "sqlalchemy"
    code = f"import sys; sys.modules.update(dict.fromkeys({barred!r})); import benchmarks.engine.operations"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
