"""Convolution and pooling of any geometry mean what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from kernels.frontend.onnx import VERIFIED_OPSET
from kernels.ir.shapes import window_count

from .onnx_models import assert_agrees, save_model

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """Kernel, strides and pads smaller than the kernel."""
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    return {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 4)) for _ in range(2)],
        "pads": [draw(st.integers(0, k - 1)) for k in kernel * 2],
    }


@BOUNDED
@given(
    window=windows(), extents=st.tuples(st.integers(4, 12), st.integers(4, 12)), seeds=st.integers(0, 2**32 - 1),
    groups=st.sampled_from([(1, 3, 2), (2, 4, 6), (3, 3, 3), (3, 3, 6)]),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 3)),
)  # fmt: skip
def test_any_conv(
    tmp_path: Path,
    window: dict[str, Any],
    extents: tuple[int, int],
    seeds: int,
    groups: tuple[int, int, int],
    dilations: tuple[int, int],
) -> None:
    group, c, k = groups
    pads, kernel = window["pads"], window["kernel_shape"]
    assume(all(extents[i] + pads[i] + pads[i + 2] > dilations[i] * (kernel[i] - 1) for i in range(2)))
    rng = np.random.default_rng(seeds)
    x = rng.standard_normal((2, c, *extents), np.float32)
    weights = {
        "w": rng.standard_normal((k, c // group, *kernel), np.float32),
        "b": rng.standard_normal(k, np.float32),
    }
    one = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=group, dilations=dilations, **window)
    assert_agrees(save_model(tmp_path / "m.onnx", [one], {"x": x.shape}, ["y"], weights), {"x": x})


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@BOUNDED
@given(
    window=windows(), extents=st.tuples(st.integers(4, 12), st.integers(4, 12)), seeds=st.integers(0, 2**32 - 1),
    ceil=st.integers(0, 1), include_pad=st.integers(0, 1),
)  # fmt: skip
def test_any_pool(
    tmp_path: Path,
    op: str,
    window: dict[str, Any],
    extents: tuple[int, int],
    seeds: int,
    ceil: int,
    include_pad: int,
) -> None:
    counting = {"count_include_pad": include_pad} if op == "AveragePool" else {}
    one = helper.make_node(op, ["x"], ["y"], ceil_mode=ceil, **counting, **window)
    x = np.random.default_rng(seeds).standard_normal((1, 2, *extents), np.float32)
    path = save_model(tmp_path / "m.onnx", [one], {"x": x.shape}, ["y"], opset=VERIFIED_OPSET)
    assert_agrees(path, {"x": x})


@BOUNDED
@given(
    data=st.data(), op=st.sampled_from(["MaxPool", "AveragePool"]), count=st.sampled_from([1, 3]),
    options=st.tuples(st.integers(0, 1), st.integers(0, 1)), seeds=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_any_pool_of_rows_and_depths(
    tmp_path: Path, data: st.DataObject, op: str, count: int, options: tuple[int, int], seeds: int
) -> None:
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    window: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count)),
        "pads": [data.draw(st.integers(0, k - 1)) for k in kernel * 2],
        "ceil_mode": options[0],
    }
    if op == "AveragePool":
        window["count_include_pad"] = options[1]
    extents = data.draw(st.lists(st.integers(4, 8), min_size=count, max_size=count))
    x = np.random.default_rng(seeds).standard_normal((2, 3, *extents), np.float32)
    one = helper.make_node(op, ["x"], ["y"], **window)
    assert_agrees(save_model(tmp_path / "m.onnx", [one], {"x": x.shape}, ["y"]), {"x": x})


@given(
    extent=st.integers(1, 30), kernel=st.integers(1, 7), stride=st.integers(1, 5), begin=st.integers(0, 6),
    end=st.integers(0, 6), dilation=st.integers(1, 3),
)  # fmt: skip
def test_windows_cover_what_they_can(
    extent: int, kernel: int, stride: int, begin: int, end: int, dilation: int
) -> None:
    """The last window ends inside the padded input and one more would not; ceil_mode adds at most that one."""
    assume(max(begin, end) < kernel)
    count = window_count(extent, kernel, stride, begin, end, dilation=dilation)
    assume(count >= 1)
    last = (count - 1) * stride + dilation * (kernel - 1)
    assert last < extent + begin + end <= last + stride
    hanging = window_count(extent, kernel, stride, begin, end, dilation=dilation, ceil=True)
    fits_exactly = last + 1 == extent + begin + end
    one_more_starts_inside = count * stride < extent + begin
    assert hanging == count + (not fits_exactly and one_more_starts_inside)
