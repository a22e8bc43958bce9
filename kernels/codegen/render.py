"""Draft programs -> rendered programs and their files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from kernels.errors import checkpoint
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.lower.draft import DraftProgram
from kernels.options import CONTRACTED, Limits, Options
from kernels.plan.model import OpenClSource, Parameter, Program, SpirvModule
from kernels.source import dot_products
from kernels.source.dialects import opencl, vulkan
from kernels.source.kernel import Kernel

from .cooperative_matrices import as_khronos
from .no_contraction import forbid_contraction
from .spirv import compile_all


def render_programs(
    drafts: Iterable[DraftProgram], options: Options, limits: Limits, *, cache: Path | None = None
) -> tuple[list[Program], dict[str, bytes]]:
    """Programs of a plan with the files of its bundle. Raises ToolError where SPIR-V cannot be compiled."""
    listed = list(drafts)
    kernels = [draft for draft in listed if draft.kernel is not None]
    operations = [_cpu(draft) for draft in listed if draft.kernel is None]
    if not kernels:
        return operations, {}
    programs, files = (
        _opencl(kernels, options, limits) if options.backend == "opencl" else _vulkan(kernels, options, limits, cache)
    )
    return [*programs, *operations], files


def _cpu(draft: DraftProgram) -> Program:
    return Program(id=draft.id, kernel=draft.name, parameters=CPU_OPERATIONS[draft.name], api=draft.side)


def _opencl(drafts: list[DraftProgram], options: Options, limits: Limits) -> tuple[list[Program], dict[str, bytes]]:
    programs: list[Program] = []
    files: dict[str, bytes] = {}
    for draft in drafts:
        checkpoint()
        assert draft.kernel is not None
        text = opencl.render(draft.kernel, draft.constants, options.precision).encode()
        file = f"programs/{draft.id}_{_digest(text)}.cl"
        files[file] = text
        words = opencl.build_options(
            draft.work_group, version=limits.opencl_c, precision=options.precision,
            by_features=draft.constants.get("DOT") == dot_products.DOT["khr"],
        )  # fmt: skip
        programs.append(
            Program(
                id=draft.id,
                kernel=draft.name,
                parameters=draft.kernel.parameters,
                work_group=draft.work_group,
                local_bytes=draft.kernel.local_bytes(draft.constants, options.precision),
                opencl=OpenClSource(file=file, options=words),
            )
        )
    return programs, files


def _vulkan(
    drafts: list[DraftProgram], options: Options, limits: Limits, cache: Path | None
) -> tuple[list[Program], dict[str, bytes]]:
    reading = vulkan.reading_of(limits)
    kernels = [draft.kernel for draft in drafts if draft.kernel is not None]
    texts = [
        vulkan.render(kernel, draft.constants, options.precision, reading)
        for kernel, draft in zip(kernels, drafts, strict=True)
    ]
    programs: list[Program] = []
    files: dict[str, bytes] = {}
    for draft, kernel, text, binary in zip(drafts, kernels, texts, compile_all(texts, cache=cache), strict=True):
        stem = f"programs/{draft.id}_{_digest(text.encode())}"
        guarded = binary if options.precision in CONTRACTED else forbid_contraction(binary)
        guarded = as_khronos(guarded) if kernel.matrix_units else guarded
        files[f"{stem}.comp"], files[f"{stem}.spv"] = text.encode(), guarded
        programs.append(
            Program(
                id=draft.id,
                kernel=draft.name,
                parameters=_with_texels(kernel, reading, options.half),
                work_group=draft.work_group,
                local_bytes=kernel.local_bytes(draft.constants, options.precision),
                vulkan=SpirvModule(file=f"{stem}.spv"),
            )
        )
    return programs, files


def _with_texels(kernel: Kernel, reading: vulkan.Reading, half: bool) -> tuple[Parameter, ...]:
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    return tuple(
        parameter.model_copy(update={"texel": vulkan.texel_of(buffers[parameter.name], reading, half=half)})
        if parameter.name in buffers
        else parameter
        for parameter in kernel.parameters
    )


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:8]
