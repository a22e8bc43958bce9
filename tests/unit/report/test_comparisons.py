"""Backends side by side, from which size on the GPU pays, and published figures: said as such, counted nowhere."""

from __future__ import annotations

from io import StringIO
from random import Random

import pytest
from rich.console import Console

from orchestrator.analysis.comparison import compare, rows_of, sides_of, with_engines
from orchestrator.figures.brief import brief_of
from orchestrator.model.device import OURS, Api, Source
from orchestrator.model.event import Setup
from orchestrator.model.experiment import Experiment, Published
from orchestrator.model.record import Record
from orchestrator.report import console, export, wording
from orchestrator.report.html import render
from orchestrator.report.section import Section
from orchestrator.report.sections import sections

from .records import Whole, built, cell, experiment, record

TABLE = Published.model_validate(
    {
        "note": "Of another phone.",
        "study": {
            "source": "Somebody, 2018",
            "cells": [{"table": "2", "title": "gain", "columns": {"gain": "x"}, "rows": {"PC": [1.67], "A9": [None]}}],
        },
        "tables": [{"table": "2", "columns": {"gain": {"at": {"backend": "opencl"}, "over": {"backend": "cpu"}}}}],
    }
)
GPU_MS = {16: 4.0, 64: 5.0, 256: 6.0}
CPU_MS = {16: 0.004, 64: 10.0, 256: 60.0}


def swept(
    times: dict[Api, dict[int, float]],
    asked: Experiment | None = None,
    setup: dict[Api, dict[str, int]] | None = None,
) -> Whole:
    """`setup`: ms of its steps by backend."""
    found = [(cell(api, network=f"matmul_{n}"), ms) for api, by_size in times.items() for n, ms in by_size.items()]
    records: list[Record] = [
        record(one, [ms] * 3, block=block, token=block + 1, serial=serial, source=source).model_copy(
            update={"setup": steps_of((setup or {}).get(one.backend, {}))}
        )
        for one, ms in found
        for block in range(3)
        for serial, source in (("phone-2", Source.PHONE), ("phone-1", Source.VIRTUAL))
    ]
    return built(
        "e-1",
        asked or experiment(),
        cells={one.cell_id: one for one, _ in found},
        records=records,
        outcomes={},
        now=1e9,
    )


def steps_of(spent_ms: dict[str, int]) -> tuple[Setup, ...]:
    return tuple(
        Setup(seq=0, t_ns=0, step=name, start_ns=0, duration_ns=ms * 1_000_000) for name, ms in spent_ms.items()
    )


def part(content: Whole, name: str) -> Section:
    return next(section for section in sections(content) if section.name == name)


def printed(content: Whole, width: int = 120) -> str:
    buffer = StringIO()
    Console(file=buffer, width=width).print(console.render(content))
    return buffer.getvalue()


def test_backends_stand_side_by_side_by_device_and_size() -> None:
    section = part(swept({Api.OPENCL: GPU_MS, Api.VULKAN: {16: 2.0}, Api.CPU: CPU_MS}), "backends")
    assert [column.name for column in section.columns[2:6]] == [
        "opencl ms", "vulkan ms", "cpu ms", "speed-up of\nOpenCL over Vulkan",
    ]  # fmt: skip
    assert [row[:2] for row in section.rows] == [
        (device, f"matmul_{n} fp32") for device in ("phone-1 VIRTUAL", "phone-2") for n in (16, 64, 256)
    ]
    assert section.rows[0][2:6] == ("4.00", "2.00", "0.00400", "0.50x [0.32, 0.78]")  # of whole ms
    assert section.rows[1][2:6] == ("5.00", "", "10.0", "")


