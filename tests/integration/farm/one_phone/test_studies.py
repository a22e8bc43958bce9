"""The published studies' own files, made small, through a real farm: a virtual phone and this workstation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.integration.farm.conftest import Cli
from tests.integration.farm.test_up import ROOT, Up
from tests.integration.workers.jobs import BUSY, begun

pytestmark = [pytest.mark.slow, pytest.mark.long]

STUDIES = (
    "study_a", "study_a_kernels", "study_a_limits", "study_c", "study_c_mixed", "study_m", "study_p",
    "study_s_predictions",
)  # fmt: skip
"""Files of experiments/ that these tests run; test_experiment_files runs the others."""
JOINED_BYTES = 9_000_000
"""SqueezeNet needs more where the channels of its concats are joined."""
SMALL = {"blocks": 1, "warmup": 1, "samples": 2}


def asked_of(name: str) -> dict[str, Any]:
    """Return what a study's file asks for, with the place of its figures."""
    assert name in STUDIES
    asked: dict[str, Any] = yaml.safe_load((ROOT / "experiments" / f"{name}.yaml").read_text())
    asked["published"]["study"] = str(ROOT / "experiments" / asked["published"]["study"])
    return asked


def small(up: Up, name: str, sampling: dict[str, Any] | None = None, **axes: list[Any]) -> Path:
    """A study's file with some of its axes' values, and few samples. It keeps its name and what was published."""
    asked = asked_of(name)
    for axis, values in axes.items():
        assert set(values) <= set(asked["matrix"][axis]), f"{name}.yaml has no such {axis}"
        asked["matrix"][axis] = values
    asked["sampling"] |= SMALL | (sampling or {})
    path = up.state / f"{name}.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    return path


def run(up: Up, cli: Cli, path: Path) -> tuple[int, dict[str, Any]]:
    """Exit status, and the results with every record; again where other work on this machine spoilt a block."""
    for _ in range(3):
        status, _, _ = cli("run", str(path), "--wait", "--state", str(up.state))
        data = json.loads(cli("results", "latest", "--json", "--raw", "--state", str(up.state))[1])
        data["records"] = begun(data["records"])
        if not any(record["outcome"] == "invalid" and record["cause"] in BUSY for record in data["records"]):
            break
    return status, data


def read(up: Up, cli: Cli) -> str:
    """Return what a person sees, in the terminal and on the page."""
    page = up.state / "report.html"
    assert cli("report", "latest", "-o", str(page), "--state", str(up.state))[0] == 0
    return cli("results", "latest", "--setup", "--state", str(up.state))[1] + page.read_text()


def all_verified(data: dict[str, Any], backends: set[str]) -> None:
    records = data["records"]
    assert {record["outcome"] for record in records} == {"ok"}, [record["reasons"] for record in records]
    assert all(record["checks"] and all(check["ok"] for check in record["checks"]) for record in records)
    ran = {(record["source"], record["runs_on"]["api"]) for record in records}
    assert ran == {(source, api) for source in ("virtual", "workstation") for api in backends}


def test_study_c(up: Up, cli: Cli) -> None:
    axes = {"network": ["lenet"], "algorithm": ["im2col"], "thread_life": ["kept"], "pin_threads": [False]}
    path = small(up, "study_c", {"frames": 10}, pipeline=["none", "balanced"], **axes)
    status, data = run(up, cli, path)
    assert status == 0
    all_verified(data, {"cpu", "opencl"})
    gains = [summary["throughput"]["over_one_thread"] for summary in data["summaries"]]
    assert all(gain and gain > 0 for gain in gains) and gains.count(1.0) == 2  # one thread of each device
    text = read(up, cli)
    for words in (
        "over one thread",
        "Published, not measured here: Gao, Zhang and Mei",
        "1.98 x",
        "every configuration: ",
    ):
        assert words in text
    assert "a pipeline has at least two stages" in text


def test_study_c_places_the_steps_of_convolutions_apart(up: Up, cli: Cli) -> None:
    axes = {"network": ["lenet"], "backend": ["opencl"], "objects": ["kept"], "thread_life": ["kept"]}
    placed = ["gemm+pooling+products", "im2col"]
    status, data = run(up, cli, small(up, "study_c_mixed", {"frames": 4}, on_cpu=placed, **axes))
    assert status == 0
    all_verified(data, {"opencl"})
    assert len(data["summaries"]) == 2 * len(placed) * 2  # devices, placements, with and without a pipeline
    text = read(up, cli)
    assert all(words in text for words in (*placed, "across"))


