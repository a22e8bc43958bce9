"""Engines in a whole farm: from a file of one experiment to table, JSON and metrics, on virtual phones."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.endpoints import read
from tests.waiting import eventually

from .test_up import ROOT, Up, farm

OWN = ROOT / "tests" / "own_engines"
EXPERIMENT = """\
schema_version: 1
name: {name}
workload: {workload}
devices: {{where: source == "virtual", count: all}}
matrix: {{backend: cpu, engine: [{engines}], threads: [1, 2]}}
sampling: {{blocks: 2, samples: 3}}
measure: {{quantities: [latency]}}
"""


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        found = Up(Path(folder) / "farm", "--virtual", "2", FARM_ENGINES=str(OWN))
        try:
            found.wait_until_ready()
            eventually(lambda: sum(each.facts.kind == "phone" for each in found.ready_devices()) == 2, 120)
            yield found
        finally:
            found.kill()


@pytest.mark.parametrize(
    ("name", "workload", "engines", "configurations"),
    [
        ("naps", "{network: lenet}", "pocketfarm, nap", {"nap": 1, None: 2}),
        ("waits", "{wait: 100 ms}", "wait", {"wait": 1}),
        ("own", "{command: sleep 0.1}", "command", {"command": 1}),
    ],
)
def test_from_a_file_to_table_json_and_metrics(
    up: Up, tmp_path: Path, name: str, workload: str, engines: str, configurations: dict[str | None, int]
) -> None:
    """Each configuration on both phones; an axis that is not the engine's falls away."""
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT.format(name=name, workload=workload, engines=engines))
    done = farm("run", str(file), "--wait", "--state", str(up.state))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "threads: means nothing with engine " in done.stderr or "threads: the command has no {threads}" in done.stderr
    )
    found = json.loads(farm("results", name, "--json", "--raw", "--state", str(up.state)).stdout)
    counted = [each["options"].get("engine") for each in found["summaries"]]
    assert [each["engine"] for each in found["summaries"]] == [engine or "pocketfarm" for engine in counted]
    assert {engine: counted.count(engine) for engine in counted} == {
        engine: 2 * count for engine, count in configurations.items()
    }
    assert all(each["latency"]["median_ms"] > 0 and each["outcomes"] for each in found["summaries"])
    ran = {record["provenance"].get("engine") for record in found["records"]}
    assert ran == set(configurations) and all(record["provenance"]["program_hash"] for record in found["records"])
    table = farm("results", name, "--state", str(up.state)).stdout
    endpoints, (engine, *_) = read(up.state), configurations
    assert (f"engine={engine}" in table or "sleep 0.1" in table) and endpoints is not None
    listed = json.loads(farm("engines", "--json", "--state", str(up.state)).stdout)
    assert {engine or "pocketfarm" for engine in configurations} <= {each["engine"] for each in listed}
    assert all((each["devices"] or "farm engines install" in each["missing"]) and each["takes"] for each in listed)
    if engine == "nap":
        assert "nap.asleep" in table and "wake it" in table, "the engine's own doubt, with its remedy"
    url, wanted = endpoints.exporter_url, (f'options="engine={engine}"', 'stat="median"')

    def shown() -> int:
        with urllib.request.urlopen(url, timeout=60) as reply:
            lines = reply.read().decode().splitlines()
        told = [line for line in lines if line.startswith("farm_results_latency_seconds")]
        return sum(all(word in line for word in wanted) for line in told)

    eventually(lambda: shown() == 2)  # the exporter reads new results every few seconds
