"""SPIR-V of every kernel, its cache, and what happens without the compiler."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from kernels.catalog.convolution.output_tile import OutputTile
from kernels.codegen.no_contraction import forbid_contraction
from kernels.codegen.spirv import compile_all
from kernels.compile import compile_graph
from kernels.errors import ToolError
from kernels.options import GPU_PRECISIONS, HALF, Limits, Options
from kernels.plan.model import MAX_SCALARS
from kernels.source.dialects import opencl, vulkan
from kernels.source.kernel import Kernel
from kernels.source.tile import Tile

from .every_kernel import KERNELS, small_tile
from .graphs import Builder, some

_INT8 = {"DOT": 0, "RUN": 2, "FILTERS": 3, "PADDED": 1, "RESIDUAL": 1, "WRITES": 5}
_INT8 |= {"SUMS_ROUNDED": 1, "SCALED": 1, "BRANCH_ROUNDED": 1}
SWITCHES = {"TAIL": 1, "WHOLE": 0, "KIND": 0, "LARGEST": 1, "LAST": 0, "EIGHTS_A": 0, "EIGHTS_B": 1, "AGAIN": 0} | _INT8
READINGS = (vulkan.Reading(), vulkan.Reading(texels=True), vulkan.Reading(texels=True, sharing=8))


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_every_kernel_compiles_in_every_precision(reading: vulkan.Reading, tmp_path: Path) -> None:
    """Each later reading compiles the texts that it changes: a compiler's time goes into nothing twice."""
    earlier = {text for other in READINGS[: READINGS.index(reading)] for text in texts_of(other)}
    texts = sorted(set(texts_of(reading)) - earlier)
    binaries = compile_all(texts, cache=tmp_path / "all")
    assert binaries and all(binary.startswith(b"\x03\x02\x23\x07") for binary in binaries)
    assert len(texts) == len(list((tmp_path / "all").iterdir()))
    for text in some(texts, 2, "alone"):
        assert compile_all([text, text], cache=tmp_path / "alone") == [binaries[texts.index(text)]] * 2


def texts_of(reading: vulkan.Reading) -> list[str]:
    """Return the texts in single, half and one more precision that is drawn, as a tile's size is but in single."""
    return [
        vulkan.render(kernel, {**SWITCHES, **small_tile(kernel, size).constants}, precision, reading)
        for kernel in KERNELS.values()
        for precision in ("fp32", "fp16", *some(sorted(set(GPU_PRECISIONS) - {"fp32", "fp16"}), 1, kernel.name))
        for size in _sizes(kernel, precision)
        if not kernel.warpgroups  # OpenCL's alone
        if not kernel.matrix_units or (precision in HALF and not reading.texels)
    ]


def _sizes(kernel: Kernel, precision: str) -> list[int]:
    """Both in single precision; elsewhere one or the other."""
    if kernel.tile is Tile:
        return [1]
    return [1, 2] if precision == "fp32" else some((1, 2), 1, kernel.name + precision)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_scalars_fit_the_push_constants(kernel: object) -> None:
    parameters = kernel.parameters  # type: ignore[attr-defined]
    assert sum(parameter.kind != "buffer" for parameter in parameters) <= MAX_SCALARS


TILE = OutputTile(1, 1, 4).constants


def test_half_is_only_rendered_where_asked() -> None:
    kernel = KERNELS["conv_direct"]
    assert "float16" not in vulkan.render(kernel, TILE)
    assert "half" not in opencl.render(kernel, TILE).split("__kernel", 1)[1]
    assert "f16vec4" in vulkan.render(kernel, TILE, "fp16")
    assert "arithmetic" not in vulkan.render(kernel, TILE, "fp16")
    # Before 4.50 a function of halves would be one of singles, and halves are converted to these without a word.
    versions = {"fp32": 430, "fp16": 430, "fp16_arithmetic": 450}
    assert all(vulkan.render(kernel, TILE, p).startswith(f"#version {n}\n") for p, n in versions.items())  # type: ignore[arg-type]
    assert "cl_khr_fp16" not in opencl.render(kernel, TILE, "fp16")
    assert "cl_khr_fp16" in opencl.render(kernel, TILE, "fp16_arithmetic")
    assert "cl_khr_fp16" not in opencl.render(KERNELS["softmax_plain"], {}, "fp16_arithmetic")


