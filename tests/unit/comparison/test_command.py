"""`farm compare` on a ledger: sides, exit status, and every form in which it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from orchestrator.analysis.comparison import Compared, compare
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api
from orchestrator.nightly.night import Wave
from orchestrator.report.compared import Content, as_html, as_junit, as_markdown, fails
from tests.unit.history.made import SUITE, judged, kept
from tests.unit.imports.conftest import Farm
from tests.unit.report.test_report import EVIL, Page

from .made import measured, row
from .nights import night

pytestmark = pytest.mark.unit

WEEKLY = SUITE.model_copy(update={"name": "weekly"})
KEYS = ("device", "network", "backend", "precision", "metric", "ratio", "interval", "verdict", "needs_blocks")


def rows(out: str) -> dict[tuple[str, str], Any]:
    return {(each["backend"], each["metric"]): each for each in json.loads(out)}


def test_two_nights_are_compared_and_the_status_says_what_is_worse(farm: Farm, ledger: Ledger) -> None:
    night(ledger, 1, cycles=217)
    night(ledger, 2, slow={"cpu": 1.2}, build="8.1", cycles=218)
    code, out, _ = farm("compare", "nightly-1", "nightly-2", "--json")
    found = rows(out)
    assert code == 1 and all(key in each for each in found.values() for key in KEYS)
    cpu = found["cpu", "latency"]
    assert (cpu["verdict"], cpu["worse"], cpu["device"], cpu["network"]) == ("different", True, "A", "lenet")
    assert cpu["ratio"] == pytest.approx(1.2, rel=0.01) and cpu["interval"]["low"] < 1.2 < cpu["interval"]["high"]
    assert cpu["differs"] == {"OS build": ["8.0", "8.1"], "battery cycles": ["217", "218"]}
    assert found["opencl", "latency"]["verdict"] == "same" == found["opencl", "memory"]["verdict"]
    code, out, _ = farm("compare", "nightly-1", "nightly-2")
    assert code == 1 and "worse: +" in out and "OS build differs in all rows: A 8.0, B 8.1" in out
    assert "A VIRTUAL" in out and "4 rows, 1 worse" in out and "opencl" not in out
    assert "opencl" in farm("compare", "nightly-1", "nightly-2", "--all")[1]
    assert farm("compare", "nightly-2", "nightly-1")[0] == 0
    assert farm("compare", "nightly-2", "nightly-1", "--fail-on", "better")[0] == 1
    assert farm("compare", "nightly-1", "nightly-2", "--fail-on", "nothing")[0] == 0
    assert farm("compare", "nightly-1", "nightly-2", "--margin", "latency=30%")[0] == 0
    assert farm("compare", "nightly-1", "nightly-2", "--where", "backend=opencl")[0] == 0


def test_blocks_of_different_modes_are_never_set_against_each_other(farm: Farm, ledger: Ledger) -> None:
    night(ledger, 1)
    for number, (mode, basis) in enumerate((("cold", "cold start"), ("sustained", "sustained load")), 2):
        night(ledger, number, name=mode, mode=mode)
        night(ledger, number + 2, name=mode, mode=mode, slow={"cpu": 1.2})
        code, out, _ = farm("compare", "nightly-1", f"{mode}-{number}", "--where", "backend=cpu", "--json")
        times = {each["basis"]: each for each in json.loads(out) if each["metric"] == "latency"}
        assert code == 1 and {each["verdict"] for each in times.values()} == {"missing"}
        assert (times[""]["missing_on"], times[basis]["missing_on"]) == ("B", "A")
        alike = rows(farm("compare", f"{mode}-{number}", f"{mode}-{number + 2}", "--json")[1])["cpu", "latency"]
        assert (alike["basis"], alike["verdict"], alike["worse"]) == (basis, "different", True)


def test_the_nights_of_a_suite_are_named_as_runs_are(farm: Farm, ledger: Ledger) -> None:
    """A night's waves are one night, whose rounds follow each other; a night that did not run is none."""
    for number in (1, 2):
        ids = [night(ledger, 10 * number + turn, blocks=6) for turn in range(2)]
        waves = [
            Wave(kind=kind, part="lenet", experiment_id=each, number=turn, blocks=6)
            for turn, (kind, each) in enumerate(zip(("first", "more"), ids, strict=True))
        ]
        part = ledger.experiment(ids[0]).experiment.model_copy(update={"name": "lenet"})
        more = {"suite": WEEKLY, "night_id": f"weekly@{number}", "parts": (part,), "waves": tuple(waves)}
        kept(ledger, [judged(number, [], ("A",), **more)])
    kept(ledger, [judged(3, [], (), suite=WEEKLY, night_id="weekly@3", outcome="not_run")])
    for names in (("weekly~1", "weekly"), ("weekly@1", "weekly@2")):
        found = rows(farm("compare", *names, "--json")[1])["cpu", "latency"]
        assert (found["nights"], found["blocks"], found["verdict"]) == ([1, 1], [12, 12], "same")
    assert rows(farm("compare", "weekly", "--sides", "backend=opencl,cpu", "--json")[1]) != {}
    assert farm("compare", "weekly", "--save-baseline", "weekly.json")[0] == 0
    code, _, err = farm("compare", "weekly~2", "weekly")
    assert code == 2 and "2 runs of 'weekly'" in err
    code, _, err = farm("compare", "weekly", "weekly")
    assert code == 2 and "A and B are the same" in err
    assert "no experiment and no suite 'x'" in farm("compare", "x~1", "weekly")[2]


