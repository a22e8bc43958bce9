"""The farm's figure of an engine beside the engine's own tool, and what the farm costs the engine's process.

    python -m benchmarks.farm.engine_figures [--network squeezenet_v1_1] [--rounds 10] [--samples 30] [-o raw.json]

The tool by itself (`onnxruntime_test`, `litert-benchmark`, a plain loop over ncnn), the engine's driver without the
farm, and a block of the farm without and with its sampler, with the same model and threads. Runs are short and
alternate: a round has each way twice, in an order that turns and then the same backwards, so that a machine whose speed
wanders steadily lends all of them the same. A round gives one ratio of two ways. Told are the median of the ratios and
its interval, by the farm's own estimator; and beside it that of the processor time of the whole processes, which others
on the machine lengthen less. The tool starts another way, so that only times of the driver are compared so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.command_line import command, run_command
from orchestrator.analysis.statistics.intervals import MIN_BLOCKS, median_interval
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

WARMUP, TRIES = 10, 5
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

PAIRS = {
    "driver / tool": ("driver", "tool"),
    "farm / tool": ("farm", "tool"),
    "farm / driver": ("farm", "driver"),
    "sampler / none": ("farm with sampler", "farm"),
}


@dataclass(frozen=True)
class Ran:
    """One run of a way."""

    ms: float
    """The time of an inference, by the tool's or the farm's own figure."""
    cpu_ms: float
    """Processor time of the engine's whole process."""


Way = Callable[[], Ran]


def said(argv: list[str], folder: Path) -> tuple[str, float]:
    """Return what a program printed, and its processor time in ms."""
    variables = {**os.environ, "TMPDIR": str(folder)}
    before = _children_s()
    text = subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, check=True).stdout
    return text, 1e3 * (_children_s() - before)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Contest:
    """One engine with one model: its tool, its driver alone, and the farm."""

    def __init__(self, bench: Workbench, engine: PackagedEngine, folder: Path, chosen: argparse.Namespace) -> None:
        self._bench, self._engine, self._folder = bench, engine, folder
        self._chosen = chosen
        self._given = self._assignment(sampled=False)
        member = bench.fleet.member(CPU_SERIAL)
        program = engine.prepare(Work(self._given, member, lambda: None, lambda *_: None))
        assert isinstance(program, DrivenProgram)
        folder.mkdir()
        for name, path in program.files.items():
            shutil.copyfile(path, folder / name)
        self._argv = program.argv

    def ways(self) -> Mapping[str, Way]:
        return {
            "tool": getattr(self, f"_{self._engine.name}"),
            "driver": self._driver,
            "farm": partial(self._farm, sampled=False),
            "farm with sampler": partial(self._farm, sampled=True),
        }

    def _program(self, name: str) -> list[str]:
        python = str(self._engine.environment.python)
        return [python, str(self._engine.environment.python.with_name(name))]

    def _figure_ms(self, warmup: Sequence[float], timed: Sequence[float]) -> float:
        """Return the figure that the tool tells of such samples, in ns: onnxruntime's is the mean, cold ones in it."""
        if self._engine.name == "onnxruntime":
            return statistics.mean([*warmup, *timed]) / 1e6
        return statistics.median(timed) / 1e6

    def _onnxruntime(self) -> Ran:
        count = str(WARMUP + self._chosen.samples)
        told, cpu_ms = said([*self._program("onnxruntime_test"), "model.onnx", count], self._folder)
        (found,) = re.findall(r"avg latency: ([0-9.]+) ms", told)
        return Ran(float(found), cpu_ms)

    def _litert(self) -> Ran:
        options = {"model": "model.tflite", "num_runs": self._chosen.samples, "warmup_runs": WARMUP}
        options |= {"num_threads": self._chosen.threads, "result_json": "tool.json"}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        _, cpu_ms = said([*self._program("litert-benchmark"), *words], self._folder)
        return Ran(float(json.loads((self._folder / "tool.json").read_text())["latency"]["median_ms"]), cpu_ms)

    def _ncnn(self) -> Ran:
        counts = [str(self._chosen.threads), str(self._chosen.samples)]
        told, cpu_ms = said([str(self._engine.environment.python), "-c", PLAIN_NCNN, *counts], self._folder)
        return Ran(float(told), cpu_ms)

    def _driver(self) -> Ran:
        _, cpu_ms = said(self._argv, self._folder)
        with np.load(self._folder / "result.npz") as found:
            return Ran(self._figure_ms(*(found[phase][:, 1].tolist() for phase in ("warmup", "timed"))), cpu_ms)

    def _farm(self, sampled: bool) -> Ran:
        for _ in range(TRIES):  # the farm itself refuses a block in which others kept its sampler from reading
            record = run_job(self._assignment(sampled=sampled), self._bench, lambda: None, lambda *_: None)
            if record.outcome is Outcome.OK:
                break
        else:
            raise RuntimeError(f"{self._engine.name}: {record.outcome}: {record.reasons}")
        phases = [[each.duration_ns for each in record.samples if each.phase == name] for name in ("warmup", "timed")]
        return Ran(self._figure_ms(*phases), sum(each.user_ns + each.system_ns for each in record.processes) / 1e6)

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


