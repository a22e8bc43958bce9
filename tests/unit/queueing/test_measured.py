"""Service times that the ledger holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.imports.conftest import Farm
from tests.unit.imports.conftest import farm as farm

pytestmark = pytest.mark.unit

SPEC = """
name: replay
servers: [{{name: phone}}]
classes:
  - name: a
    arrivals: {{kind: poisson, rate: 10}}
    service: {{kind: samples, ledger: {{experiment: night{more}}}}}
duration: 30 s
"""


@pytest.fixture
def measured(farm: Farm, tmp_path: Path) -> Farm:
    """A ledger with two devices; s7 has 10 ms and 30 ms of one network, and 50 ms of another."""
    rows = ["s7,squeezenet,,vulkan,fp32,10", "s7,squeezenet,,vulkan,fp32,30", "s7,lenet,,vulkan,fp32,50"]
    rows += ["p6,squeezenet,,vulkan,fp32,70", "s7,squeezenet,conv1,vulkan,fp32,1"]
    columns = "device,network,layer,backend,precision,sample_ms"
    (tmp_path / "logs.csv").write_text("\n".join([columns, *rows]) + "\n")
    assert farm("import", "samples", "logs.csv", "--name", "night")[0] == 0
    return farm


def simulate(farm: Farm, more: str) -> tuple[int, str, str]:
    Path("spec.yaml").write_text(SPEC.format(more=more))
    return farm("queue", "spec.yaml", "--simulate", "--json")


def test_requests_take_what_was_measured_on_that_device(measured: Farm) -> None:
    code, said, told = simulate(measured, ", device: s7, where: {network: squeezenet}")
    found = json.loads(said)
    service = found["all"]["service_s"]
    assert code == 0 and service["mean"]["value"] == pytest.approx(0.020, rel=0.1)
    assert service["p99"]["value"] == pytest.approx(0.030)
    assert {"device": "s7", "source": "import", "samples": 2}.items() <= found["times"][0].items()
    assert "2 latencies of squeezenet on s7 (import)" in told
    assert found["theory"][0]["name"] == "M/G/1"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (", where: {network: squeezenet}", "p6, s7"),
        (", device: s7", "2 configurations on s7"),
        (", device: s7, where: {network: alexnet}", "no latencies of network alexnet on s7"),
    ],
)
def test_times_of_several_or_of_none_are_refused(measured: Farm, more: str, said: str) -> None:
    code, _, told = simulate(measured, more)
    assert code == 1 and said in told


def test_an_experiment_that_is_not_there_is_told(measured: Farm) -> None:
    Path("spec.yaml").write_text(SPEC.format(more="").replace("night", "nigth"))
    code, _, told = measured("queue", "spec.yaml", "--simulate")
    assert code == 1 and "no experiment 'nigth'" in told and "night" in told