def test_an_axis_of_one_backend_alone_stands_beside_what_the_others_have() -> None:
    """Study P: threads of the CPU. An axis that both have has to agree."""
    asked: list[tuple[str, Api, dict[str, int | str | bool], float]] = [
        ("lenet", Api.OPENCL, {}, 4.0),
        ("lenet", Api.VULKAN, {}, 8.0),
        ("lenet", Api.CPU, {"threads": 1}, 16.0),
        ("lenet", Api.CPU, {"threads": 4}, 6.0),
        ("alexnet", Api.OPENCL, {"algorithm": "dot"}, 1.0),
        ("alexnet", Api.VULKAN, {"algorithm": "dot"}, 2.0),
        ("alexnet", Api.CPU, {"algorithm": "im2col", "threads": 1}, 3.0),
    ]
    cells = [(cell(api, network=network).model_copy(update={"options": own}), ms) for network, api, own, ms in asked]
    records = [record(one, [ms] * 3, block=block, token=block + 1) for one, ms in cells for block in range(2)]
    content = built(
        "e-1", experiment(), cells={one.cell_id: one for one, _ in cells}, records=records, outcomes={}, now=1e9
    )
    assert {row[1]: row[2:5] for row in part(content, "backends").rows} == {
        "lenet fp32 threads=1": ("4.00", "8.00", "16.0"),
        "lenet fp32 threads=4": ("4.00", "8.00", "6.00"),
        "alexnet fp32 algorithm=dot": ("1.00", "2.00", ""),
    }


def test_beside_other_engines_ours_is_named_and_alone_it_is_not(seed: int) -> None:
    rng = Random(seed)
    for _ in range(20):
        names = rng.sample(["pocketfarm", "onnxruntime", "ncnn", "mnn"], rng.randint(1, 4))
        cells = [
            cell(Api.CPU).model_copy(update={"options": {} if name == OURS.name else {"engine": name}})
            for name in names
        ]  # fmt: skip
        content = built(
            "e", experiment(), cells={each.cell_id: each for each in cells}, outcomes={}, now=1e9,
            records=[record(each, [1.0, 2.0]) for each in cells],
        )  # fmt: skip
        told = {each.engine: each.label.partition("engine=")[2] for each in content.summaries}
        assert told == {name: "" if names == [OURS.name] else name for name in names}
        rows = rows_of(map(brief_of, content.blocks), {each.cell_id: each for each in cells})
        compared = {row.options.get("engine", "") for row in with_engines(compare(rows, rows))}
        assert compared == set(told.values())


def test_an_engine_stands_beside_ours_on_its_own_backend() -> None:
    """No time of one engine is in another's row, whatever axes they share."""
    asked: list[tuple[Api, dict[str, int | str | bool], float]] = [
        (Api.VULKAN, {}, 8.0),
        (Api.CPU, {"threads": 1}, 16.0),
        (Api.CPU, {"threads": 1, "engine": "onnxruntime"}, 24.0),
        (Api.VULKAN, {"engine": "ncnn"}, 4.0),
    ]
    cells = [(cell(api, network="lenet").model_copy(update={"options": own}), ms) for api, own, ms in asked]
    records = [record(one, [ms] * 3, block=block, token=block + 1) for one, ms in cells for block in range(3)]
    section = part(
        built("e-1", experiment(), cells={one.cell_id: one for one, _ in cells}, records=records, outcomes={}, now=1e9),
        "backends",
    )
    assert section.title == "Engines side by side"
    assert [row[2:] for row in section.rows] == [
        ("ncnn vulkan", "4.00", "0.50x [0.40, 0.62]"),
        ("pocketfarm vulkan", "8.00", ""),
        ("pocketfarm cpu", "16.0", ""),
        ("onnxruntime cpu", "24.0", "1.50x [1.34, 1.67]"),
    ]


def test_a_speed_up_is_the_ratio_that_a_comparison_tells() -> None:
    """It is the quotient of the medians beside it, and its interval that of paired rounds."""
    times = {Api.OPENCL: [5.0, 5.5, 6.0, 5.2], Api.CPU: [10.0, 12.0, 13.0, 11.0]}
    cells = {api: cell(api) for api in times}
    turns = [
        record(cells[api], [ms] * 3, block=block, token=2 * block + turn + 1)
        for block in range(4)
        for turn, (api, ms) in enumerate((api, each[block]) for api, each in times.items())
    ]
    content = built(
        "e-1", experiment(), cells={each.cell_id: each for each in cells.values()}, records=turns, outcomes={}, now=1e9
    )
    rows = rows_of(map(brief_of, content.blocks), {each.cell_id: each for each in cells.values()})
    found = [each for each in compare(*sides_of(rows, "backend", "opencl", "cpu")) if each.metric == "latency"]
    (section,) = (each for each in sections(content) if each.name == "backends")
    assert found[0].interval is not None
    text, interval = wording.ratio(11.5 / 5.35, found[0].interval)
    assert section.rows[0][2:] == ("5.35", "11.5", f"{text}x {interval}")
    (told,) = export.as_data(content)["side_by_side"]
    assert told["speed_up"] == told["over_ms"] / told["ms"] == pytest.approx(11.5 / 5.35)
    assert told["interval"]["low"] == pytest.approx(found[0].interval.low)
    assert "OpenCL is 2.1" in printed(content)


