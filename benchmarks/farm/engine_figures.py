"""The farm's figure of an engine beside the engine's own tool, and what the farm costs the engine's process.

    python -m benchmarks.farm.engine_figures [--network squeezenet_v1_1] [--rounds 10] [--samples 100] [-o raw.json]

In each round, in an order that turns: the tool by itself (`onnxruntime_test`, `litert-benchmark`, a plain loop over
ncnn), the engine's driver without the farm, and a block of the farm without and with its sampler. All have the same
model and threads. Times are of a clock: run it at rest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.command_line import run_command
from orchestrator.model.device import Api
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome
from orchestrator.system.config import Settings
from workers.devices.fleet import Fleet
from workers.devices.workstation import CPU_SERIAL, enrol_workstation
from workers.engines import Engines, Host, Work
from workers.engines.packaged import PackagedEngine
from workers.engines.packaged.program import DrivenProgram
from workers.execution.run_job import Workbench, run_job

WARMUP = 10
PLAIN_NCNN = """
import statistics, sys, time
import ncnn, numpy
threads, count = map(int, sys.argv[1:])
net = ncnn.Net()
net.opt.num_threads = threads
for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"):
    if hasattr(net.opt, f"use_{name}"):
        setattr(net.opt, f"use_{name}", False)
net.load_param("model.ncnn.param"), net.load_model("model.ncnn.bin")
(given,) = numpy.load("inputs.npz").values()
given = ncnn.Mat(numpy.ascontiguousarray(given[0])).clone()
took = []
for _ in range(WARMUP + count):
    began = time.perf_counter_ns()
    with net.create_extractor() as extractor:
        extractor.input(net.input_names()[0], given)
        extractor.extract(net.output_names()[0])
    took.append((time.perf_counter_ns() - began) / 1e6)
