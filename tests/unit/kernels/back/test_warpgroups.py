"""Products by warpgroups: the text that the agent has compiled for compute capability 9.0, and where vectors lie."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product as every

import pytest

from kernels.catalog.desktop.warpgroups import KERNEL, TILES, _tile
from kernels.catalog.product import ALGORITHMS, PRODUCTS, Product
from kernels.errors import OptionError
from kernels.options import WARPGROUP, Limits, Options
from kernels.source.dialects import opencl

HOPPER = Limits(
    max_work_group=1024, local_bytes=49152, unified_memory=False, compute_units=132, subgroup_size=32,
    matrix_units=((16, 16, 16), WARPGROUP),
)  # fmt: skip
HALF = Options("opencl", "fp16")
WARPGROUPS = ALGORITHMS["warpgroups"]
ANY = Product(1, 512, 512, 512, right_is_shared=True, right_is_constant=True)


@pytest.mark.parametrize("words", TILES)
def test_instructions_of_9_0_are_comments_to_the_drivers_compiler(words: str) -> None:
    tile = _tile(words, turned=True)
    text = opencl.render(KERNEL, {**tile.constants, "EIGHTS_A": 1}, "fp16")
    for line in text.splitlines():
        if re.search(r'".*(wgmma|fence\.proxy)', line):
            assert '"//sm_90a ' in line
    assert text.count("wgmma.mma_async") == tile.fr * tile.tile_depth // 16
    assert 16 * tile.local <= 227 << 10
    assert KERNEL.local_bytes(tile.constants) == 0


@pytest.mark.parametrize(("words", "turned"), list(every(TILES, (True, False))))
def test_vectors_of_a_stage_lie_apart_and_swizzled(words: str, turned: bool) -> None:
    tile = _tile(words, turned=turned)
    if not turned and tile.lines_b % 8:
        pytest.skip("refused")
    places = []
    for me in range(tile.group):
        line, depth8 = divmod(me, tile.depth8)
        to = _swizzled(line * tile.span + depth8 * 16, tile.span)
        places += [to + f * tile.lines * tile.span for f in range(tile.loads_a)]
        # the swizzle of a later load is that of the first: as many lines lie between as repeat it
        later = line + tile.lines * (tile.loads_a - 1)
        assert places[-1] == _swizzled(later * tile.span + depth8 * 16, tile.span)
    assert sorted(places) == list(range(0, tile.start_b, 16))
    places = []
    for me in range(tile.group):
        if turned:
            line, depth8 = divmod(me, tile.depth8)
            to, step = _swizzled(line * tile.span + depth8 * 16, tile.span), tile.lines * tile.span
        else:
            line, column = divmod(me, tile.columns // 8)
            to = column // 8 * tile.tile_depth * 128 + _swizzled(line * 128 + column % 8 * 16, 128)
            step = tile.lines_b * 128
        places += [to + f * step for f in range(tile.loads_b)]
    assert sorted(places) == list(range(0, tile.side - tile.start_b, 16))


def _swizzled(at: int, span: int) -> int:
    return at ^ (at >> 3 & (span - 16))


def test_large_products_of_halves_are_a_warpgroups() -> None:
    assert PRODUCTS.default(HALF, HOPPER, ANY) == "warpgroups"
    assert PRODUCTS.default(HALF, HOPPER, replace(ANY, rows=197)) == "matrix_units"
    assert PRODUCTS.default(HALF, replace(HOPPER, matrix_units=((16, 16, 16),)), ANY) == "matrix_units"
    assert PRODUCTS.default(Options("opencl"), HOPPER, ANY) == "tiled"
    (call,) = WARPGROUPS.lower(replace(ANY, right_is_constant=False), {}, HALF, HOPPER)
    assert call.kernel is KERNEL


def test_it_says_where_it_does_not_fit() -> None:
    assert "no warpgroups" in str(WARPGROUPS.why_not(ANY, Options("vulkan", "fp16"), HOPPER))
    assert "halves" in str(WARPGROUPS.why_not(ANY, Options("opencl"), HOPPER))
    assert "multiple of 8" in str(WARPGROUPS.why_not(replace(ANY, depth=20), HALF, HOPPER))
    assert "eight lines" in str(WARPGROUPS.why_not(replace(ANY, right_is_constant=False), HALF, HOPPER, "1x1x256x64x4"))
    assert "local memory" in str(WARPGROUPS.why_not(ANY, HALF, HOPPER, "2x1x256x64x8"))
    for words in ("2x1x96x64x4", "2x2x256x64x2", "2x1x64x48x4", "2x1x64x64x1"):
        with pytest.raises(OptionError, match="columns are 64"):
            WARPGROUPS.why_not(ANY, HALF, HOPPER, words)