def test_runs_before_the_newest_are_named_by_their_number(farm: Farm, ledger: Ledger) -> None:
    for number in range(1, 6):
        night(ledger, number, blocks=5, slow={"cpu": 1 + number % 2 / 10})
    night(ledger, 6, name="other", blocks=5)
    found = json.loads(farm("compare", "nightly~1-4", "nightly", "--json")[1])[0]
    assert (found["method"], found["nights"], found["blocks"]) == ("nights", [4, 1], [20, 5])
    found = rows(farm("compare", "nightly~1", "nightly", "--json")[1])["cpu", "latency"]
    assert found["ratio"] == pytest.approx(1.1, rel=0.01)
    assert rows(farm("compare", "nightly-2,nightly-4", "latest~1", "--json")[1])["cpu", "latency"]["nights"] == [2, 1]
    code, _, err = farm("compare", "nightly~5", "nightly")
    assert code == 2 and "5 runs of 'nightly'" in err


def test_a_cell_that_no_longer_runs_is_told_as_loudly(farm: Farm, ledger: Ledger) -> None:
    night(ledger, 1)
    night(ledger, 2, failing="cpu")
    night(ledger, 3, backends=(Api.OPENCL,))
    code, out, _ = farm("compare", "nightly-1", "nightly-2")
    assert code == 1 and "missing on B: no block went well on B: failed: out_of_memory" in out
    code, out, _ = farm("compare", "nightly-1", "nightly-3")
    assert code == 1 and out.count("the configuration was not run on B") == 1, "all metrics of a cell in one line"
    assert farm("compare", "nightly-1", "nightly-3", "--fail-on", "worse")[0] == 0
    assert farm("compare", "nightly-3", "nightly-1")[0] == 0, "what is new is no fault"


def test_two_sides_of_one_experiment(farm: Farm, ledger: Ledger) -> None:
    night(ledger, 1, slow={"cpu": 1.1})
    code, out, _ = farm("compare", "latest", "--sides", "backend=opencl,cpu", "--json")
    found = rows(out)["opencl|cpu", "latency"]
    assert (code, found["method"], found["verdict"]) == (1, "paired", "different")
    assert found["ratio"] == pytest.approx(1.1, rel=0.01)


