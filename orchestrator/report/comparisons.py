"""The parts of a report that compare: backends, a GPU with the CPU by size, and ours with what was published."""

from __future__ import annotations

from orchestrator.analysis.comparison.backends import PaysFrom, SideBySide, side_by_side
from orchestrator.analysis.comparison.backends import pays_from as found_pays_from
from orchestrator.model.device import Api, Source
from orchestrator.model.experiment import Experiment

from . import wording
from .content import Content
from .section import Column, Section


def backends(content: Content) -> Section:
    """Medians of the same work by several backends of a device."""
    rows = _rows(content)
    names = wording.naming(content.summaries)
    used = [api for api in Api if any(api in row.ms for row in rows)]
    pairs = [pair for pair in PAIRS if set(pair) <= set(used)]
    columns = (
        Column("device"), Column("cell"), *(Column(f"{api} ms", True) for api in used),
        *(Column(f"speed-up of\n{NAMES[one]} over {NAMES[other]}", True, other is Api.CPU) for other, one in pairs),
    )  # fmt: skip
    note = (
        "Medians of the same work on one device. Speed-up: how many times as fast; below one it is slower. It is the "
        "ratio that `farm compare --sides backend=...` tells, with its interval: of geometric means of paired blocks."
    )
    texts = tuple(
        (
            _device(row.serial, row.source),
            wording.without(f"{row.workload} {row.rest}" if names.workload else row.rest, names.shared),
            *(wording.ms(row.ms[api]) if api in row.ms else "" for api in used),
            *(_speed_up(row, one, other) for other, one in pairs),
        )
        for row in rows
    )
    return Section("backends", "Backends side by side", note, columns, texts)


NAMES = {Api.OPENCL: "OpenCL", Api.VULKAN: "Vulkan", Api.CPU: "CPU"}
PAIRS = ((Api.VULKAN, Api.OPENCL), (Api.CPU, Api.OPENCL), (Api.CPU, Api.VULKAN))


def _speed_up(row: SideBySide, one: Api, other: Api) -> str:
    found = row.speed_up(one, other)
    return "" if found is None else f"{found:.2f}x"


def _rows(content: Content) -> list[SideBySide]:
    return side_by_side(content.summaries, content.blocks, content.experiment.sampling.mode)


def pays_from(content: Content) -> Section:
    """Study P's question, for each operation that ran at several sizes."""
    found, names = found_pays_from(_rows(content)), wording.naming(content.summaries)
    columns = (
        Column("device"), Column("operation"), Column("backend"), Column("sizes"), Column("faster than the CPU"),
        Column("smallest", True), Column("largest", True),
    )  # fmt: skip
    rows = tuple(
        (
            _device(one.serial, one.source), wording.without(f"{one.operation} {one.rest}", names.shared), one.backend,
            f"{one.sizes[0]} to {one.sizes[-1]}", _from(one), f"{one.ratios[0]:.3g}x", f"{one.ratios[-1]:.3g}x",
        )
        for one in found
    )  # fmt: skip
    note = (
        "From which size on a GPU backend is faster than our CPU backend at every larger size that was measured; and "
        "its speed over the CPU's at the smallest and at the largest size."
    )
    return Section("pays-from", "When the GPU pays", note, columns, rows)


def _from(one: PaysFrom) -> str:
    if one.lead_at == len(one.sizes):
        return "at none of them"
    if one.lead_at == 0:
        return f"from {one.sizes[0]} or less"
    return f"from {one.sizes[one.lead_at]}, not yet at {one.sizes[one.lead_at - 1]}"


def published(experiment: Experiment) -> Section:
    """The experiment file's own table of published figures."""
    found = experiment.published
    if found is None:
        return Section("published", "Published", "", (), ())
    note = f"{found.note} Other devices, other days: figures of theirs, none of ours.".strip()
    title = f"Published, not measured here: {found.source}"
    return Section("published", title, note, tuple(map(Column, found.columns)), found.rows, terminal_note=note)


def _device(serial: str, source: Source) -> str:
    word = wording.source_word(source)
    return f"{serial} {word}" if word.isupper() else serial
