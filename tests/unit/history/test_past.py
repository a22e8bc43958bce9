"""`farm history` on a ledger: of a suite's nights and of an experiment's runs; terminal, JSON, page."""

from __future__ import annotations

import json

import pytest

from orchestrator.ledger import Ledger
from orchestrator.nightly.past import past
from orchestrator.report.nights import history_page
from tests.unit.comparison.conftest import farm, ledger
from tests.unit.comparison.nights import night
from tests.unit.imports.conftest import Farm
from tests.unit.report.test_report import Page

from .made import kept, nights

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit


def test_a_suites_nights(farm: Farm, ledger: Ledger) -> None:
    def slower(number: int, device: str, network: str, side: str) -> float:
        return 1.06 if number >= 10 and (device, network, side) == ("B", "m", "b") else 1.0

    kept(ledger, nights(18, slower))
    code, out, err = farm("history", "nightly", "--html", "h.html")
    assert code == 0 and "candidate" in out and "+6." in out and "m opencl fp32" in out
    assert "18 nights, 9 series, 8 of them without a change" in err
    found = json.loads(farm("history", "nightly", "--json", "--device", "B")[1])
    assert len(found["nights"]) == 18 and {trail["device"] for trail in found["trails"]} == {"B"}
    (change,) = [change for trail in found["trails"] for change in trail["changes"]]
    assert (change["night"], change["of"], change["cause"]) == ("nightly@010", "ratio", "candidate")
    assert "least change" not in out and "n opencl" in farm("history", "nightly", "--all")[1]
    assert farm("history", "nightly", "--device", "Z")[0] == 2
    code, _, err = farm("history", "weekly")
    assert code == 1 and "no suite and no experiment 'weekly'" in err


def test_the_page_escapes_names_and_asks_for_nothing(ledger: Ledger) -> None:
    kept(ledger, nights(14, lambda number, device, *_: 1.1 if number >= 8 and device == "<b>A" else 1.0, ("<b>A", "B")))
    text = history_page(past(ledger, "nightly"))
    page = Page(text)
    assert "<b>A" not in text and "&lt;b&gt;A" in text and "VIRTUAL" in text and "svg" in page.tags
    assert "http:" not in text and "https:" not in text and "<script" not in text and "device" in text


def test_an_experiments_runs_with_what_else_changed(farm: Farm, ledger: Ledger) -> None:
    for number in range(1, 14):
        night(ledger, number, blocks=3, slow={"cpu": 1.2, "opencl": 1.2} if number > 8 else {}, build=f"8.{number > 8}")
    found = json.loads(farm("history", "nightly", "--json")[1])
    assert [each["id"] for each in found["nights"]] == [f"nightly-{number}" for number in range(1, 14)]
    changes = [change for trail in found["trails"] for change in trail["changes"]]
    assert {(each["night"], each["cause"], each["of"]) for each in changes} == {("nightly-9", "device", "level")}
    assert changes[0]["also"] == {"OS build": ["8.False", "8.True"]}
    assert len(json.loads(farm("history", "nightly", "--last", "5", "--json")[1])["nights"]) == 5
