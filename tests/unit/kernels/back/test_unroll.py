"""Loops that are written out in the text."""

from __future__ import annotations

import pytest

from kernels.source.kernel import Kernel
from kernels.source.unroll import unroll

from .every_kernel import KERNELS, small_tile


def test_a_statement_and_a_block() -> None:
    assert unroll("UNROLL for (int p = 0; p < P; ++p) x[p] = f(p);", {"P": 2}) == "x[0] = f(0);\nx[1] = f(1);"
    assert unroll("  UNROLL for (int p = 0; p < 2; ++p) { y += p; }\n", {}) == "  { y += 0; }\n  { y += 1; }\n"


def test_nested_loops_and_whole_words_only() -> None:
    text = "UNROLL for (int t = 0; t < T; ++t) { UNROLL for (int p = 0; p < P; ++p) sum[p * T + t] += pt; }"
    assert unroll(text, {"T": 1, "P": 2}) == "{ sum[0 * T + 0] += pt;\nsum[1 * T + 0] += pt; }"


def test_an_unknown_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="N"):
        unroll("UNROLL for (int i = 0; i < N; ++i) f(i);", {})


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_no_marked_loop_is_left_in_a_kernel(kernel: Kernel) -> None:
    text = kernel.source(small_tile(kernel, 3).constants)
    assert "UNROLL" not in text
    assert text.count("{") == text.count("}")
