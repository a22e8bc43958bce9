"""The error table and the table of set-up steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.engine.case import make_case
from benchmarks.engine.errors import Found, algorithms, bound_of, summary, table
from kernels.options import Options

CELL = Found("lenet", "vulkan", "fp32", "auto", 2, 3e-7, 1e-4)


def test_an_error_beyond_its_bound_is_marked_and_a_nan_too() -> None:
    assert not CELL.exceeds
    assert replace(CELL, error=2e-4).exceeds and replace(CELL, error=float("nan")).exceeds
    assert not replace(CELL, error=None, why="too large").exceeds
    lines = table([CELL, replace(CELL, algorithm="winograd", error=2e-4)]).splitlines()
    assert lines == [
        "| network | API | precision | auto | winograd |", "|---|---|---|--:|--:|",
        "| lenet | vulkan | fp32 | 3.0e-07 | **2.0e-04** |",
    ]  # fmt: skip


def test_the_summary_has_the_ends() -> None:
    cells = [
        CELL, replace(CELL, algorithm="direct", error=1e-7), replace(CELL, algorithm="im2col", error=2e-7),
        replace(CELL, algorithm="winograd_2x2", error=2e-4), replace(CELL, algorithm="winograd", error=1e-6),
        replace(CELL, precision="fp16", error=None, why="too large"),
    ]  # fmt: skip
    assert summary(cells).splitlines()[2:] == [
        "| lenet | vulkan | 3.0e-07 | 2.0e-07 im2col | **2.0e-04** winograd_2x2 |  |  |  |  |"
    ]


def test_a_refusal_is_a_dash_with_its_reason_below() -> None:
    text = table([CELL, replace(CELL, precision="fp16", algorithm="direct", error=None, why="too large")])
    assert "| lenet | vulkan | fp16 |  | - |" in text
    assert text.splitlines()[-1] == "lenet, vulkan, fp16, direct: too large"


@pytest.mark.parametrize(
    ("precision", "algorithm", "bound"),
    [
        ("fp32", "direct", 5e-5),
        ("fp32", "winograd", 1e-4),
        ("relaxed", "auto", 1e-4),
        ("fp16", "winograd", 1.5e-2),
        ("fp16_arithmetic", "auto", 1.5e-2),
    ],
)
def test_bounds_depend_on_precision_and_algorithm(precision: str, algorithm: str, bound: float) -> None:
    assert bound_of(precision, algorithm) == bound


def test_a_network_that_magnifies_rounding_has_a_bound_of_its_own() -> None:
    lost = {"single": 3e-5, "half": 1e-3}
    assert bound_of("fp32", "direct", lost) == pytest.approx(3e-4)
    assert bound_of("relaxed", "winograd", lost) == pytest.approx(6e-4)
    assert bound_of("fp16", "auto", lost) == 1.5e-2  # ten times it is less
    assert bound_of("fp16_arithmetic", "auto", {"half": 1e-2}) == pytest.approx(0.1)


def test_algorithms_are_those_that_fit_the_network(tmp_path: Path) -> None:
    found = dict(algorithms(make_case("lenet", tmp_path), Options("vulkan")))
    assert found["auto"] == found["direct"] == 2  # two convolutions 5x5
    assert "pointwise" not in found and "depthwise" not in found
    assert "direct" in dict(algorithms(make_case("lenet", tmp_path), Options("cpu")))
