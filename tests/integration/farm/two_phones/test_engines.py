"""Engines in a whole farm: from a file of one experiment to table, JSON and metrics, on virtual phones."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

from farm.endpoints import read
from tests.integration.farm.test_up import ROOT, Up, farm
from tests.waiting import eventually
from workers.devices.admit import host_abi

WORK = """#include <stdio.h>
int work(const char* path, int prompt, int generated, int threads) {
  double x = 0;
  for (long i = 0; i < (prompt + generated) * 160000L; ++i) x += 1.0 / (i + 1);
  FILE* model = fopen(path, "r");
  return !model || fclose(model) || x < 0;
}
"""
EXPERIMENT = """\
schema_version: 1
name: {name}
workload: {workload}
devices: {{where: source == "virtual", count: all}}
matrix: {{backend: cpu, engine: [{engines}], threads: [1, 2]}}
sampling: {{blocks: 2, samples: 3}}
measure: {{quantities: [latency]}}
"""


@pytest.mark.parametrize(
    ("name", "workload", "engines", "configurations"),
    [
        ("naps", "{network: lenet}", "pocketfarm, nap", {"nap": 2, None: 2}),
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
    fell = (
        "threads: means nothing with engine " in done.stderr or "threads: the command has no {threads}" in done.stderr
    )
    assert fell is (len(configurations) == 1), "every engine that computes has threads"
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
    assert all((each["devices"] or "farm engines " in each["missing"]) and each["takes"] for each in listed)
    if engine == "nap":
        assert "nap.asleep" in table and "wake it" in table, "the engine's own doubt, with its remedy"
    url, wanted = endpoints.exporter_url, (f'options="engine={engine}', 'stat="median"')

    def shown() -> int:
        with urllib.request.urlopen(url, timeout=60) as reply:
            lines = reply.read().decode().splitlines()
        told = [line for line in lines if line.startswith("farm_results_latency_seconds")]
        return sum(all(word in line for word in wanted) for line in told)

    eventually(lambda: shown() == 2 * configurations[engine])  # the exporter reads new results every few seconds


CRASHES = """#!/bin/sh
case $1 in 2) kill -SEGV $$ ;; 3) sleep 600 ;; 4) kill -KILL $$ ;; esac
sleep 0.05; echo took 50 ms
"""


def test_what_crashes_leaves_the_others_alone_and_runs_last(up: Up, tmp_path: Path, seed: int) -> None:
    """A crash, a hang and a kill, wherever the matrix lists them."""
    causes = {1: "", 2: "program_crashed", 3: "deadline", 4: "killed", 5: ""}
    threads = random.Random(seed).sample([*causes], len(causes))
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "run").write_text(CRASHES)
    file, state = tmp_path / "e.yaml", ("--state", str(up.state))
    workload = '{command: "./run {threads}", files: bench}'
    text = EXPERIMENT.format(name="crashes", workload=workload, engines="command").replace("[1, 2]", str(threads))
    file.write_text(text.replace("samples: 3", "samples: 2, deadline: 2 s") + "placement: {last: {threads: [2, 3, 4]}}")
    done = farm("run", str(file), "--wait", *state)
    found = json.loads(farm("results", "crashes", "--json", "--raw", *state).stdout)
    assert len(found["records"]) == 2 * 2 * len(causes), done.stdout + done.stderr
    threads_of = {each["cell_id"]: each["options"]["threads"] for each in found["summaries"]}
    begun: dict[tuple[str, bool], list[str]] = {}
    for record in found["records"]:
        cause = causes[threads_of[record["cell_id"]]]
        assert record["outcome"] in ("killed" if cause == "killed" else "failed" if cause else "ok", "invalid")
        assert record["cause"] == cause, record["reasons"]
        begun.setdefault((record["device"]["serial"], bool(cause)), []).append(record["started_at"])
    for device in {device for device, _ in begun}:
        assert max(begun[device, False]) < min(begun[device, True])
    assert sum(each.facts.source == "virtual" for each in up.ready_devices()) == 2, "no phone is to blame"


def test_a_folder_is_brought_run_and_removed(up: Up, tmp_path: Path) -> None:
    """`farm engines add`, an experiment on two virtual phones, its results, `farm engines remove`."""
    compiler, bench = shutil.which("gcc"), tmp_path / "bench"
    if compiler is None:
        pytest.skip("no C compiler")
    (bench / "lib").mkdir(parents=True)
    for name, text, flags in (
        ("lib/libwork.so", WORK, ["-shared", "-fPIC"]),
        ("llama-bench", (ROOT / "tests" / "data" / "llama_bench.c").read_text(), [f"-L{bench}/lib", "-lwork"]),
    ):
        (tmp_path / "it.c").write_text(text)
        subprocess.run([compiler, "-O1", str(tmp_path / "it.c"), "-o", str(bench / name), *flags], check=True)
    (tmp_path / "m.gguf").write_text("weights")
    file, state = tmp_path / "e.yaml", ("--state", str(up.state))
    file.write_text(
        EXPERIMENT.format(name="brought", workload="{model: m.gguf}", engines="llama.cpp") + "# engines of phones\n"
    )
    done = farm("run", str(file), "--wait", *state)
    assert done.returncode != 0 and "farm engines add llama.cpp" in done.stderr, "nothing was brought yet"
    done = farm("engines", "add", "llama.cpp", str(bench), "--abi", "riscv64", *state)
    assert done.returncode != 0 and "is built for" in done.stderr
    for said in (f"llama.cpp for {host_abi()}: llama-bench, 2 files", "nothing to do"):
        done = farm("engines", "add", "llama.cpp", str(bench), "--abi", host_abi(), *state)
        assert done.returncode == 0 and said in done.stdout + done.stderr, done.stderr
    (row,) = [each for each in json.loads(farm("engines", "--json", *state).stdout) if each["engine"] == "llama.cpp"]
    assert len(row["devices"]) >= 2 and row["builds"][0]["abi"] == host_abi() and row["builds"][0]["bytes"] > 0
    done = farm("run", str(file), "--wait", *state)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(farm("results", "brought", "--json", "--raw", *state).stdout)
    assert len(found["summaries"]) == 4 and {each["engine"] for each in found["summaries"]} == {"llama.cpp"}
    for record in found["records"]:
        timed = [sample for sample in record["samples"] if sample["phase"] == "timed"]
        (process,) = record["processes"]
        assert len(timed) == 3 and all(sample["token_count"] == 128 for sample in timed)
        assert 0 < sum(sample["duration_ns"] for sample in timed) <= process["end_ns"] - process["start_ns"]
        assert record["runs_on"]["facts"]["driver"] == "llama.cpp 1 (own)" and record["lines"]
    assert all(each["generated_tokens_per_s"]["value"] > 0 for each in found["summaries"]), found["summaries"][0].keys()
    for said in ("llama.cpp is removed", "the farm was brought nothing of an engine"):
        done = farm("engines", "remove", "llama.cpp", *state)
        assert said in done.stdout + done.stderr
    done = farm("run", str(file), "--again", *state)
    assert done.returncode != 0 and "farm engines add llama.cpp" in done.stderr
