"""Published figures beside ours: cell by cell, with proportions judged and no size."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from orchestrator.analysis.reproduction import Beside, reproduce
from orchestrator.analysis.reproduction.judgement import Bounds, judge_by_memory
from orchestrator.model.device import Api, Precision, Source
from orchestrator.model.event import Layer, Setup
from orchestrator.model.experiment import Published, Workload
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode, LayerMemory, OutputCheck, Record
from orchestrator.report import charts, export
from orchestrator.report.drawing import to_svg
from orchestrator.report.html import render

from .records import MS, Whole, built, experiment, powered, record, trained
from .test_comparisons import part, printed

NOISE = (1.0, 1.01, 0.99, 1.02, 0.98)
Times = Sequence[tuple[Cell, Sequence[float]]]
S7 = "SM-G930F"


def cell(backend: str = "opencl", network: str = "lenet", precision: str = "fp32", **options: Any) -> Cell:
    return Cell(
        workload=Workload(network=network), backend=Api(backend), precision=Precision(precision), options=options
    )


def times(ms: float, blocks: int = 5) -> list[float]:
    return [ms * factor for factor in NOISE[:blocks]]


def measured(published: dict[str, Any], found: Times, model: str = "PC") -> Whole:
    """Rounds in which each cell ran once, one after another."""
    cells = [one for one, _ in found]
    records = [
        record(one, [own[block]] * 3, block=block, token=block * len(cells) + turn + 1, model=model)
        for block in range(max((len(own) for _, own in found), default=0))
        for turn, (one, own) in enumerate(found)
    ]
    return reported(published, cells, records)


def reported(published: dict[str, Any], cells: Sequence[Cell], records: Sequence[Record]) -> Whole:
    study = {"source": "Somebody, 2016", **published.pop("study", {})}
    asked = experiment().model_copy(update={"published": Published.model_validate({"study": study, **published})})
    return built("e", asked, cells={one.cell_id: one for one in cells}, records=records, outcomes={}, now=1e9)


def beside(content: Whole) -> list[Beside]:
    assert content.reproduction is not None
    return list(content.reproduction.beside)


def whole(rows: Mapping[str, list[float | None]], unit: str = "s") -> dict[str, Any]:
    """A table of whole networks, and where ours has them."""
    columns = {"sequential": unit, "precise": unit, "imprecise": unit, "speed-up": "x"}
    part = {"table": "VI", "title": "whole", "columns": columns, "rows": dict(rows)}
    ours = {"backend": "opencl", "precision": "fp32"}
    table = {
        "table": "VI",
        "base": "precise",
        "columns": {
            "sequential": {"at": {"backend": "cpu", "algorithm": "sequential"}},
            "precise": {"at": ours},
            "imprecise": {"at": {**ours, "precision": "relaxed"}},
            "speed-up": {"at": {**ours, "precision": "relaxed"}, "over": {"precision": "fp32"}},
        },
    }
    return {"study": {"devices": {"S7": ["SM-G930*"], "N5": ["Nexus 5"]}, "cells": [part]}, "tables": [table]}


S7_ROW: Mapping[str, list[float | None]] = {"S7": [12.0, 0.4, 0.2, 2.0]}
SEQUENTIAL, PRECISE = cell("cpu", algorithm="sequential"), cell(granularity=8)
SLOWER_G, IMPRECISE = cell(granularity=64), cell(precision="relaxed")
SIZE = "not comparable"
"""The size of a figure of another device says nothing."""


@pytest.mark.parametrize(
    ("ours_ms", "verdicts"),
    [
        ((1200, 40, 20), ["reproduced", SIZE, "reproduced", "reproduced"]),
        ((60, 40, 20), ["different", SIZE, "reproduced", "reproduced"]),  # 30 times there, 1.5 times in ours
        ((1200, 40, 31.7), ["reproduced", SIZE, "different", "different"]),  # 2 times there, 1.26 in ours
        ((1200, 40, 25.4), ["reproduced", SIZE, "not decided", "not decided"]),  # about the tolerance's edge
        ((1200, 20, 40), ["different", SIZE, "different", "different"]),
    ],
)
def test_proportions_are_judged_and_no_size(ours_ms: Any, verdicts: list[str]) -> None:
    sequential, precise, imprecise = ours_ms
    restless = [value * 1.03**sign for value, sign in zip(times(imprecise), (1, -1, 1, -1, 1), strict=True)]
    ours = [
        (SEQUENTIAL, times(sequential)),
        (PRECISE, times(precise)),
        (SLOWER_G, times(10 * precise)),
        (IMPRECISE, restless),
    ]
    found = beside(measured(whole(S7_ROW), ours, model=S7))
    assert [one.verdict for one in found] == verdicts
    assert {one.published_on for one in found} == {"S7"} and all(one.same_model for one in found)
    assert found[1].cell == "lenet opencl fp32 granularity=8"  # the better one of the two that the keys fit
    assert found[0].ours == pytest.approx(sequential / 1000, rel=0.02) and found[0].source == "virtual"
    assert found[0].ratio == pytest.approx(sequential / 12000, rel=0.02)


def test_a_sum_of_some_layers_is_no_time_of_the_network() -> None:
    doubt = Doubt(code=DoubtCode.LAYERS_MISSING, detail="without ip1")
    all_layers, parts = (record(one, [30.0] * 3) for one in (SEQUENTIAL, PRECISE))
    parts = parts.model_copy(update={"doubts": (doubt,)})
    asked = whole(S7_ROW)
    layer = {"table": "IV", "title": "layers", "columns": {"precise": "s"}, "rows": {"S7": [0.002]}}
    asked["study"]["cells"].append(layer)
    asked["tables"].append({"table": "IV", "columns": {"precise": {"at": {"backend": "opencl", "layer": "conv1"}}}})
    found = beside(reported(asked, [SEQUENTIAL, PRECISE], [all_layers, parts]))
    of = {(one.column, one.published): (one.ours, one.why) for one in found}
    assert of["precise", 0.4] == (None, "without ip1") and of["sequential", 12.0][0] is not None
    assert of["precise", 0.002][0] == pytest.approx(0.003), "of the layers that were recorded"


def test_a_layer_that_refused_its_granularity_is_no_figure_of_it() -> None:
    """It is none as a layer, nor within its network, nor as the best."""
    why = "dot: 10 channels over a granularity of 4 are no multiple of four"
    cells = {g: cell(algorithm="dot", granularity=g) for g in (1, 2, 4)}
    records = []
    for block, noise in enumerate(NOISE):
        for turn, (g, own) in enumerate(cells.items()):
            of = record(own, [20.0 / g] * 3, block=block, token=3 * block + turn + 1)
            layer = Layer(seq=0, t_ns=0, index=0, layer="conv1", program="p", duration_ns=round(noise * MS / g))
            planned = LayerMemory(layer="conv1", live_bytes=1, weight_bytes=1, refused=why if g == 4 else "")
            doubts = (Doubt(code=DoubtCode.LAYERS_REFUSED, detail=f"conv1, {why}"),) if g == 4 else ()
            records.append(of.model_copy(update={"layers": (layer,), "layer_memory": (planned,), "doubts": doubts}))
    asked = whole({"S7": [None, 0.02, None, None]})
    asked["study"]["cells"] += [
        {"table": "I", "title": "best g", "columns": {"conv1": ""}, "rows": {"S7": [2]}},
        {"table": "IV", "title": "layers", "columns": {"precise": "ms"}, "rows": {"S7": [1.0]}},
    ]
    layer_at = {"columns": {"precise": {"at": {"layer": "conv1"}}}}
    asked["tables"] += [
        {"table": "I", "metric": "best", "axis": "granularity", "columns": {"conv1": {"at": {"layer": "conv1"}}}},
        {"table": "IV", **layer_at},
    ]
    found = {one.table: one for one in beside(reported(asked, [*cells.values()], records))}
    assert [found[f"{name} (table {number})"].ours for name, number in (("whole", "VI"), ("best g", "I"))] == [0.01, 2]
    assert found["layers (table IV)"].ours == pytest.approx(0.5)
    asked = whole({"S7": [None, 0.02, None, None]})
    asked["study"]["cells"].append(BEST["study"]["cells"][0])
    asked["tables"].append(BEST["tables"][0])
    found = {one.metric: one for one in beside(reported(asked, [cells[4]], records[2::3]))}
    assert (found["latency"].ours, found["latency"].why) == (None, f"conv1, {why}")
    assert (found["best"].ours, found["best"].why) == (None, why)


def test_ours_is_written_as_a_person_would_write_it() -> None:
    """No power of ten: 3800 ms, not 3.8e+03."""
    asked = whole({"S7": [12331.82, 436.71, 207.1, None]}, "ms")
    content = measured(asked, [(SEQUENTIAL, times(3800)), (PRECISE, times(349))])
    assert [row[4] for row in part(content, "published-0").rows] == ["3800 ms", "349 ms", ""]


def test_a_device_of_no_published_model_stands_beside_all_and_gaps_say_why() -> None:
    asked = whole({**S7_ROW, "N5": [40.0, 0.5, None, None]})
    found = beside(measured(asked, [(PRECISE, times(40)), (IMPRECISE, times(20))]))
    verdicts = {(one.published_on, one.column): (one.verdict, one.why) for one in found}
    assert verdicts["S7", "sequential"] == ("not comparable", "no configuration of this experiment is that")
    assert verdicts["S7", "imprecise"][0] == verdicts["S7", "speed-up"][0] == "reproduced"
    assert verdicts["N5", "precise"][0] == "not comparable" and "size" in verdicts["N5", "precise"][1]
    assert ("N5", "imprecise") not in verdicts  # nothing was published


@pytest.mark.parametrize("blocks", range(1, 5))
def test_few_blocks_decide_nothing(blocks: int) -> None:
    found = beside(measured(whole(S7_ROW), [(PRECISE, times(40, blocks)), (IMPRECISE, times(20, blocks))]))
    judged = [one for one in found if one.ours and one.verdict != SIZE]
    assert {one.verdict for one in judged} == {"not decided"} and len(judged) == 2
    assert all("needs 5 blocks" in one.why for one in judged)


@pytest.mark.parametrize(("precise_ms", "verdict"), [(400, "reproduced"), (480, "not decided"), (600, "different")])
def test_a_phone_of_the_published_model_is_judged_by_size_too(precise_ms: float, verdict: str) -> None:
    records = [
        record(PRECISE, [precise_ms * (1 + 0.04 * noise)] * 3, block=block, token=block + 1, model=S7)
        for block, noise in enumerate((-2, 0, 2, -1, 1))
    ]
    records = [each.model_copy(update={"source": Source.PHONE}) for each in records]
    found = {one.column: one.verdict for one in beside(reported(whole(S7_ROW), [PRECISE], records))}
    assert found["precise"] == verdict and found["sequential"] == SIZE


POWERED = {
    "table": "V", "title": "power", "columns": {"baseline": "mW", "load": "mW", "above": "mW"},
    "rows": {"S7": [173.18, 1552.51, 1379.33]},
}  # fmt: skip


def test_power_of_a_virtual_phone_is_modelled_and_a_recording_is_played_back() -> None:
    heads = {"baseline": {"metric": "idle_power"}, "load": {"metric": "load_power"}, "above": {"metric": "net_power"}}
    against = {"table": "V", "row": "S7", "column": "load", "but": "another sum"}
    study = {"devices": {"S7": ["SM-G930*"]}, "cells": [POWERED], "contradictions": [against]}
    one = cell()
    made = [record(one, [100.0] * 10, block=b, token=b + 1, model="PC") for b in range(5)]
    records = [powered(each, 0.5, 2.0 + b / 100) for b, each in enumerate(made)]
    for source, verdict in (("virtual", "modelled"), ("replay", "played back"), ("phone", SIZE)):
        own = [each.model_copy(update={"source": Source(source)}) for each in records]
        content = reported({"study": dict(study), "tables": [{"table": "V", "columns": heads}]}, [one], own)
        idle, load, above = beside(content)
        assert [each.ours for each in (idle, load, above)] == pytest.approx([500, 2020, 1520], rel=0.02)
        assert {each.verdict for each in (idle, load, above)} == {verdict}
        assert "contradicts itself: another sum" in load.why and "contradicts" not in idle.why
        assert content.reproduction is not None
        assert list(content.reproduction.counts.values()) == [{SIZE: 3} if source == "phone" else {}]


@pytest.mark.parametrize(
    ("model", "source", "verdict"),
    [("SM-A1", "phone", SIZE), (S7, "phone", SIZE), ("", "import", "played back"), (S7, "replay", "played back")],
)
def test_a_size_of_a_device_that_the_text_does_not_name_is_not_judged(model: str, source: str, verdict: str) -> None:
    asked = whole({"direct": [12.0, 0.4, 0.2, 2.0]})
    made = [record(PRECISE, [400.0] * 3, block=b, token=b + 1, model=model, source=Source(source)) for b in range(5)]
    content = reported(asked, [PRECISE], made)
    (found,) = [each for each in beside(content) if each.ours is not None]
    assert (found.column, found.verdict) == ("precise", verdict) and content.reproduction is not None


def test_a_phone_beside_a_virtual_one_is_modelled_where_that_one_is_and_logs_are_in_no_score() -> None:
    head = {"metric": "net_power", "over": {"device": "N5"}}
    devices = {"S7": ["SM-G930*"], "N5": ["Nexus 5"]}
    share = {"table": "V", "title": "power", "columns": {"above": "x"}, "rows": {"S7": [1.0]}}
    one, wanted = cell(), {"phone": ("reproduced", 1), "virtual": ("modelled", 0), "replay": ("played back", 0)}
    for source, (verdict, score) in wanted.items():
        both = ((S7, Source.PHONE), ("Nexus 5", Source(source)))
        records = [
            powered(record(one, [9.0] * 9, block=b, token=2 * b + k + 1, serial=m, source=s, model=m), 1, 2, each_s=40)
            for b in range(5) for k, (m, s) in enumerate(both)
        ]  # fmt: skip
        for kind in ("cells", "logs"):
            study = {"devices": devices, kind: [share]}
            table = {"table": "V", "tolerance": 1.5, "columns": {"above": head}}
            content = reported({"study": study, "tables": [table]}, [one], records)
            (found,) = [each for each in beside(content) if each.serial == S7]
            assert found.verdict == verdict, found.why
            assert content.reproduction and sum(content.reproduction.counts[f"{S7} phone"].values()) == (
                score if kind == "cells" else 0
            )


def trainings(draw: np.random.Generator, serial: str, source: str, slower: float, net_w: float) -> list[Record]:
    """Five blocks of two stages of random lengths, which take so many times as long as 2 s and 4 s an epoch."""
    made = []
    for block in range(5):
        noise = 1 + draw.uniform(-0.01, 0.01)
        stages = {"pretrain:a": (3, 2 * slower * noise, net_w), "train": (9, 4 * slower * noise, 2 * net_w)}
        one = record(TRAINS, [1.0], block=block, token=block + 1, serial=serial, source=Source(source), model=serial)
        made.append(trained(one, stages, idle_w=0.5, gap_s=0.1))
    return made


TRAINS = Cell(
    workload=Workload.model_validate(
        {"network": "classifier_784", "training": {"dataset": {"named": "digits"}, "epochs": 9, "pretraining": 3}}
    ),
    backend=Api.OPENCL, precision=Precision.FP32,
)  # fmt: skip
EPOCH = {
    "table": "II", "title": "one epoch", "columns": {"time": "s", "power": "W", "energy": "J", "share": "%"},
    "rows": {"mGPU1": [805, 0.242, 195, 5.0]},
}  # fmt: skip


def epochs_beside(records: Sequence[Record], times: float = 15.0) -> tuple[list[Beside], Whole]:
    heads: dict[str, Any] = {name: {"metric": metric} for name, metric in
                             (("time", "latency"), ("power", "net_power"), ("energy", "energy"))}  # fmt: skip
    heads["share"] = {"metric": "energy", "over": {"device": "workstation"}}
    of, over = {"device": "phone"}, {"device": "workstation"}
    findings = [
        {"text": "slower", "of": of, "over": over, "expect": "alike", "times": times},
        {"text": "less", "metric": "energy", "of": of, "over": over, "expect": "less", "times": 0.06},
    ]
    study = {"devices": {"mGPU1": []}, "cells": [EPOCH]}
    asked = {"study": study, "tables": [{"table": "II", "columns": heads}], "findings": findings}
    content = reported(asked, [TRAINS], records)
    return beside(content), content


def test_energy_time_and_power_are_of_the_same_epochs(seed: int) -> None:
    """One epoch of each stage together, of stages that differ in length and power: the energy is power times time."""
    draw = np.random.default_rng(seed)
    slower, net_w = draw.uniform(1, 3), draw.uniform(0.5, 3)
    found, content = epochs_beside(trainings(draw, "A", "phone", slower, net_w))
    time, power, energy, share = (one.ours for one in found[:4])
    gaps = 2 / 3 * 0.1, 8 / 9 * 0.1  # of an epoch, between those of a stage, at the stage's power
    assert time == pytest.approx(6 * slower + sum(gaps), rel=0.02)
    assert energy == pytest.approx((10 * slower + gaps[0] + 2 * gaps[1]) * net_w, rel=0.02)
    assert time and power and energy == pytest.approx(time * power, rel=1e-6) and share is None
    assert {one.why for one in found[3:]} == {"no other workstation to compare it with in this experiment"}
    rows = part(content, "training-stages").rows
    assert [row[2] for row in rows] == ["pretrain:a", "train", "all"] and rows[1][3] == "9"
    for *_, ms, watts, joules in rows:
        assert float(joules) == pytest.approx(float(ms) * float(watts) / 1e3, rel=2e-3)
    (told,) = export.as_data(content)["trained"]
    assert told["whole"]["net_power_w"] == pytest.approx(told["whole"]["epoch_j"] / told["whole"]["epoch_ms"] * 1e3)
    (summary,) = content.summaries
    assert summary.latency and summary.latency.median_ms == pytest.approx(4e3 * slower, rel=0.02)
    last = [
        block.energy.per_inference_j.value for block in content.blocks if block.energy and block.energy.per_inference_j
    ]
    assert median(last) == pytest.approx((8 * slower + 2 * gaps[1]) * net_w, rel=0.02), "of the last stage, as the time"


@pytest.mark.parametrize(("source", "energy"), [("phone", "reproduced"), ("virtual", "modelled")])
def test_devices_of_one_experiment_are_compared(source: str, energy: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    records = [*trainings(draw, "A", source, 15, 0.02), *trainings(draw, "PC", "workstation", 1, 6.0)]
    found, _ = epochs_beside(records)
    told = {(one.serial, one.column or one.row): one for one in found}
    assert told["A", "slower"].verdict == "reproduced" and "over PC" in told["A", "slower"].cell
    assert told["A", "less"].verdict == told["A", "share"].verdict == energy
    assert told["A", "share"].ours == pytest.approx(5.0, rel=0.05)
    assert ("PC", "less") not in told and told["PC", "share"].verdict == "not comparable"
    again, _ = epochs_beside(records, times=5.0)
    assert {one.verdict for one in again if one.row == "slower"} == {"different"}
    no_gauge = {"power": (), "doubts": (Doubt(code=DoubtCode.NO_POWER_GAUGE),)}
    alone, _ = epochs_beside([*records[:5], *(one.model_copy(update=no_gauge) for one in records[5:])])
    said = {one.why for one in alone if one.serial == "A" and (one.column or one.row) in ("less", "share")}
    assert said == {"what it is over: PC has no power source"}
    brief, content = epochs_beside([*records[:5], *trainings(draw, "PC", "workstation", draw.uniform(0.2, 0.7), 6.0)])
    said = {one.why for one in brief if one.serial == "A" and (one.column or one.row) in ("less", "share")}
    assert re.fullmatch(r"what it is over: a load of [\d.]+ s is too short: energy needs 30 s", " ".join(said))
    assert {row[-1] for row in part(content, "training-stages").rows if row[0].startswith("PC")} == {"too short"}


def test_limits_are_ordered_by_memory(seed: int) -> None:
    """Random devices whose limit grows with memory, or falls; where two brackets overlap nothing is decided."""
    draw = np.random.default_rng(seed)
    for _ in range(50):
        sizes = sorted(int(each) for each in draw.choice(np.arange(1, 20), 4, replace=False))
        grow = [Bounds(n * 10**9, 1000 * n, 1000 * n + draw.integers(1, 900)) for n in sizes]
        fall = [one._replace(memory=30 * 10**9 - one.memory) for one in grow]
        for found, verdict in ((grow, "reproduced"), (fall, "different")):
            place = int(draw.integers(4))
            others = [each for i, each in enumerate(found) if i != place]
            assert judge_by_memory(found[place], others).verdict == verdict
        wide = grow[0]._replace(not_run=1000 * sizes[-1] + 1)
        assert judge_by_memory(wide, grow[1:]).verdict == "not decided"
        assert judge_by_memory(grow[0], [grow[0]]).verdict == "not comparable"


def test_shares_calls_and_signals_stand_beside(seed: int) -> None:
    """A share is of the time of all layers, a call an inference with what its inputs need, by random times."""
    draw = np.random.default_rng(seed)
    ms = {name: int(draw.integers(1, 50)) for name in ("conv1", "conv1.pad", "image", "pool")}
    steps = {
        name: int(draw.integers(1, 50)) for name in ("context", "build", "upload", "allocate", "input", "readback")
    }
    one, made = cell(), []
    for block, noise in enumerate(NOISE):
        layers = tuple(
            Layer(seq=0, t_ns=0, index=i, layer=name, program="p", duration_ns=round(each * noise * MS))
            for i, (name, each) in enumerate(ms.items())
        )
        setup = tuple(Setup(seq=0, t_ns=0, step=n, start_ns=0, duration_ns=each * MS) for n, each in steps.items())  # type: ignore[arg-type]
        checks = tuple(
            OutputCheck(name="y", max_abs_difference=1, tolerance=2, ok=True, psnr_db=db) for db in (64.0, 40.0, None)
        )
        of = record(one, [100.0] * 3, block=block, token=block + 1)
        made.append(of.model_copy(update={"layers": layers, "setup": setup, "checks": checks}))
    figures = {"table": "4-1", "title": "all", "columns": {"share": "%", "call": "ms", "preparing": "ms", "PSNR": "dB"},
               "rows": {"kit": [77.1, 1, 1, 36]}}  # fmt: skip
    heads: dict[str, Any] = {"share": {"metric": "share", "at": {"layer": "*1|image"}}, "call": {"metric": "call"},
                             "preparing": {"metric": "call_setup"}, "PSNR": {"metric": "psnr"}}  # fmt: skip
    seen = [{"text": f"{than}", "metric": "psnr", "of": {"backend": "opencl"}, "expect": "more", "than": than}
            for than in (30, 50)]  # fmt: skip
    asked = {"study": {"cells": [figures]}, "tables": [{"table": "4-1", "columns": heads}], "findings": seen}
    found = beside(reported(asked, [one], made))
    each_call = steps["allocate"] + steps["input"] + steps["readback"]
    share = 100 * (ms["conv1"] + ms["image"]) / sum(ms.values())
    assert [each.ours for each in found[:4]] == pytest.approx([share, each_call + 100, each_call, 40], rel=1e-6)
    assert [each.verdict for each in found[4:]] == ["reproduced", "different"]


BEST = {
    "study": {"cells": [{"table": "I", "title": "best g", "columns": {"conv1": ""}, "rows": {"S7": [8]}}]},
    "tables": [
        {"table": "I", "metric": "best", "axis": "granularity", "columns": {"conv1": {"at": {"layer": "conv1"}}}}
    ],
}


def test_speeds_of_tokens_stand_beside_in_their_unit(seed: int) -> None:
    """Ours of prompt, answer and sustained load are what results tell; a quicker one has a ratio above one."""
    rng = np.random.default_rng(seed)
    precisions = ("fp32", "int8")
    told = {name: rng.uniform(5, 300, 2) for name in ("generated tokens", "prompt tokens", "plateau", "sustained")}
    metrics = {"generated": "token", "prompt": "prompt_token", "plateau": "plateau_token", "kept": "speed_left"}
    rows = {each: [20.0, 100.0, 30.0, 50.0] for each in precisions}
    units = dict.fromkeys(metrics, "tokens/s") | {"kept": "%"}
    published = {
        "study": {"cells": [{"table": "I", "title": "speeds", "columns": units, "rows": rows}]},
        "tables": [{
            "table": "I", "rows": {each: {"at": {"precision": each}} for each in precisions},
            "columns": {name: {"metric": metric} for name, metric in metrics.items()},
        }],
    }  # fmt: skip
    cells = [cell("cpu", precision=each) for each in precisions]
    content = reported(published, cells, [record(one, [1.0], block=n) for one in cells for n in range(5)])
    places = {one.cell_id: place for place, one in enumerate(cells)}
    blocks = [
        block.model_copy(update={"values": {name: float(own[places[block.cell_id]]) for name, own in told.items()}})
        for block in content.blocks
    ]
    found = reproduce(content.experiment.published, blocks, {one.cell_id: one for one in cells})
    assert found is not None
    for place, precision in enumerate(precisions):
        own = {each.column: each for each in found.beside if each.row == precision}
        for name, quantity in (("generated", "generated tokens"), ("prompt", "prompt tokens"), ("plateau", "plateau")):
            assert own[name].ours == pytest.approx(told[quantity][place]), name
        assert own["kept"].ours == pytest.approx(100 * told["sustained"][place] / told["plateau"][place])


@pytest.mark.parametrize(
    ("layer_ms", "verdict"),
    [
        ({4: 9.0, 8: 5.0, 16: 7.0}, "reproduced"),
        ({4: 5.0, 8: 7.0, 16: 7.0}, "different"),
        ({4: 5.0, 8: 5.001, 16: 7.0}, "not decided"),
        ({4: 5.001, 8: 5.0, 16: 7.0}, "not decided"),
        ({4: 5.0, 16: 7.0}, "not comparable"),
    ],
)
def test_an_optimum_is_equal_different_or_not_told(layer_ms: dict[int, float], verdict: str) -> None:
    cells = {g: cell(granularity=g) for g in layer_ms}
    records = []
    for block, noise in enumerate(NOISE):
        for turn, (g, ms) in enumerate(layer_ms.items()):
            of = record(cells[g], [20.0] * 3, block=block, token=block * len(cells) + turn + 1)
            other = NOISE[(block + turn) % 5]
            took = round(ms * noise * other * MS)
            layer = Layer(seq=0, t_ns=0, index=0, layer="conv1", program="p", duration_ns=took)
            records.append(of.model_copy(update={"layers": (layer,)}))
    (found,) = beside(reported(dict(BEST), list(cells.values()), records))
    assert found.verdict == verdict
    assert found.ours == (
        None if verdict == "not comparable" and 8 in layer_ms else min(layer_ms, key=layer_ms.__getitem__)
    )


@pytest.mark.parametrize(
    ("two_ms", "verdict"), [(6.0, "reproduced"), (14.0, "different"), (1.0, "different"), (9.9, "different")]
)
def test_a_speed_up_is_judged_by_itself(two_ms: float, verdict: str) -> None:
    part_ = {"table": "2", "title": "over one thread", "columns": {"LeNet": "x"}, "rows": {"PC": [1.6]}}
    head = {"at": {"backend": "cpu", "threads": 2}, "over": {"threads": 1}}
    ours = [(cell("cpu", threads=1), times(10.0)), (cell("cpu", threads=2), times(two_ms))]
    asked = {"study": {"cells": [part_]}, "tables": [{"table": "2", "columns": {"LeNet": head}}]}
    (found,) = beside(measured(asked, ours))
    assert found.verdict == verdict and found.ours == pytest.approx(10 / two_ms, rel=1e-6)


def test_a_mean_over_networks_needs_all_of_them() -> None:
    """The mean is of ratios, not of times: of 2 and 6 it is 4, though the second network takes three times as long."""
    part_ = {"table": "7-4", "title": "shapes", "columns": {"Winograd": "x"}, "rows": {"all": [4.0]}}
    at = {"network": "pynet_conv_3[34]*", "backend": "opencl", "algorithm": "winograd"}
    head = {"at": at, "over": {"algorithm": "direct"}}
    asked = {"study": {"cells": [part_]}, "tables": [{"table": "7-4", "columns": {"Winograd": head}}]}
    ours = [
        (cell(network=f"pynet_conv_{n}", algorithm=algorithm), times(ms))
        for n, fast, slow in ((33, 1.0, 2.0), (34, 3.0, 18.0))
        for algorithm, ms in (("winograd", fast), ("direct", slow))
    ]
    (found,) = beside(measured(copy.deepcopy(asked), ours))
    assert found.verdict == "reproduced" and found.ours == pytest.approx(4.0, rel=1e-6)
    (found,) = beside(measured(asked, ours[:-1]))
    assert found.verdict == "not comparable" and "over 2 networks, of which ours has 1" in found.why


def test_findings_in_words_are_judged_where_something_shows_them() -> None:
    of, over = {"backend": "opencl"}, {"backend": "cpu"}
    findings = [
        {"text": "pays", "of": of, "expect": "crosses", "over": over, "operation": "matmul"},
        {"text": "wins", "of": {**of, "network": "matmul_256"}, "expect": "less", "over": over},
        {"text": "loses", "of": {**of, "network": "matmul_256"}, "expect": "more", "over": over},
        {"text": "alike", "of": {**of, "network": "matmul_64"}, "expect": "alike", "over": {"network": "matmul_16"}},
        {"text": "said"},
    ]  # fmt: skip
    ms = {"opencl": {16: 4.0, 64: 4.4, 256: 6.0}, "cpu": {16: 0.1, 64: 10.0, 256: 60.0}}
    ours = [(cell(api, f"matmul_{n}"), times(each)) for api, sizes in ms.items() for n, each in sizes.items()]
    found = {one.row: one for one in beside(measured({"findings": findings}, ours))}
    assert {name: one.verdict for name, one in found.items()} == {
        "pays": "reproduced", "wins": "reproduced", "loses": "different", "alike": "reproduced",
        "said": "not comparable",
    }  # fmt: skip
    assert found["pays"].why == "ahead from 64, not yet at 16"


def test_the_report_counts_them_by_device_and_says_where_ours_is_from() -> None:
    ours = [(PRECISE, times(40)), (IMPRECISE, times(20)), (SEQUENTIAL, times(1200))]
    content = measured(whole(S7_ROW), ours)
    counts, table = part(content, "published"), part(content, "published-0")
    assert [column.name for column in counts.columns] == [
        "device", "reproduced", "different", "not decided", "not comparable",
    ]  # fmt: skip
    assert counts.rows == (("phone-1 VIRTUAL", "3", "0", "0", "1"),)
    assert table.rows[0][:7] == ("phone-1 VIRTUAL", "S7", "sequential", "12 s", "1.2 s", "0.1", "reproduced")
    data = export.as_data(content)["reproduction"]
    assert data["beside"][0]["published"] == 12.0
    assert data["counts"] == {"phone-1 virtual": {"reproduced": 3, "not comparable": 1}}
    asked = whole(S7_ROW)
    asked["study"]["logs"] = asked["study"].pop("cells")
    logged = part(measured(asked, ours), "published-0")
    assert (logged.title, logged.columns[3].name) == ("Logged and ours: whole (table VI)", "logged")
    page = render(content)
    assert "Published, not measured here: Somebody, 2016" in page and "Published and ours: whole (table VI)" in page
    assert "no result yet" in printed(measured(whole(S7_ROW), [], model=S7))


def test_where_nothing_is_compared_that_is_said_once_and_not_in_each_cell() -> None:
    ours = [(cell("vulkan"), times(3))]
    content = measured(whole(S7_ROW), ours)
    table, text = part(content, "published-0"), printed(content)
    assert not {"verdict", "because", "ratio", "ours"} & {column.name for column in table.columns}
    assert {row[2] for row in table.rows} == {"sequential", "precise", "imprecise", "speed-up"}
    told = "Nothing of it is compared: no configuration of this experiment is that."
    assert table.note == table.terminal_note == told and " ".join(text.split()).count(told) == 1
    assert part(measured({**whole(S7_ROW), "tables": []}, ours), "published").rows == (("nothing of it",),)


def test_a_published_curve_lies_in_the_chart_over_its_axis() -> None:
    theirs = {"4": [400], "8": [300], "16": [350]}
    study = {"cells": [{"table": "g", "title": "over g", "columns": {"S7": "ms"}, "rows": theirs}]}
    rows = {g: {"at": {"granularity": int(g)}} for g in theirs}
    asked = {"study": study, "tables": [{"table": "g", "columns": {"S7": {}}, "rows": rows}]}
    ours = [(cell(granularity=g), times(ms)) for g, ms in ((4, 40.0), (8, 30.0), (16, 35.0))]
    content = measured(copy.deepcopy(asked), ours)
    (chart,) = charts.over_axis(content.summaries, content.experiment.published)
    drawn = to_svg(chart)
    assert "Time over granularity: phone-1" in drawn and "published: S7" in drawn
    assert "mathdefault" not in drawn, "a formula is shown as it was typed"
    assert charts.over_axis(measured(asked, ours[:2]).summaries) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": {"granularty": 4}}, "neither an axis nor one of"),
        ({"at": {"backend": "cuda"}}, "backend"),
        ({"metric": "energy"}, "energy has no unit 's'"),
        ({"metric": "best", "columns": {"speed-up": {"at": {"layer": "conv1"}}}}, "best has no unit 'x'"),
        ({"columns": {"sequentail": {}}}, "table VI has no 'sequentail'"),
        ({"rows": {"S8": {}}}, "table VI has no 'S8'"),
        ({"base": "nothing"}, "table VI has no 'nothing'"),
        ({"table": "VII"}, "has no table 'VII'; it has VI"),
    ],
)
def test_a_table_that_cannot_be_set_beside_ours_is_refused(change: dict[str, Any], words: str) -> None:
    asked = whole(S7_ROW)
    asked["study"]["source"] = "s"
    asked["tables"][0] |= change
    with pytest.raises(ValidationError, match=words):
        Published.model_validate(asked)


def test_sizes_are_written_as_in_a_matrix() -> None:
    table = {"table": "VI", "columns": {"a": {}}, "at": {"workspace": "16 MB", "precision": "relaxed"}}
    (found,) = Published.model_validate({"study": "a.yaml", "tables": [table]}).tables
    assert found.at == {"workspace": 16_000_000, "precision": "relaxed"}