def measured(chosen: argparse.Namespace, state: Path) -> dict[str, dict[str, list[Ran]]]:
    """Return the runs of each engine's ways, two of a round after the other."""
    settings = Settings(state=state, host="bench", adb_port=1)
    engines = Engines(Host.alone(state))
    bench = Workbench(settings, Fleet(), engines, "bench")
    for member, health in enrol_workstation(settings):
        bench.fleet.enrol(member, health)
    found: dict[str, dict[str, list[Ran]]] = {}
    for name in chosen.engines.split(","):
        engine = engines.engine(name)
        assert isinstance(engine, PackagedEngine)
        engine.environment.install()
        ways = Contest(bench, engine, state / name, chosen).ways()
        found[name] = {way: [] for way in ways}
        for turn in range(chosen.rounds):
            order = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
            for way in [*order, *reversed(order)]:
                found[name][way].append(ways[way]())
        print(_row(name, found[name]), flush=True)
    return found


def ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return one ratio of a round, of which each side has two values."""
    quotients = [a / b for a, b in zip(one, other, strict=True)]
    return [math.sqrt(a * b) for a, b in zip(quotients[::2], quotients[1::2], strict=True)]


def _row(name: str, found: Mapping[str, Sequence[Ran]]) -> str:
    told = [f"{name}: tool {statistics.median(each.ms for each in found['tool']):.3f} ms"]
    for what, (one, other) in PAIRS.items():
        told.append(f"  {what:15s} {_told(ratios(*([each.ms for each in found[way]] for way in (one, other))))}")
        if other != "tool":
            used = ratios(*([each.cpu_ms for each in found[way]] for way in (one, other)))
            told[-1] += f"; of the processor {_told(used)}"
    return "\n".join(told)


def _told(values: Sequence[float]) -> str:
    interval = median_interval(values)
    within = (
        f" ({interval.low:.3f} to {interval.high:.3f})" if interval else f" (an interval takes {MIN_BLOCKS} rounds)"
    )
    return f"{statistics.median(values):.3f}{within}"


def main() -> None:
    made = command(__doc__)
    made.add_argument("--network", default="squeezenet_v1_1", help="one of `farm networks` with one input and output")
    made.add_argument("--engines", default="onnxruntime,ncnn,litert")
    made.add_argument("--rounds", type=int, default=10, help="of two runs of each way")
    made.add_argument("--samples", type=int, default=30, help="of a run")
    made.add_argument("--threads", type=int, default=os.cpu_count(), help="all: onnxruntime's tool takes no other")
    made.add_argument("--environments", type=Path, default=None, help="a farm's STATE/engines, to install nothing anew")
    chosen = made.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        if chosen.environments:
            Path(folder, "engines").symlink_to(chosen.environments.absolute())
        found = measured(chosen, Path(folder))
    if chosen.output:
        told = {name: {way: list(map(asdict, runs)) for way, runs in of.items()} for name, of in found.items()}
        about = {name: getattr(chosen, name) for name in ("network", "rounds", "samples", "threads")}
        chosen.output.write_text(json.dumps({**about, "load": load, "runs": told}, indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
