"""`farm history` on a ledger: of a suite's nights and of an experiment's runs; terminal, JSON, page."""

from __future__ import annotations

import json

import pytest

from orchestrator.analysis.history import of_sides
from orchestrator.ledger import Ledger
from orchestrator.nightly import Wave
from orchestrator.nightly.past import past
from orchestrator.report.nights import history_page
from tests.unit.comparison.conftest import farm, ledger
from tests.unit.comparison.made import measured, one
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


def test_a_figure_of_a_night_is_what_a_comparison_has() -> None:
    """A suite's nights keep what `compare` found; those of an experiment are the same figures."""
    a, b = measured([10.0, 10.1, 9.9, 10.0, 14.0]), measured([11.0, 11.1, 16.0, 10.9, 11.0], late=20)
    (figure,), found = of_sides("n", a, b), one(a, b)
    assert (figure.a, figure.b) == pytest.approx((found.a, found.b)) and figure.a == 10.0


def test_nights_whose_raw_records_were_pruned_tell_the_same(farm: Farm, ledger: Ledger) -> None:
    """Verdicts, what differs beside them, and causes are read from figures, which stay."""
    found = nights(8, lambda number, *_: 1.2 if number >= 5 else 1.0, ("A",), ("lenet",))
    for number, each in enumerate(found):
        slow = {"cpu": 1.2, "opencl": 1.2} if number >= 5 else {}
        experiment_id = night(ledger, number, blocks=5, slow=slow, build=f"8.{number >= 5}", name="lenet")
        wave = Wave(kind="first", part="lenet", experiment_id=experiment_id, number=0, blocks=5)
        part = ledger.experiment(experiment_id).experiment
        kept(ledger, [each.model_copy(update={"waves": (wave,), "parts": (part,)})])
    asked = (
        ("compare", "lenet-2,lenet-3,lenet-4", "lenet-5,lenet-6", "--json"),
        ("compare", "lenet-2,lenet-3,lenet-4", "lenet-5,lenet-6"),
        ("compare", "lenet~2-7", "lenet", "--json"),
        ("history", "lenet", "--json"),
        ("history", "nightly", "--json"),
        ("morning", "nightly", "--json"),
    )
    before = [farm(*words)[:2] for words in asked]
    assert [code for code, _ in before] == [1, 1, 0, 0, 0, 0] and "OS build differs" in before[1][1]
    for _, out in before[3:5]:
        changes = [change for trail in json.loads(out)["trails"] for change in trail["changes"]]
        assert changes and all(change["also"] == {"OS build": ["8.False", "8.True"]} for change in changes)
    assert farm("ledger", "archive", "a.parquet")[0] == 0
    code, out, _ = farm("ledger", "prune", "--older-than", "0d", "--yes", "--json")
    assert (code, json.loads(out)["records"], json.loads(out)["kept"]) == (0, 80, 0)
    assert list(ledger.records("lenet-5")) == [] and [farm(*words)[:2] for words in asked] == before
    assert farm("ledger", "prune", "--older-than", "0d", "--whole", "--yes")[0] == 0
    assert farm(*asked[0])[0] == 2, "the experiment is gone"
    assert json.loads(farm(*asked[5])[1])["night"] == json.loads(before[5][1])["night"], "the night is not"
    assert farm("ledger", "adopt", "a.parquet")[0] == 0 and [farm(*words)[:2] for words in asked] == before
