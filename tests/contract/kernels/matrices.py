"""Matrices of 16 x 16 of which each of 32 work-items has eight elements: what a device does, by ordinary instructions.

Operands are places in local memory, read when they are multiplied. Cheaper to compile and to run than matrices that
each work-item has whole (`test_matrix_units.py`), for kernels that keep several of them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels.catalog.desktop import convolution as convolutions
from kernels.catalog.desktop import product as products
from kernels.lower.gpu import product as rows_product
from kernels.lower.gpu.rows import attention, norm
from kernels.options import Limits
from kernels.source.dialects import opencl, vulkan
from kernels.source.kernel import Kernel, LocalArray

_HELD = """\
#define RAW8_ZERO RAW8_OF(0, 0, 0, 0)
#define MATRIX_LEFT RAW8
#define MATRIX_RIGHT RAW8
#define NEAR RAW8
#define LOAD_COLUMNS(m, array, from, pitch) HELD(m, array, (from) + LANE / 4 * (pitch), 1, 8 * (pitch))
#define HELD(m, array, from, low, late) \\
    m.x = WORD(array[from], LANE % 4); m.y = WORD(array[(from) + (low)], LANE % 4); \\
    m.z = WORD(array[(from) + (late)], LANE % 4); m.w = WORD(array[(from) + (low) + (late)], LANE % 4)
#define MULTIPLY_ADD(a, b, sum) sum; \\
    lefts_of_all[LOCAL_ID(0)] = a; rights_of_all[LOCAL_ID(0)] = b; BARRIER; \\
    for (int e = 0; e < 8; ++e) { \\
        const int left = LOCAL_ID(0) / 4 * 4; \\
        const int right = LOCAL_ID(0) / 32 * 32 + LANE % 4 * 8 + e % 2 * 4; \\
        for (int k = 0; k < 16; ++k) \\
            AT(sum, e) += HALF_OF(WORD(lefts_of_all[left + k % 8 / 2], LEFT_WORD(LOW_OF(e), k / 8)), k % 2) \\
                * HALF_OF(WORD(rights_of_all[right + k % 8 / 2], LATE_OF(e) * 2 + k / 8), k % 2); \\
    } \\
    BARRIER
#define LOAD_NEAR(near, at) near = RIGHT_AT((at) + LANE)
#define FRAGMENT(m, near) m = near
#define SUBGROUP (LOCAL_ID(0) / 32)
#define LANE (LOCAL_ID(0) % 32)
#define SUBGROUP_BARRIER BARRIER
#define EXCHANGE(to, v, mask) \\
    lefts_of_all[LOCAL_ID(0)].x = BITS(v); BARRIER; to = OF_BITS(lefts_of_all[LOCAL_ID(0) ^ (mask)].x); BARRIER
#define EXP2(a) exp2(a)
"""
HELD_IN_OPENCL = (
    """\
#define RAW8 uint4
#define MATRIX_SUM float8
#define NO_SUM ((float8)(0.0f))
uint word_of(uint4 v, int i) { return ((const uint*)&v)[i]; }
#define WORD(v, i) word_of(v, i)
#define AT(sum, e) ((float*)&(sum))[e]
float half_of_word(uint word, int place) {
    ushort bits = (ushort)(word >> 16 * place);
    return vload_half(0, (const half*)&bits);
}
#define HALF_OF(word, place) half_of_word(word, place)
#define LOAD_LEFT(m, array, from, pitch) HELD(m, array, (from) + LANE / 4 * (pitch), 8 * (pitch), 1)
#define LEFT_WORD(low, late) ((low) + 2 * (late))
#define LEFT_OF(m, a, b, c, d) m = (uint4)((a), (b), (c), (d))
#define LOW_OF(e) ((e) / 2 % 2)
#define LATE_OF(e) ((e) / 4)
#define SUM_UP(m) (m).s0145
#define SUM_LOW(m) (m).s2367
#define SCALE_SUM(m, up, low) m *= (float8)((up), (up), (low), (low), (up), (up), (low), (low))
#define STORE_MATRIX(m, array, from, pitch) \\
    for (int e = 0; e < 8; ++e) \\
        ((__local float*)((array) + (from) + (LANE / 4 + LOW_OF(e) * 8) * (pitch))) \\
            [LANE % 4 * 2 + e % 2 + LATE_OF(e) * 8] = AT(m, e)