def test_operands_are_texels_on_a_cpu_behind_vulkan_only() -> None:
    assert vulkan.reading_of(Limits(subgroup_size=32)) == vulkan.Reading()
    assert vulkan.reading_of(Limits(cpu_device=True)) == vulkan.Reading(texels=True)
    assert vulkan.reading_of(Limits(cpu_device=True, subgroup_size=8)) == vulkan.Reading(texels=True, sharing=8)
    assert vulkan.reading_of(Limits(cpu_device=True, subgroup_size=6)).sharing == 0


@pytest.mark.parametrize("vectors", [1, 2, 3, 5])
def test_work_items_share_out_the_weights_and_load_none_beyond_them(vectors: int) -> None:
    text = vulkan.render(
        KERNELS["conv_pointwise"], OutputTile(1, vectors, 4).constants, reading=vulkan.Reading(True, sharing=8)
    )
    loads = re.findall(r"weights\[(\d)\] = LOAD_weight\(\(at\) \+ IMIN\((\d+) \+ \S+ (\d+)\)\)", text)
    assert [(int(turn), int(first)) for turn, first, _ in loads] == [(t, 8 * t) for t in range(-(-vectors // 2))]
    assert {int(last) for *_, last in loads} == {4 * vectors - 1}
    assert "return;" not in text.split("void main()", 1)[1]  # a work-item that left would share nothing


def test_options_follow_the_device_and_the_precision() -> None:
    old = opencl.build_options((8, 1, 1), version="1.1")
    assert old == "-cl-std=CL1.1 -DGROUP_X=8 -DGROUP_Y=1 -DGROUP_Z=1"
    new = opencl.build_options((8, 1, 1), version="3.0", precision="imprecise")
    assert "-cl-std=CL1.2" in new and "-cl-fast-relaxed-math" in new and "relaxed-math" not in old
    relaxed = opencl.build_options((8, 1, 1), version="3.0", precision="relaxed")
    assert "-cl-mad-enable -cl-denorms-are-zero" in relaxed and "relaxed-math" not in relaxed


def test_a_cached_shader_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = vulkan.render(KERNELS["affine"], {})
    first = compile_all([text], cache=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compile_all([text], cache=tmp_path) == first
    with pytest.raises(ToolError, match="apt-get install glslc"):
        compile_all([text + "// another\n"], cache=tmp_path)


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    text = vulkan.render(KERNELS["affine"], {})
    first = compile_all([text], cache=tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"half an ent")
    assert compile_all([text], cache=tmp_path) == first


def test_a_refused_shader_shows_the_compilers_words(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"refused a shader:\n(.|\n)*'nonsense'"):
        compile_all(["#version 450\nvoid main() { nonsense = 1; }\n"], cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    text = vulkan.render(KERNELS["affine"], {})
    assert compile_all([text], cache=tmp_path / "file" / "folder")


def instructions(module: bytes) -> list[tuple[int, ...]]:
    words = struct.unpack(f"<{len(module) // 4}I", module)
    found, at = [], 5
    while at < len(words):
        found.append((words[at] & 0xFFFF, *words[at + 1 : at + (words[at] >> 16)]))
        at += words[at] >> 16
    assert at == len(words)
    return found


def test_every_sum_and_product_is_guarded_except_where_joined(tmp_path: Path) -> None:
    build = Builder()
    graph = build.outputs(
        build.node("affine", [build.input(1, 4, 2, 2), build.constant(4), build.constant(4)], (1, 4, 2, 2))
    )
    guarded = {}
    for precision in GPU_PRECISIONS:
        files = compile_graph(graph, Options("vulkan", precision), Limits(), spirv_cache=tmp_path).files
        listed = instructions(
            next(content for name, content in files.items() if "affine" in name and name.endswith("spv"))
        )
        # FNegate, FAdd, FSub, FMul, FDiv, VectorTimesScalar
        results = {words[2] for words in listed if words[0] in (127, 129, 131, 133, 136, 142)}
        guarded[precision] = results, {words[1] for words in listed if words[0] == 71 and words[2] == 42}
        codes = [words[0] for words in listed]
        assert max((i for i, code in enumerate(codes) if code == 71), default=0) < codes.index(19)
    for contracted in ("relaxed", "imprecise"):
        sums, guards = guarded.pop(contracted)
        assert sums and not guards
    assert all(sums == guards for sums, guards in guarded.values())


def test_a_guarded_module_keeps_all_else(tmp_path: Path) -> None:
    before = compile_all([vulkan.render(KERNELS["lrn"], {})], cache=tmp_path)[0]
    after = forbid_contraction(before)
    assert [words for words in instructions(after) if (words[0], words[-1]) != (71, 42)] == instructions(before)
    assert after[:20] == before[:20] and len(after) > len(before)