def test_a_saved_baseline_stands_for_what_it_was_made_of(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    night(ledger, 1)
    night(ledger, 2, slow={"cpu": 1.2})
    code, out, _ = farm("compare", "nightly-1", "--save-baseline", "v1.json", "--json")
    assert (code, json.loads(out)["experiments"], json.loads(out)["blocks"]) == (0, ["nightly-1"], 12)
    direct = farm("compare", "nightly-1", "nightly", "--json")
    assert farm("compare", "v1.json", "nightly", "--json")[:2] == direct[:2]
    assert farm("compare", "v1.json", "v1.json")[0] == 0
    saved = json.loads((tmp_path / "v1.json").read_text())
    for name, more in (("unknown.json", {"colour": "red"}), ("infinite.json", {"values": {"latency": float("inf")}})):
        saved["rows"][0] |= more
        (tmp_path / name).write_text(json.dumps(saved))
        del saved["rows"][0][next(iter(more))]
    (tmp_path / "broken.json").write_text('{"experiments": [], "rows": [{"device": 3}]}')
    wrong = (("broken.json", "is no baseline"), ("none.json", "cannot be read"))
    for name, told in (*wrong, ("unknown.json", "rows.0.colour"), ("infinite.json", "values.latency: Input should be")):
        code, out, err = farm("compare", name, "v1.json", "--json")
        assert code == 2 and told in err and json.loads(out)["error"]["cause"] == "table"


def test_a_baseline_from_before_times_had_modes_is_read_where_the_ledger_knows_them(
    farm: Farm, ledger: Ledger, tmp_path: Path
) -> None:
    night(ledger, 1, name="cold", mode="cold")
    night(ledger, 2, name="cold", mode="cold", slow={"cpu": 1.2})
    farm("compare", "cold-1", "--save-baseline", "new.json")
    text = (tmp_path / "new.json").read_text()
    old = text.replace('"time":"latency/cold start",', "").replace("latency/cold start", "latency")
    assert text.count("cold start") == 24 and old.count("cold start") == 0
    (tmp_path / "old.json").write_text(old)
    told = [farm("compare", name, "cold-2", "--json")[1] for name in ("new.json", "old.json")]
    assert told[0] == told[1] and {each["verdict"] for each in json.loads(told[0])} == {"same", "different"}


UNUSABLE = (
    (("nightly-1",), "one of B"),
    (("nightly-1", "nightly-1", "--sides", "backend=a,b"), "one of B"),
    (("nightly-1", "no-such"), "no experiment 'no-such'"),
    (("nightly-1", "--sides", "backend=opencl,vulkan"), "nothing was measured with backend=vulkan"),
    (("nightly-1", "--sides", "backend=opencl"), "two values"),
    (("nightly-1", "nightly-1", "--where", "backend=x"), "nothing is left"),
    (("nightly-1", "nightly-1", "--margin", "speed=2%"), "metrics are latency"),
    (("nightly-1", "nightly-1", "--margin", "latency=2"), "a share such as"),
    (("nightly-1", "nightly-1", "--margin", "latency=0%"), "below 100 %"),
    (("nightly-1", "nightly-1", "--fail-on", "bad"), "allowed are worse"),
)


def test_what_cannot_be_compared_has_a_status_of_its_own(farm: Farm, ledger: Ledger) -> None:
    night(ledger, 1, blocks=1)
    for arguments, told in UNUSABLE:
        code, _, err = farm("compare", *arguments)
        assert code == 2 and told in " ".join(err.split()), arguments


def test_files_for_people_and_for_ci(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    night(ledger, 1)
    night(ledger, 2, slow={"cpu": 1.2})
    names = ("--html", "c.html", "--markdown", "c.md", "--junit", "c.xml")
    assert farm("compare", "nightly-1", "nightly-2", *names)[0] == 1
    suites = ElementTree.parse(tmp_path / "c.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("4", "1")
    (failed,) = [case for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed.get("name") == "lenet cpu fp32 latency" and failed.get("classname") == "A VIRTUAL"
    markdown = (tmp_path / "c.md").read_text()
    assert "| A VIRTUAL | lenet cpu fp32 | latency |" in markdown and "**worse: +" in markdown
    page = (tmp_path / "c.html").read_text()
    assert Page(page).open == [] and page.count("<tr") == 5 and page.count('class="bad"') == 1
    assert farm("compare", "nightly-1", "nightly-2", "--html", "no/c.html")[0] == 2


def table(name: str) -> Content:
    """One row of each verdict, by names that would do harm."""
    quiet, loud = [10.0, 10.01, 9.99, 10.0, 10.02, 9.98], [12.0, 12.02, 12.01, 11.99, 12.0, 12.01]
    wild = [8.0, 12.0, 9.0, 11.0, 10.0, 13.0]
    a = [
        *measured(quiet, network=name),
        *measured(quiet, network="w"),
        *measured(quiet),
        *measured(quiet, backend="cpu"),
    ]
    b = [*measured(loud, network=name, late=20), *measured(wild, network="w", late=20), *measured(quiet, late=20)]
    b += [row(None, backend="cpu", problem=name)]
    return Content(name, name, compare(a, b))


def verdicts(found: Sequence[Compared]) -> list[str]:
    return sorted(each.verdict for each in found)


@pytest.mark.parametrize("name", [EVIL, "a|b\n| c | `x` |", "nul\x00 and \x1b[31m \ud800", "]]> & <"])
def test_names_from_outside_do_no_harm(name: str) -> None:
    content = table(name.replace("\ud800", "?"))
    assert verdicts(content.rows) == ["different", "missing", "same", "unknown"]
    parsed = Page(as_html(content))
    assert parsed.open == [] and "script" not in parsed.tags
    lines = [line for line in as_markdown(content).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 4 and len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "<script" not in "".join(lines)
    suites = ElementTree.fromstring(as_junit(content, {"worse", "missing"}))
    counts = [suites.get(each) for each in ("tests", "failures", "skipped")]
    assert counts == ["4", "2", "1"] and len(list(suites.iter("skipped"))) == 1


def test_what_fails_is_what_was_asked_for() -> None:
    rows_of_each = table("x").rows
    found = {on: sum(fails(each, {on}) for each in rows_of_each) for on in ("worse", "missing", "better", "unknown")}
    assert found == {"worse": 1, "missing": 1, "better": 0, "unknown": 1}
