"""Study S's files on a phone that replays the authors' own data: their rows come out of the whole farm, played back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.integration.farm.conftest import Cli
from tests.integration.farm.test_up import ROOT, Up
from tests.integration.workers.jobs import begun

from .conftest import DATA

pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="the authors' data (shared/data/mobile_convnet) are not here"),
    pytest.mark.slow,
    pytest.mark.long,
]


def run(up: Up, cli: Cli, name: str, sampling: dict[str, Any], **axes: list[Any]) -> list[dict[str, Any]]:
    """A study's file with some of its axes' values: what stands beside each published figure of the Galaxy S7."""
    asked = yaml.safe_load((ROOT / "experiments" / f"{name}.yaml").read_text())
    asked["devices"] = {"where": 'source == "replay"'}
    asked["published"]["study"] = str(ROOT / "experiments" / asked["published"]["study"])
    asked["matrix"] |= axes
    asked["sampling"] |= {"blocks": 1, "warmup": 0, "samples": 1, "canary": 0, **sampling}
    asked["measure"]["power_period"] = "500 ms"  # a busy machine may hold a reading up for as long as four of them
    for file in (ROOT / "experiments").glob("*.json"):
        (up.state / file.name).write_bytes(file.read_bytes())
    path = up.state / f"{name}.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    cli("run", str(path), "--wait", "--state", str(up.state))
    data = json.loads(cli("results", "latest", "--json", "--raw", "--state", str(up.state))[1])
    records = begun(data["records"])
    said = [(record["outcome"], record["cause"], record["reasons"]) for record in records]
    assert {outcome for outcome, *_ in said} == {"ok"}, said
    assert {(record["source"], record["checks"][0]["ok"]) for record in records} == {("replay", True)}
    found = [each for each in data["reproduction"]["beside"] if each["published_on"] == "Galaxy S7"]
    assert {each["verdict"] for each in found if each["ours"] is not None} == {"played back"}, "judged by its source"
    assert all(set(own) <= {"not comparable"} for own in data["reproduction"]["counts"].values())
    return found


def test_best_granularities_are_those_of_table_i(up: Up, cli: Cli) -> None:
    axes: dict[str, list[Any]] = {"backend": ["opencl"], "algorithm": ["dot"], "precision": ["fp32"]}
    found = run(up, cli, "study_s", {}, granularity=[4, 6, 8, 12], **axes)
    cells = [each for each in found if each["metric"] == "best"]
    assert [each["ours"] for each in cells] == [each["published"] for each in cells]
    assert len(cells) == 13


def test_optimal_and_pessimal_networks_and_layers_by_fire_module(up: Up, cli: Cli) -> None:
    found = run(up, cli, "study_s_layers", {})
    of = {(each["table"], each["row"], each["column"]): each for each in found}
    by_table = [each for (table, *_), each in of.items() if "(table III)" in table and each["column"] != "speed-up"]
    assert len(by_table) == 6 and all(abs(each["ratio"] - 1) < 4e-3 for each in by_table)
    assert of["optimal and pessimal g (table III)", "Galaxy S7", "speed-up"]["ours"] == pytest.approx(2.52, abs=0.05)
    modules = [each for (table, *_), each in of.items() if "authors' own logs" in table]
    assert len(modules) == 30 and all(each["ratio"] == pytest.approx(1, abs=1e-3) for each in modules)
    published = [each for (table, *_), each in of.items() if "(table IV)" in table]
    assert len(published) == 30 and {each["row"] for each in published if abs(each["ratio"] - 1) > 1e-3} == {
        "Galaxy S7: Imprecise Parallel"
    }, "the text's imprecise times are not those of the logs"
    whole = of["whole network (table VI)", "Galaxy S7", "sequential"]
    assert whole["ours"] == pytest.approx(12331.82, rel=1e-4)


def test_power_and_energy_of_an_image(up: Up, cli: Cli) -> None:
    """The two cells are those that were published: another takes most of a minute of load and rest."""
    phases = {"load": "31 s", "idle": "4 s"}  # a shorter load has no energy
    found = run(up, cli, "study_s_energy", phases, backend=["opencl"], algorithm=["auto"], precision=["imprecise"])
    found += run(up, cli, "study_s_energy", phases, backend=["cpu"], algorithm=["sequential"], precision=["fp32"])
    ours = {(each["metric"], each["column"]): each["ratio"] for each in found if each["ratio"] is not None}
    assert len(ours) == 7
    baseline = ours.pop(("idle_power", "baseline"))
    assert baseline == pytest.approx(1, abs=0.2)  # 45 mA by a gauge that steps by 1 mA and has 3 mA of noise
    assert all(ratio == pytest.approx(1, abs=0.06) for ratio in ours.values()), ours