print(statistics.median(took[WARMUP:]))
""".replace("WARMUP", str(WARMUP))

Figure = Callable[[], float]
"""Runs once, and returns milliseconds of an inference."""


def said(argv: list[str], folder: Path) -> str:
    variables = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, check=True).stdout


class Contest:
    """One engine with one model: its tool, its driver alone, and the farm."""

    def __init__(self, bench: Workbench, engine: PackagedEngine, folder: Path, chosen: argparse.Namespace) -> None:
        self._bench, self._engine, self._folder = bench, engine, folder
        self._chosen, self._average = chosen, statistics.median
        self._given = self._assignment(sampled=False)
        member = bench.fleet.member(CPU_SERIAL)
        program = engine.prepare(Work(self._given, member, lambda: None, lambda *_: None))
        assert isinstance(program, DrivenProgram)
        folder.mkdir()
        for name, path in program.files.items():
            shutil.copyfile(path, folder / name)
        self._argv = program.argv
        if engine.name == "onnxruntime":
            self._average = statistics.mean  # its tool tells no other

    def ways(self) -> Mapping[str, Figure]:
        return {
            "tool": getattr(self, f"_{self._engine.name}"),
            "driver": self._driver,
            "farm": partial(self._farm, sampled=False),
            "farm with sampler": partial(self._farm, sampled=True),
        }

    def _program(self, name: str) -> list[str]:
        python = str(self._engine.environment.python)
        return [python, str(self._engine.environment.python.with_name(name))]

    def _onnxruntime(self) -> float:
        told = said([*self._program("onnxruntime_test"), "model.onnx", str(self._chosen.samples)], self._folder)
        (found,) = re.findall(r"avg latency: ([0-9.]+) ms", told)
        return float(found)

    def _litert(self) -> float:
        options = {"model": "model.tflite", "num_runs": self._chosen.samples, "warmup_runs": WARMUP}
        options |= {"num_threads": self._chosen.threads, "result_json": "tool.json"}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        said([*self._program("litert-benchmark"), *words], self._folder)
        return float(json.loads((self._folder / "tool.json").read_text())["latency"]["median_ms"])

    def _ncnn(self) -> float:
        counts = [str(self._chosen.threads), str(self._chosen.samples)]
        return float(said([str(self._engine.environment.python), "-c", PLAIN_NCNN, *counts], self._folder))

    def _driver(self) -> float:
        said(self._argv, self._folder)
        with np.load(self._folder / "result.npz") as found:
            return float(self._average(found["timed"][:, 1].tolist())) / 1e6

    def _farm(self, sampled: bool) -> float:
        record = run_job(self._assignment(sampled=sampled), self._bench, lambda: None, lambda *_: None)
        if record.outcome is not Outcome.OK:
            raise RuntimeError(f"{self._engine.name}: {record.outcome}: {record.reasons}")
        return self._average([each.duration_ns for each in record.samples if each.phase == "timed"]) / 1e6

    def _assignment(self, sampled: bool) -> Assignment:
        options = {"engine": self._engine.name, "threads": self._chosen.threads}
        job = Job(
            experiment_id="figures",
            cell=Cell(workload=Workload(network=self._chosen.network), backend=Api.CPU, options=options),
            block=0,
            candidates=(CPU_SERIAL,),
            sampling=Sampling(warmup=WARMUP, samples=self._chosen.samples),
            conditions=Conditions(),
            measure=Measure.model_validate({"quantities": ["latency", *(["power"] if sampled else [])]}),
        )
        return Assignment(serial=CPU_SERIAL, host="bench", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=60.0)


def measured(chosen: argparse.Namespace, state: Path) -> dict[str, dict[str, list[float]]]:
    settings = Settings(state=state, host="bench", adb_port=1)
    engines = Engines(Host.alone(state))
    bench = Workbench(settings, Fleet(), engines, "bench")
    for member, health in enrol_workstation(settings):
        bench.fleet.enrol(member, health)
    found: dict[str, dict[str, list[float]]] = {}
    for name in chosen.engines.split(","):
        engine = engines.engine(name)
        assert isinstance(engine, PackagedEngine)
        engine.environment.install()
        ways = Contest(bench, engine, state / name, chosen).ways()
        found[name] = {way: [] for way in ways}
        for turn in range(chosen.rounds):
            order = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
            for way in order if turn % 2 else reversed(order):
                found[name][way].append(ways[way]())
        print(_row(name, found[name]), flush=True)
    return found


def _row(name: str, found: Mapping[str, list[float]]) -> str:
    tool, driver = found["tool"], found["driver"]
    told = [f"{name}: tool {statistics.median(tool):.3f} ms"]
    pairs = {"driver / tool": (driver, tool), "farm / tool": (found["farm"], tool),
             "farm / driver": (found["farm"], driver),
             "with sampler / without": (found["farm with sampler"], found["farm"])}  # fmt: skip
    for what, (one, other) in pairs.items():
        ratios = sorted(a / b for a, b in zip(one, other, strict=True))
        told.append(f"{what} {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    return "; ".join(told)


def main() -> int:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--network", default="squeezenet_v1_1", help="one of `farm networks` with one input and output")
    made.add_argument("--engines", default="onnxruntime,ncnn,litert")
    made.add_argument("--rounds", type=int, default=10)
    made.add_argument("--samples", type=int, default=100, help="of a run")
    made.add_argument("--threads", type=int, default=os.cpu_count(), help="all: onnxruntime's tool takes no other")
    made.add_argument("--environments", type=Path, default=None, help="a farm's STATE/engines, to install nothing anew")
    made.add_argument("-o", "--output", type=Path, default=None)
    chosen = made.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        if chosen.environments:
            Path(folder, "engines").symlink_to(chosen.environments.absolute())
        found = measured(chosen, Path(folder))
    if chosen.output:
        about = {name: getattr(chosen, name) for name in ("network", "rounds", "samples", "threads")}
        chosen.output.write_text(json.dumps({**about, "load": load, "ms": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    run_command(main)
