"""`farm queue` from its file to its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farm.cli.app import main
from orchestrator.model.errors import SpecError
from orchestrator.queueing.spec import load
from tests.source_tree import ROOT
from tests.unit.queueing.make import measured

pytestmark = pytest.mark.unit

EXAMPLES = sorted((ROOT / "examples" / "queueing").glob("*.yaml"))
SPEC = """
name: small
servers: [{name: phone, count: 2}]
classes:
  - {name: a, arrivals: {kind: poisson, rate: 100}, service: {kind: exponential, mean: 10 ms}}
duration: 6 s
"""
TIMES = {"mean", "p50", "p90", "p99", "p99_9"}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(SPEC)
    return str(file)


def test_json_has_the_keys_that_are_promised(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", spec, "--simulate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == "simulated" and found["theory"][0]["name"] == "M/M/2"
    for each in (found["all"], found["classes"]["a"]):
        assert all(set(each[name]) == TIMES for name in ("waiting_s", "service_s", "sojourn_s"))
        assert set(each["sojourn_s"]["p99"]) == {"value", "low", "high"}
        assert {"utilisation", "queue_length", "drop_share", "energy_j_per_request"} < set(each)


def test_a_report_is_named_in_json_and_written_whole(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["queue", spec, "--simulate", "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "small", "source": "simulated", "files": [str(page)]}
    assert "</html>" in page.read_text()
    assert main(["queue", spec, "--simulate", "--html", str(tmp_path / "no" / "page.html"), "--json"]) == 1
    assert "no folder" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_the_table_has_theory_beside_it(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", spec, "--simulate"]) == 0
    said = capsys.readouterr().out
    assert "sojourn, M/M/2" in said and "13.33" in said and "utilisation" in said


def test_policies_are_told_side_by_side(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line waits less than lines of their own, in turn, under the same requests."""
    assert main(["queue", spec, "--simulate", "--policies", "fifo,round_robin", "--json"]) == 0
    fifo, turns = json.loads(capsys.readouterr().out)
    assert (fifo["policy"], turns["policy"]) == ("fifo", "round_robin") and turns["theory"] == []
    assert fifo["all"]["requests"] == pytest.approx(turns["all"]["requests"], rel=0.2)
    assert fifo["all"]["waiting_s"]["mean"]["value"] < turns["all"]["waiting_s"]["mean"]["value"]
    assert main(["queue", spec, "--simulate", "--policies", "fifo,jsq"]) == 0
    assert "jsq" in capsys.readouterr().out
    assert main(["queue", spec, "--simulate", "--policies", "fifo,lifo"]) == 1
    assert main(["queue", spec, "--simulate", "--policies", "fifo", "--capacity"]) == 2


def test_a_spec_without_devices_is_for_simulations(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--rates", "0.5"]):
        assert main(["queue", spec, *options]) == 1
        assert "server phone names no devices" in capsys.readouterr().err
    assert main(["queue", spec, "--capacity"]) == 1
    assert "has no target" in capsys.readouterr().err
    assert main(["queue", spec, "--policies", "fifo"]) == 1
    assert "add --simulate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate: 100", "rate: 0", r": 1 problem\n.*:5:47: classes\[0\].arrivals.rate: expected more than 0"),
        ("rate: 100", "rat: 100", r"arrivals.rat: unknown field; did you mean `rate`\? allowed: kind, rate"),
        ("mean: 10 ms", "mean: 10", r"classes\[0\].service.mean: 10 has no unit"),
        ("kind: poisson", "kind: posson", "poisson"),
        ("service: {kind: exponential, mean: 10 ms}", "deadline: 1 s", "nothing says how long class a takes on phone"),
        ("6 s", "6", "duration: 6 has no unit"),
        ("duration: 6 s", "duration: 6 s\nwarm_up: 30 s", "leaves nothing"),
    ],
)
def test_a_wrong_spec_is_told(spec: str, old: str, new: str, said: str) -> None:
    Path(spec).write_text(SPEC.replace(old, new))
    with pytest.raises(SpecError, match=f"(?s){said}"):
        load(Path(spec))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path) -> None:
    whole = load(path)
    slowest_s = max((each.service.mean for each in whole.classes if each.service is not None), default=0.0)
    short = whole.model_copy(update={"duration": max(1.5, 10 * slowest_s), "replications": 1, "warm_up": "none"})
    assert (measured(short).total.throughput_per_s.value or 0) * short.duration > 1
