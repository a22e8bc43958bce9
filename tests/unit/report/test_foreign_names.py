"""Names that turn, hide or end what stands beside them reach nobody, whatever the output."""

from __future__ import annotations

import io
import random
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dashboards.web.access import ANYBODY
from orchestrator.exchange import row_files
from orchestrator.ledger import Ledger
from orchestrator.metrics.exposition import Exposition
from orchestrator.metrics.family import gauge
from orchestrator.model.foreign import cleaned
from orchestrator.report import compared, console, export
from orchestrator.report.charts import paper
from orchestrator.report.compared.content import RANKS, Content
from orchestrator.report.html import render
from orchestrator.report.nights import morning_markdown
from orchestrator.report.nights.feed import feed
from orchestrator.report.nights.tell import morning_of
from orchestrator.report.traces import Curve, draw
from tests.unit.history.made import judged, kept

from . import test_walk

pytestmark = pytest.mark.unit
WRITING = "\u200c\u200d\n\t"
"""Characters that nobody sees, and that belong to writing."""
VISIBLE = ("ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN")
"""Scripts that have signs of the category Cf which are seen."""


def _hidden(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - set(WRITING)


STEERING = [
    each
    for each in map(chr, range(0x110000))
    if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") and each not in WRITING
    and (each == "\u061c" or not unicodedata.name(each, "").startswith(VISIBLE))
]  # fmt: skip
"""Every character that steers a terminal or a page, or that nobody sees."""


def _name(chosen: random.Random, number: int) -> str:
    marks = chosen.choices([each for each in STEERING if not "\ud800" <= each <= "\udfff"], k=3)  # no JSON has those
    return f"phone{marks[0]}{chosen.choice(['<b>', '|', '`', '中', 'é'])}{marks[1]}{number}{marks[2]}"


def test_every_one_of_them_is_cleaned_and_no_letter() -> None:
    assert not _hidden(cleaned("".join(STEERING)))
    letters = "".join(c for c in map(chr, range(0x30000)) if unicodedata.category(c)[0] in "LMNPS" and c != "\ufffd")
    assert cleaned(letters + WRITING) == letters + WRITING


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # matplotlib measures texts
def test_no_output_has_them(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    names = tuple(_name(chosen, number) for number in range(3))
    monkeypatch.setattr(test_walk, "SERIALS", names)
    whole = test_walk.experiment_of(chosen)
    rows = test_walk.Walk(whole, None, tmp_path).rows()  # type: ignore[arg-type]
    night = judged(1, list(rows), names, missing=({"device": names[0], "cells": 1, "reason": names[1]},))
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        kept(ledger, [night])
        pages = test_walk._pages(test_walk.Walk(whole, ledger, tmp_path))
        outputs = {"night": pages.main("/nights/nightly@001", {}, ANYBODY)[1]}
        outputs["morning"] = morning_markdown(morning_of(ledger, night))
    sides = Content(names[0], names[1], rows)
    outputs |= {"report": render(whole), "svg": console.as_svg(whole, names[0])}
    outputs |= {"html": compared.as_html(sides), "markdown": compared.as_markdown(sides)}
    outputs |= {"junit": compared.as_junit(sides, RANKS).decode(), "feed": feed([night], "http://farm/n")}
    for form in ("csv", "json"):
        file = io.BytesIO()
        row_files.write(form, {"device": "text"}, [{"device": each} for each in names], file)
        outputs[form] = file.getvalue().decode()
    series = [(each, 1.0) for each in names]
    outputs["metrics"] = Exposition().text([gauge("farm_a", "A.", "serial", series)]).decode()
    drawn = paper.draw(export.as_data(whole)["summaries"], "memory", names[0])
    outputs |= {"caption": drawn.caption, "plot": paper.saved(drawn, "svg").decode()}
    traces = {names[0]: [Curve(names[1], np.arange(4.0), np.ones(4))]}
    outputs |= {f"traces {end}": draw(traces, Path(f"x{end}"))[0].decode() for end in (".svg", ".html")}
    assert {each: found for each, text in outputs.items() if (found := _hidden(text))} == {}
    assert {each for each, text in outputs.items() if "\ufffd" not in text} <= {"caption", "feed", "json"}
    for each in ("junit", "feed", "plot", "svg"):
        ElementTree.fromstring(outputs[each].encode())


def test_a_letter_that_the_font_lacks_is_told(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    letter = chosen.choice("中文機器한ไ")
    results = export.as_data(test_walk.experiment_of(chosen))["summaries"]
    for name, lacking in ((f"by {letter} é", True), ("plain é", False)):
        drawn = paper.draw(results, "memory", name)
        assert (f"The font lacks {letter}:" in drawn.caption) == lacking
        curves = {name: [Curve("a.csv", np.arange(4.0), np.ones(4))]}
        with pytest.warns(UserWarning, match="missing from font") if lacking else monkeypatch.context():
            assert (letter in draw(curves, tmp_path / "a.png")[1]) == lacking
