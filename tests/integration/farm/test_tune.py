"""`farm tune` on this host's own device (PoCL), as a user types it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.cli import main
from kernels.frontend.load import load_workload
from kernels.ir.placement import Placement
from kernels.options import Choice
from kernels.tuning import STRATEGIES, Exhaustive, Measure
from kernels.tuning.strategies import Timing

FEW = 2


class Few:
    """A search of so few candidates that a test can compile them."""

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        return Exhaustive(2).search(choices[:FEW], measure)


def test_split(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The split that is found is measured beside either side alone, and is a placement that the compiler takes."""
    monkeypatch.setattr("workers.tuning.split_network.ROUNDS", 2)
    monkeypatch.setattr("workers.tuning.split_network.PROFILED", 1)
    asked = ["tune", "split", "--network", "lenet", "--state", str(tmp_path / "state"), "--json"]
    assert main([*asked, "--backend", "opencl"]) == 0
    found = json.loads(capsys.readouterr().out)
    graph = load_workload(network="lenet", onnx=None, seed=1)
    assert set(Placement.of(found["on_cpu"]).on_cpu(graph).values()) == {True, False}
    assert min(found[name] for name in ("split_ms", "gpu_ms", "cpu_ms", "transfer_ms")) >= 0 < found["split_ms"]
    assert found["device"] == "local-cpu" and found["fastest"] in ("split", "gpu", "cpu", None)
    fastest = min(found["tries"], key=lambda each: each["ms"])
    assert found["on_cpu"] == fastest["on_cpu"]
    assert [row["layer"] for row in found["layers"]] == ["conv1", "pool1", "conv2", "pool2", "ip1", "ip2"]
    assert all(row["gpu"] > 0 and row["cpu"] > 0 for row in found["layers"])
    assert main([*asked, "--backend", "cpu"]) == 2


def test_tune_show_export(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "halving", lambda _: Few())
    monkeypatch.setattr("workers.tuning.plan_comparison.PAIRS", 2)
    state = ["--state", str(tmp_path / "state")]
    for searched in (4, 0):
        assert main(["tune", "--network", "lenet", "--backend", "opencl", *state, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert len(found["searched"]) == searched and len(found["choices"]) == 4 and found["wrong"] == []
        assert found["device"] == "local-cpu" and all(row["ms"] > 0 for row in found["choices"])
    assert main(["tune", "--network", "lenet", "--backend", "opencl", *state]) == 0
    said = capsys.readouterr()
    assert "0 of 4 layers searched now" in said.out and "n1 c1 28x28 k20" in said.out
    assert main(["tune", "show", *state, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["conv"] for row in rows] == sorted(row["conv"] for row in found["choices"])
    assert main(["tune", "export", str(tmp_path / "all.json"), *state]) == 0
    assert len(json.loads((tmp_path / "all.json").read_text())) == 4