#define FROM_BITS(v) as_float4(v)
#define TO_BITS(v) as_uint4(v)
#define BITS(v) as_uint(v)
#define OF_BITS(v) as_float(v)
uint TWO_HALVES(float a, float b) {
    ushort bits[2];
    vstore_half(a, 0, (half*)&bits[0]);
    vstore_half(b, 0, (half*)&bits[1]);
    return (uint)bits[0] | (uint)bits[1] << 16;
}
"""
    + _HELD
)
HELD_IN_VULKAN = (
    """\
#define RAW8 uvec4
#define MATRIX_SUM mat2x4
#define NO_SUM mat2x4(0.0f)
#define WORD(v, i) v[i]
#define AT(sum, e) sum[(e) / 4][(e) % 4]
#define HALF_OF(word, place) unpackHalf2x16(word)[place]
#define LOAD_LEFT(m, array, from, pitch) LOAD_COLUMNS(m, array, from, pitch)
#define LEFT_WORD(low, late) (2 * (low) + (late))
#define LEFT_OF(m, a, b, c, d) m = uvec4((a), (c), (b), (d))
#define LOW_OF(e) ((e) / 4)
#define LATE_OF(e) ((e) / 2 % 2)
#define FILL_SUM(m, v) m[0] = (v); m[1] = (v)
#define SUM_UP(m) (m)[0]
#define SUM_LOW(m) (m)[1]
#define SCALE_SUM(m, up, low) m[0] *= (up); m[1] *= (low)
#define LOAD_SUM(m, array, from, pitch) \\
    for (int e = 0; e < 8; ++e) \\
        AT(m, e) = uintBitsToFloat( \\
            array[(from) + (LANE / 4 + LOW_OF(e) * 8) * (pitch) + LANE % 4 / 2 + LATE_OF(e) * 2][LANE % 2 * 2 + e % 2])
#define STORE_MATRIX(m, array, from, pitch) \\
    for (int e = 0; e < 8; ++e) \\
        array[(from) + (LANE / 4 + LOW_OF(e) * 8) * (pitch) + LANE % 4 / 2 + LATE_OF(e) * 2][LANE % 2 * 2 + e % 2] \\
            = floatBitsToUint(AT(m, e))
#define FROM_BITS(v) uintBitsToFloat(v)
#define TO_BITS(v) floatBitsToUint(v)
#define BITS(v) floatBitsToUint(v)
#define OF_BITS(v) uintBitsToFloat(v)
#define ELEMENT(m, e) unpackHalf2x16(m[(e) / 2])[(e) % 2]
#define TWO_HALVES(a, b) packHalf2x16(vec2((a), (b)))
"""
    + _HELD
)
"""Matrices of which it is known who holds what, as PTX ISA defines `mma.m16n8k16`, and in
Vulkan as NVIDIA's driver deals them out: a work-item holds words, and has those
of others through arrays of the kernel, `lefts_of_all` and `rights_of_all`, a vector of 16 bytes each."""
_OF_ALL = tuple(LocalArray(f"{name}_of_all", "GROUP", storage="raw8") for name in ("lefts", "rights"))
HELD = Limits(matrix_units=((16, 16, 16), (16, 8, 16)), subgroup_size=32, max_work_group=1024)
"""The limits of a device whose matrices are NVIDIA's."""


def hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels have such matrices."""
    monkeypatch.setattr(opencl, "MATRICES", HELD_IN_OPENCL)
    monkeypatch.setattr(opencl, "FRAGMENTS", "")
    monkeypatch.setattr(vulkan, "MATRICES", HELD_IN_VULKAN)
    monkeypatch.setattr(vulkan, "MATRIX_EXTENSIONS", "")
    for module, name in (
        (products, "KERNEL"), (rows_product, "NORMALISING"), (convolutions, "KERNEL"), (attention, "REGISTER_KERNEL"),
        (attention, "CACHED_REGISTER_KERNEL"), (norm, "DEALT"),
    ):  # fmt: skip
        kernel: Kernel = getattr(module, name)
        monkeypatch.setattr(module, name, replace(kernel, locals=(*kernel.locals, *_OF_ALL)))