def test_study_p(up: Up, cli: Cli) -> None:
    status, data = run(up, cli, small(up, "study_p", network=["matmul_16", "matmul_64"]))
    assert status == 0
    all_verified(data, {"cpu", "opencl", "vulkan"})
    assert all(summary["setup"] for summary in data["summaries"])
    counted = data["reproduction"]["counts"]  # each finding on both devices, none of it lost
    assert {name.split()[-1]: sum(own.values()) for name, own in counted.items()} == {"virtual": 6, "workstation": 6}
    text = read(up, cli)
    for words in ("Backends side by side", "When the GPU pays", "Set-up: cold, warm, cached", "speed-up of"):
        assert words in text
    assert "Published, not measured here: Pradana" in text


def test_study_m_is_judged_by_what_rounding_alone_loses(up: Up, cli: Cli) -> None:
    """PyNET magnifies rounding beyond the usual tolerance: Winograd's, as its sums are otherwise added in parts; a crop
    of a sixteenth takes less time, and magnifies more."""
    axes = {"backend": ["opencl"], "algorithm": ["winograd"], "concat": ["split"]}
    path = small(up, "study_m", {"samples": 1, "warmup": 0}, **axes)
    crop = "network: pynet\n  parameters: {level: 3, size: [32, 32]}"
    text = path.read_text().replace("count: all", "where: kind == 'workstation'")
    path.write_text(text.replace("network: pynet_level_3", crop))
    status, data = run(up, cli, path)
    (record,) = data["records"]
    (check,) = record["checks"]
    assert (status, record["outcome"], record["source"]) == (0, "ok", "workstation")
    assert check["ok"] and check["tolerance"] == pytest.approx(10 * check["rounding"]) and check["rounding"] > 0
    assert "rounding" in {doubt["code"] for doubt in record["doubts"]}
    assert "1676 s" in read(up, cli)


def test_a_budget_is_met_or_refused_with_the_figures(up: Up, cli: Cli) -> None:
    """8 MB are enough without concats alone; 4 MB are less than the weights, which wait in host memory then; half a
    megabyte is less than the input."""
    path = up.state / "budget.yaml"
    path.write_text(
        'name: budget\nworkload: {network: squeezenet_v1_1}\ndevices: {where: source == "virtual"}\n'
        "matrix: {backend: vulkan, memory_budget: [8 MB, 4 MB, 500 kB]}\nsampling: {blocks: 1, warmup: 0, samples: 1}\n"
    )
    status, data = run(up, cli, path)
    assert status == 1
    records = {record["cell_id"]: record for record in data["records"]}
    found = {s["label"].partition("budget=")[2]: records[s["cell_id"]] for s in data["summaries"]}
    assert {size: record["outcome"] for size, record in found.items()} == {
        "8 MB": "ok", "4 MB": "ok", "500 kB": "failed",
    }  # fmt: skip
    assert found["8 MB"]["memory"]["device_peak_bytes"] <= 8_000_000 < JOINED_BYTES
    assert found["4 MB"]["memory"]["device_peak_bytes"] <= 4_000_000
    assert found["8 MB"]["checks"][0]["ok"] and found["4 MB"]["checks"][0]["ok"]
    said = cli("status", "budget", "--state", str(up.state))[1]
    for words in ("memory_budget=500 kB", "more than the memory budget of 500000", "needs at least"):
        assert words in said
    assert "Not measured" in read(up, cli)


def test_study_s_predictions_are_shared_out(up: Up, cli: Cli, seed: int) -> None:
    """A set of ten in shards of six: each backend and precision goes through it once, on whichever device is free."""
    np.save(up.state / "validation.npy", np.random.default_rng(seed).normal(size=(10, 1, 28, 28)))
    (up.state / "validation.labels.txt").write_text("3\n" * 10)
    asked = asked_of("study_s_predictions")
    dataset = {"inputs": "validation.npy", "labels": "validation.labels.txt", "shard": 6}
    asked |= {"workload": {"network": "lenet", "dataset": dataset}, "devices": {"count": "any"}}
    asked["matrix"] = {"backend": ["opencl", "cpu"], "precision": ["fp32", "fp16"]}
    path = up.state / "study_s_predictions.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    status, data = run(up, cli, path)
    assert status == 0
    cells: dict[str, dict[int, int]] = {}
    for record in data["records"]:
        assert record["outcome"] == "ok" and record["checks"][0]["ok"]
        found = record["predictions"]
        cells.setdefault(record["cell_id"], {}).update(enumerate((top[0] for top in found["top"]), found["first"]))
    labels = {summary["cell_id"]: summary["label"] for summary in data["summaries"]}
    assert sorted(labels[cell] for cell in cells) == ["lenet cpu fp32", "lenet opencl fp16", "lenet opencl fp32"]
    assert all(sorted(classes) == list(range(10)) for classes in cells.values())
    (found,) = json.loads(cli("agreement", "latest", "--json", "--state", str(up.state))[1])["agreements"]
    rows = {row["result"]["label"]: row for row in found["rows"]}
    assert found["base"]["label"] == "lenet opencl fp32"
    assert rows["lenet cpu fp32"]["comparison"]["same"]["count"] == 10
    for cell, classes in cells.items():
        top1 = rows[labels[cell]]["result"]["top1"]
        assert (top1["count"], top1["of"]) == (sum(each == 3 for each in classes.values()), 10)
    text = read(up, cli)
    for words in ("Published, not measured here: Motamedi", "frames/s", "Agreement of predictions with opencl fp32"):
        assert words in text


