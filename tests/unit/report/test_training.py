"""A training in the report: its row, its curves, and which classes were taken for which."""

from __future__ import annotations

import random
import re
from base64 import b64decode, b64encode
from collections import Counter
from io import BytesIO, StringIO

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from orchestrator.model.device import Api
from orchestrator.model.event import Sample
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome, Reconstruction, Record, TrainedModel
from orchestrator.report import console
from orchestrator.report.export import as_data
from orchestrator.report.html import render
from orchestrator.report.sections import sections

from .records import MS, Whole, built, record

pytestmark = pytest.mark.slow

ASKED = Experiment.model_validate(
    {
        "name": "trains",
        "workload": {
            "network": "classifier_784",
            "training": {"dataset": {"named": "digits"}, "epochs": 500, "pretraining": 2},
        },
        "matrix": {"backend": "cpu"},
    }
)
SEARCH = {"dimension": "hidden.0", "tolerance": "5 %", "most": 4096}
CELL = Cell(workload=ASKED.workload, backend=Api.CPU)
MODEL = TrainedModel(onnx_sha256="ab" * 32, checkpoint_sha256="cd" * 32, evaluated=10, wrong=1,
                     confusion=((4, 1), (0, 5)))  # fmt: skip


def epoch(index: int) -> Sample:
    """Two of pretraining, 7 ms each, then 500 of 3 ms; the loss halves."""
    stage, number = ("pretrain:first", index) if index < 2 else ("train", index - 2)
    ms, error = (7, None) if index < 2 else (3, 0.25)
    start = MS * (7 * index if index < 2 else 14 + 3 * (index - 2))
    return Sample(
        seq=index, t_ns=index, index=index, phase="timed", start_ns=start, duration_ns=int(ms * MS), stage=stage,
        epoch=number, loss=2.0 ** -(number / 50), error=error,
    )  # fmt: skip


def content() -> Whole:
    whole = record(CELL, [1.0], serial="A").model_copy(
        update={"samples": tuple(epoch(i) for i in range(502)), "trained": MODEL}
    )
    stopped = record(CELL, [1.0], serial="B", outcome=Outcome.KILLED).model_copy(
        update={"samples": (*(epoch(i) for i in range(4)), epoch(4).model_copy(update={"loss": None}))}
    )
    slower = tuple(each.model_copy(update={"duration_ns": 2 * each.duration_ns}) for each in whole.samples)
    again = record(CELL, [1.0], serial="A", block=1).model_copy(update={"samples": slower, "trained": MODEL})
    records: list[Record] = [whole, again, stopped]
    return built("trains-1", ASKED, cells={CELL.cell_id: CELL}, records=records, outcomes={"ok": 3}, now=1.8e9)


def test_a_row_a_training_with_its_answers() -> None:
    found = content()
    by_name = {section.name: section for section in sections(found)}
    rows = {row[0].split()[0]: row for row in by_name["training"].rows}
    assert rows["A"][2:8] == ("502", "0.0009902", "25.00", "10.00", "10", "4.50")  # of two blocks, as in the results
    assert rows["A"][-1] == "abababababab" and rows["B"][-1] == "not trained to its end"
    assert rows["B"][3] == "not finite"
    assert by_name["confusion-0"].rows == (("0", "4", "1"), ("1", "", "5"))
    epochs = found.blocks[0].trained.epochs if found.blocks[0].trained else ()
    assert 150 < len(epochs) < 260 and (epochs[0].stage, epochs[-1].epoch) == ("pretrain:first", 499)
    assert "throughput" not in by_name  # an epoch is no inference of a batch
    assert found.blocks[0].times is not None and found.blocks[0].times.median_ms == 3.0


def test_networks_that_answer_alike_have_one_table(seed: int) -> None:
    draw = random.Random(seed)
    answers = [draw.choice([((4, 1), (0, 5)), ((5, 0), (1, 4))]) for _ in range(8)]
    records = [
        record(CELL, [1.0], serial=f"{n}").model_copy(
            update={"samples": (epoch(0), epoch(1)), "trained": MODEL.model_copy(update={"confusion": each})}
        )
        for n, each in enumerate(answers)
    ]
    found = built("t", ASKED, cells={CELL.cell_id: CELL}, records=records, outcomes={"ok": 8}, now=1.8e9)
    tables = [each for each in sections(found) if each.name.startswith("confusion-")]
    told = [1 + int((re.findall(r"and (\d+) more", each.title) or ["0"])[0]) for each in tables]
    assert sorted(told) == sorted(Counter(answers).values())


