"""Draft -> bundle: programs rendered, weights written to the blob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernels.codegen.render import render_programs
from kernels.errors import checkpoint
from kernels.lower.draft import Content as DraftContent
from kernels.lower.draft import Draft
from kernels.memory.layout import Layout, Place
from kernels.options import COMPILE_AXES, Limits, Options
from kernels.plan.files import Content, content_of, sha256_of
from kernels.plan.model import REFUSED, Buffer, Bundle, Plan, Pool, Program, Requires

BLOB = "blob.bin"
_LINE = 64
"""Bytes of a line of a CPU's cache: the agent computes with the blob's bytes where they lie."""


def assemble(
    draft: Draft, layout: Layout, options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Bundle:
    """Finish a draft that is laid out. The same draft always gives the same bundle. Raises ToolError."""
    buffers, blob = _place_buffers(draft, layout.places)
    programs, texts = render_programs(draft.programs.values(), options, limits, cache=spirv_cache)
    files: dict[str, Content] = {BLOB: blob, **texts}
    plan = Plan(
        name=draft.name,
        api=options.backend,
        precision=options.precision,
        options=_recorded(draft, options),
        blob_bytes=len(blob),
        files={name: sha256_of(content) for name, content in sorted(files.items())},
        requires=_requires(layout.pools, programs, options),
        programs=tuple(programs),
        pools=tuple(layout.pools),
        buffers=tuple(buffers),
        steps=tuple(draft.steps),
        inputs=tuple(draft.inputs),
        outputs=tuple(draft.outputs),
        stages=tuple(draft.stages),
        generation=draft.generation,
    )
    return Bundle(plan, files)


def _place_buffers(draft: Draft, places: Mapping[str, Place]) -> tuple[list[Buffer], Content]:
    """Placed buffers, and the blob: the weights' content, each from the beginning of a cache's line on."""
    buffers: list[Buffer] = []
    parts: list[tuple[DraftContent, int]] = []
    end = 0
    for name, place in places.items():
        checkpoint()
        buffer = draft.buffers[name]
        start = None
        if buffer.content is not None:
            start, end = end, -(-(end + buffer.size) // _LINE) * _LINE
            parts.append((buffer.content, end - start))
        buffers.append(
            Buffer(
                id=name,
                pool=place.pool,
                offset=place.offset,
                bytes=buffer.size,
                role=buffer.role,
                tensor=buffer.tensor,
                blob_offset=start,
            )
        )
    return buffers, content_of(_filled(parts), end)


def _filled(parts: list[tuple[DraftContent, int]]) -> Iterator[Any]:
    """Yield contents in pieces, each filled up to its size."""
    for content, size in parts:
        yield from (content,) if isinstance(content, bytes) else content
        yield bytes(size - len(content))


def _requires(pools: list[Pool], programs: list[Program], options: Options) -> Requires:
    pools = [pool for pool in pools if not pool.api]
    programs = [program for program in programs if not program.api]
    sizes = [pool.bytes for pool in pools]
    return Requires(
        total_bytes=sum(sizes),
        max_buffer_bytes=max(sizes, default=0),
        work_group=max((p.work_group[0] * p.work_group[1] * p.work_group[2] for p in programs), default=1),
        local_bytes=max((program.local_bytes for program in programs), default=0),
        fp16=options.half,
    )


def _recorded(draft: Draft, options: Options) -> dict[str, int | str | bool]:
    """The options, those that a layer has of its own, each layer's algorithm after `auto`, and what it refused."""
    asked: dict[str, int | str | bool] = {name: getattr(options, name) for name in COMPILE_AXES}
    if options.keep_all:
        asked |= {"fuse": "none", "keep_all": True}
    asked["memory"] = draft.saved
    chosen = {f"algorithm:{layer}": name for layer, name in draft.chosen.items()}
    refused = {f"{REFUSED}{layer}": why for layer, why in draft.refused.items()}
    divided = {f"parts:{layer}": words for layer, words in draft.in_parts.items()}
    own = {f"{name}:{layer}": value for layer, each in options.layers.items() for name, value in each.items()}
    return {
        **asked,
        **own,
        **chosen,
        **refused,
        **divided,
    }