def test_study_a_searches_the_limits_of_every_device(up: Up, cli: Cli) -> None:
    """The limits are of a training, as the study's. A budget of 18 MB stands for the device's memory."""
    if not os.environ.get("CI"):
        pytest.importorskip("sklearn")
    asked = asked_of("study_a_limits")
    asked["matrix"] |= {"memory_budget": ["18 MB"]}
    asked["strategy"]["limit_search"] |= {"step": 1024}
    path = up.state / "study_a_limits.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    status, data = run(up, cli, path)
    ends = [(one["outcome"], one["cause"], one["reasons"]) for one in data["records"]]
    assert status == 0, f"what is refused is a result: {ends}"
    assert {one["source"] for one in data["limits"]} == {"virtual", "workstation"}
    for one in data["limits"]:
        assert [(probe["value"], probe["ended"]) for probe in one["probes"]] == [
            (512, "ran"), (1024, "ran"), (2048, "refused"),
        ]  # fmt: skip
        assert one["over"] and one["largest"]["weights"] == 785 * 1024 + 1025 * 250 + 251 * 10
        assert "of 18000000 by" in one["smallest"]["reason"]
    beside = [each for each in data["reproduction"]["beside"] if each["table"]]
    assert {each["ours"] for each in beside if each["metric"] == "limit"} == {1024}
    assert {(each["source"], each["verdict"]) for each in beside} == {
        ("virtual", "modelled"), ("workstation", "not comparable"),
    }  # fmt: skip
    times = {each["ours"] for each in beside if each["metric"] == "limit_time"}
    assert sorted(times) == pytest.approx(sorted(one["largest"]["median_ms"] / 1e3 for one in data["limits"]))
    text = read(up, cli)
    for words in ("Limits of the devices", "1,062,600", "Published", "Falcao", "and where devices gave up"):
        assert words in text


@pytest.mark.parametrize(("name", "backend"), [("study_a", "opencl"), ("study_a_kernels", "vulkan")])
def test_study_a_trains_on_every_device(up: Up, cli: Cli, name: str, backend: str) -> None:
    """It trains with products of matrices, and with the study's kernels; updates on the device and on the host."""
    if not os.environ.get("CI"):
        pytest.importorskip("sklearn")
    asked = asked_of(name)
    powered = name == "study_a"  # on the study's own network, whose stages are long enough for a gauge
    asked["workload"]["training"] |= {"epochs": 8, "pretraining": 2}
    asked["workload"]["parameters"] = {} if powered else {"hidden": [40, 20], "inputs": 64}
    asked["sampling"] = {"deadline": "2 min", "idle": "3 s" if powered else 0}
    asked["workload"]["training"]["learning_rate"] = 0.1  # at the study's, rounding is magnified
    asked["matrix"]["backend"] = [backend]
    asked["measure"]["quantities"] = ["latency", "power"] if powered else ["latency"]
    path = up.state / f"{name}.yaml"
    path.write_text(yaml.safe_dump(asked, sort_keys=False))
    _, data = run(up, cli, path)
    assert {one["outcome"] for one in data["records"]} <= {"ok", "invalid"}, [one["reasons"] for one in data["records"]]
    trained = data["trained"]
    assert len(trained) == 4 and all(one["count"] == 12 and one["model"]["evaluated"] == 359 for one in trained)
    losses = [[epoch["loss"] for epoch in one["epochs"] if epoch["stage"] == "train"] for one in trained]
    whole = [one["whole"] for one in trained if one["whole"]["epoch_j"]]
    assert whole or not powered, "of the virtual phone"
    for one in whole:
        assert one["epoch_j"] == pytest.approx(one["net_power_w"] * one["epoch_ms"] / 1e3, rel=1e-6)
    powers = [one for one in data["reproduction"]["beside"] if one["metric"] in ("energy", "net_power")]
    for one in powers if powered else ():  # a busy machine may spoil the one block of the row
        assert one["ours"] is None and re.search("too short|not measured|no power|no other", one["why"]), one
    assert all(own[-1] < own[0] and own == pytest.approx(losses[0], rel=1e-3) for own in losses), "alike everywhere"
    text = read(up, cli)
    told = ["Training", "answers by right class", "Training: pretrain:encode1", "updates", "host"]
    for words in (*told, "Published", "Falcao"):
        assert words in text