@pytest.mark.parametrize(
    ("cpu_ms", "words"),
    [
        (CPU_MS, "from 64, not yet at 16"),
        ({16: 8.0, 64: 10.0, 256: 60.0}, "from 16 or less"),
        ({16: 8.0, 64: 10.0, 256: 3.0}, "at none of them"),
        ({16: 8.0, 64: 3.0, 256: 60.0}, "from 256, not yet at 64"),
    ],
)
def test_the_gpu_pays_from_the_size_from_which_on_it_stays_ahead(cpu_ms: dict[int, float], words: str) -> None:
    row = part(swept({Api.OPENCL: GPU_MS, Api.CPU: cpu_ms}), "pays-from").rows[0]
    assert row[1:7] == ("matmul fp32", "opencl", "CPU", "inference", "16 to 256", words)


def test_the_gpu_pays_later_over_a_faster_engine() -> None:
    """Study P's own baseline: a library's CPU kernels. Their times have copies inside, and so are no bare inference."""
    slow = swept({Api.OPENCL: GPU_MS, Api.CPU: CPU_MS}, setup={api: {"build": 1} for api in (Api.OPENCL, Api.CPU)})
    found = [cell(Api.CPU, network=f"matmul_{n}").model_copy(update={"options": {"engine": "ncnn"}}) for n in GPU_MS]
    theirs = {one.cell_id: ms for one, ms in zip(found, (0.002, 4.5, 40.0), strict=True)}
    records = [
        record(one, [theirs[one.cell_id]] * 3, block=block, token=100 + block, serial="phone-2", source=Source.PHONE)
        for one in found
        for block in range(3)
    ]
    cells = {each.cell_id: each for each in (*found, *(cell(api, network=f"matmul_{n}") for api in (Api.OPENCL, Api.CPU)
                                                         for n in GPU_MS))}  # fmt: skip
    content = built("e-1", experiment(), cells=cells, records=[*slow.records, *records], outcomes={}, now=1e9)
    rows = [row for row in part(content, "pays-from").rows if row[0] == "phone-2" and row[4] != "with set-up"]
    assert {(row[3], row[4]): row[6] for row in rows} == {
        ("pocketfarm cpu", "inference"): "from 64, not yet at 16",
        ("pocketfarm cpu", "with copies"): "from 64, not yet at 16",
        ("ncnn cpu", "with copies"): "from 256, not yet at 64",
    }


def test_copies_and_set_up_count_against_the_gpu_where_they_are_asked_for() -> None:
    """A GPU that wins from 64 on without them, at 256 with 20 ms of copies, and nowhere with 800 ms of building."""
    setup = {Api.OPENCL: {"build": 800, "input": 15, "readback": 5}, Api.CPU: {"input": 0}}
    rows = part(swept({Api.OPENCL: GPU_MS, Api.CPU: CPU_MS}, setup=setup), "pays-from").rows
    assert {row[4]: row[6] for row in rows} == {
        "inference": "from 64, not yet at 16",
        "with copies": "from 256, not yet at 64",
        "with set-up": "at none of them",
    }


def test_one_backend_or_one_size_is_no_comparison() -> None:
    names = {section.name for section in sections(swept({Api.OPENCL: GPU_MS}))}
    assert {"backends", "pays-from"} & names == set()
    assert "pays-from" not in {s.name for s in sections(swept({Api.OPENCL: {16: 1.0}, Api.CPU: {16: 1.0}}))}


def test_published_figures_are_labelled_everywhere_and_counted_nowhere() -> None:
    asked = experiment().model_copy(update={"published": TABLE})
    with_table, without = swept({Api.OPENCL: GPU_MS}, asked), swept({Api.OPENCL: GPU_MS})
    assert with_table.summaries == without.summaries
    for text in (render(with_table), printed(with_table)):
        assert "Published, not measured here: Somebody, 2018" in text and "1.67 x" in text
        assert "Of another phone. Other devices, other days: figures of theirs, none of ours." in text
    assert export.as_data(with_table)["spec"]["published"]["study"]["cells"][0]["rows"] == {"PC": [1.67], "A9": [None]}
    assert "Published" not in printed(without)