def test_probes_of_a_limit_are_in_its_order_and_without_their_answers() -> None:
    workload = {**ASKED.workload.model_dump(exclude_defaults=True), "parameters": {"hidden": [64, 250]}}
    asked = Experiment.model_validate({"name": "l", "workload": workload, "strategy": {"limit_search": SEARCH}})
    first = Cell(workload=asked.workload, backend=Api.CPU)
    cells = [first.at("hidden.0", n) for n in (64, 128, 256, 512, 1024)]
    done = {"samples": tuple(epoch(i) for i in range(3)), "trained": MODEL}
    records = [record(cell, [1.0], token=n).model_copy(update=done) for n, cell in enumerate(cells)]
    found = built("l", asked, cells={c.cell_id: c for c in cells}, records=records, outcomes={"ok": 5}, now=1.8e9)
    by_name = {section.name: section for section in sections(found)}
    assert [re.findall(r"hidden=(\d+)", row[1]) for row in by_name["training"].rows] == [
        ["64"], ["128"], ["256"], ["512"], ["1024"]
    ]  # fmt: skip
    assert not [name for name in by_name if name.startswith("confusion-")]
    page = render(found, [])
    assert page.index('id="limits"') < page.index('id="training"')


def test_epochs_of_earlier_attempts_are_in_the_curve_alone() -> None:
    """They are, too, where the agent had ended alone, and the attempt that found its checkpoint ran none itself."""
    all_of_it = tuple(epoch(i) for i in range(502))
    went_on, found_it = (
        record(CELL, [1.0], serial=serial).model_copy(
            update={"earlier": all_of_it[:own], "samples": all_of_it[own:], "trained": MODEL}
        )
        for serial, own in (("A", 400), ("B", 502))
    )
    both = built(
        "trains-1", ASKED, cells={CELL.cell_id: CELL}, records=[went_on, found_it], outcomes={"ok": 2}, now=1.8
    )
    rows = {row[0].split()[0]: row for row in {each.name: each for each in sections(both)}["training"].rows}
    assert rows["A"][2:8] == ("502", "0.0009902", "25.00", "10.00", "10", "3.00")
    assert rows["B"][2:8] == ("502", "0.0009902", "25.00", "10.00", "10", "")
    assert [block.times.count if block.times else 0 for block in both.blocks] == [102, 0]
    assert "Training: pretrain:first" in render(both, both.records)


def test_a_stage_of_one_epoch_has_no_curve() -> None:
    """A probe of a search is such a stage: a line through one point is none."""
    short = record(CELL, [1.0]).model_copy(update={"samples": (epoch(0), epoch(2), epoch(3)), "trained": MODEL})
    found = built("trains-1", ASKED, cells={CELL.cell_id: CELL}, records=[short], outcomes={"ok": 1}, now=1.8e9)
    page = render(found, found.records)
    assert "Training: train" in page and "Training: pretrain" not in page


def test_terminal_page_and_json_show_it() -> None:
    found = content()
    buffer = StringIO()
    Console(file=buffer, width=200).print(console.render(found))
    page = render(found, found.records)
    for shown in (buffer.getvalue(), page):
        assert "Training" in shown and "answers by right class" in shown
    for words in ("Training: train", "Training: pretrain:first", "wrong answers, %", "<b>1,004</b><span>epochs</span>"):
        assert words in page, words
    (a, b) = as_data(found)["trained"]
    assert a["model"]["onnx_sha256"] == "ab" * 32 and a["epochs"][-1]["epoch"] == 499 and b["model"] is None


def test_reconstructions_are_pictures_of_the_page(seed: int) -> None:
    """A browser decodes the samples above the answers, enlarged; in colours where they have any."""
    rng = np.random.default_rng(seed)
    for shape in ((2, 2, 8, 8, 1), (3, 2, 32, 32, 3)):
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        shown = tuple(
            Reconstruction(
                height=shape[2], width=shape[3], given=b64encode(given.tobytes()).decode(),
                answered=b64encode(answered.tobytes()).decode(), difference=0.125,
            )
            for given, answered in pixels
        )  # fmt: skip
        found = content()
        older, newer = (
            found.records[0].model_copy(update={"reconstructions": shown[:more], "started_at": at})
            for more, at in ((1, 1.0), (len(shown), 2.0))
        )
        page = render(found, [newer, older, found.records[1]])
        (image,) = re.findall(r'<image[^>]*href="data:image/png;base64,([^"]+)"', page)
        seen = (imread(BytesIO(b64decode(image))) * 255).round().astype(np.uint8)[..., :3]
        larger = seen.shape[0] // (2 * shape[2])
        wanted = np.concatenate([pair.reshape(-1, *shape[3:]) for pair in pixels], axis=1)
        np.testing.assert_array_equal(seen[::larger, ::larger], np.broadcast_to(wanted, (*wanted.shape[:2], 3)))
        assert "what the trained network makes of them" in page and "0.125" in page
    assert "<image" not in render(found, found.records)
