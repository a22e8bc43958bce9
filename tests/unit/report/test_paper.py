"""The figure for a paper: whole intervals, colours by backend, units, a caption in every format."""

from __future__ import annotations

import copy
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from orchestrator.model.doubts import DoubtCode
from orchestrator.model.errors import NoData, UnknownName, Unsupported
from orchestrator.report.charts.paper import P90, draw, save
from orchestrator.report.colours import BACKENDS
from orchestrator.report.export import as_data

from .test_parts import MODES, content_of

pytestmark = pytest.mark.unit


def results_of(chosen: random.Random, mode: str = "cold") -> list[dict[str, Any]]:
    """Results as programs get them, on further engines and axes; intervals may reach below zero."""
    found = copy.deepcopy(as_data(content_of(mode))["summaries"])
    model = chosen.choice(["Pixel 7", "Ryzen " * 12])
    for number, each in enumerate(found):
        each["model"] = chosen.choice([model, each["model"]])
        each["engine"] = chosen.choice(["pocketfarm", "onnxruntime"])
        each["options"] = {**each["options"], "number": number, "tile": chosen.choice([None, "4x4"])}
        for told in each["quantities"]:
            told["interval"] = told["interval"] and {**told["interval"], "low": chosen.uniform(-2, 1) * told["value"]}
    return chosen.sample(found, len(found))


def test_every_quantity_that_is_told_is_drawn_whole(seed: int) -> None:
    chosen = random.Random(seed)
    results = results_of(chosen, chosen.choice([*MODES]))
    if chosen.random() < 0.5:
        for each in results:
            each["outcomes"] = {"ok": 1}
    for lost in chosen.sample([each for one in results for each in one["quantities"]], 5):
        lost |= {"value": None, "interval": None}
    told = [(one, each) for one in results for each in one["quantities"] if each["value"] is not None]
    names = {each["metric"] for _, each in told}
    assert {"memory", "setup"} < names
    for metric in chosen.sample(sorted(names), 4):
        own = [(one, each) for one, each in told if each["metric"] == metric]
        basis = chosen.choice([each["basis"] for _, each in own])
        drawn = draw(results, f"{metric} {basis}".strip())
        axes = drawn.figure.axes[0]
        lines = [(line, [float(x) for x in np.asarray(line.get_xdata())]) for line in axes.get_lines()]
        spans = [(line, xs) for line, xs in lines if len(xs) == 2]
        expected = [(one, each) for one, each in own if each["basis"] == basis]
        assert len(spans) == len(expected), (metric, basis)
        left, right = axes.get_xlim()
        for (one, each), (line, xs) in zip(expected, spans, strict=True):
            ends = each["interval"] or {"low": each["value"], "high": each["value"]}
            scale = {"J": 1e3, "B": 2.0**-20}.get(each["unit"], 1.0)
            assert xs == pytest.approx([scale * ends["low"], scale * ends["high"]])
            assert left <= min(xs) <= max(xs) <= right
            assert to_hex(line.get_color()) == BACKENDS.get(one["backend"], to_hex(line.get_color()))
        assert not re.search(r"\b1 blocks", drawn.caption)
        missing = sum(
            (each["metric"], each["basis"], each["value"]) == (metric, basis, None)
            for one in results
            for each in one["quantities"]
        )
        assert f"{missing} without a figure" in drawn.caption if missing else "without" not in drawn.caption
        labels = [text.get_text() for text in axes.get_yticklabels()]
        assert len(labels) == len(set(labels)) and all(len(each.splitlines()[0]) < 55 for each in labels)
        words = [word for each in labels for word in each.replace("\n", ", ").split(", ") if "=" in word]
        assert {word.partition("=")[0] for word in words} <= {"number", "tile", "n"}, labels
    with pytest.raises(UnknownName, match="weight"):
        draw(results, "weight")


def test_what_no_result_tells_is_refused_with_its_reason(seed: int) -> None:
    """The words are those of tables, whichever quantity is lost, and of p90 those of the latency or of its warning."""
    chosen = random.Random(seed)
    whole = results_of(chosen, chosen.choice([*MODES]))
    told = {each["metric"] for one in whole for each in one["quantities"]} | {P90}
    for metric in told:
        results, words = copy.deepcopy(whole), set()
        for one in results:
            for each in one["quantities"]:
                if each["metric"] == metric:
                    words.add(why := f"not resolved (needs {chosen.randrange(3, 200)} blocks)")
                    each |= {"value": None, "interval": None, "not_resolved": why}
            if metric == P90 and one["latency"]:
                one["latency"]["p90_ms"] = None
                if means := chosen.random() < 0.5:
                    words.add(DoubtCode.MEAN_OF_RUNS.remedy)
                for each in one["quantities"] if not means else ():
                    if each["metric"] == "latency":
                        words.add(why := f"not resolved (below {chosen.random()} ms)")
                        each |= {"value": None, "not_resolved": why}
        with pytest.raises(NoData) as refused:
            draw(results, metric)
        assert words and all(each in str(refused.value) for each in words), (metric, words)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_caption_stands_in_the_file(kind: str, seed: int, tmp_path: Path) -> None:
    drawn = draw(results_of(random.Random(seed)), "setup", "first")
    content = save(drawn, tmp_path / f"fig.{kind}").read_bytes()
    assert drawn.caption.startswith("first: set-up until the first inference")
    assert b"A dot is the figure" in content, content[:200]
    with pytest.raises(Unsupported, match="pdf, svg, png"):
        save(drawn, tmp_path / "fig.jpg")
    assert draw(results_of(random.Random(seed)), P90).caption.startswith("latency, 90th percentile, ms. ")
