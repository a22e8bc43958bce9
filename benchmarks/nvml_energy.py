"""Compares the farm's NVML source with the driver's own counter and with nvidia-smi, on this machine's GPU.

    python -m benchmarks.nvml_energy --seconds 20 [--json]

Needs NVIDIA's driver with its OpenCL (`nvidia-smi` and `clinfo` must know the board), the built agent
(`python -m device_agent.build`) and `pip install 'pocketfarm[nvml]'`. The load is a network in our own agent over
OpenCL; where the agent finds no OpenCL of the board, `--device-free` compares the three at whatever the board does.
Exit status 1 where the source and the counter differ by more than 2 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command_line import run_command
from orchestrator.model.device import Api, DeviceFacts, Source
from orchestrator.model.errors import FarmError, Unsupported
from orchestrator.model.event import Sample
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from orchestrator.model.power import PowerSource
from orchestrator.system.config import Settings
from workers.connection.local import LocalConnection
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Member
from workers.devices.workstation import enrol_workstation
from workers.engines.agent import raise_for
from workers.engines.pocketfarm.measure import Block, measure
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.power import Bench, choose_source

REST_S = 3.0
NETWORK = "squeezenet_v1_1"
SMI_PERIOD_MS = 100
AGREE = 0.02


def boottime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Smi:
    """nvidia-smi's power of one board, read line by line while it runs."""

    def __init__(self, index: int) -> None:
        self._argv = ["nvidia-smi", "-i", str(index), "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
        self.readings: list[tuple[float, float]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        process = subprocess.Popen([*self._argv, "-lms", str(SMI_PERIOD_MS)], stdout=subprocess.PIPE, text=True)
        thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            process.terminate()
            process.wait(10)
            thread.join(10)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            try:
                self.readings.append((boottime_s(), float(line)))
            except ValueError:  # `[N/A]`
                continue

    def energy_j(self, start_s: float, end_s: float) -> float | None:
        """Trapezoids, scaled from the readings' span to the window's."""
        inside = [(t, p) for t, p in self.readings if start_s <= t <= end_s]
        if len(inside) < 2:
            return None
        area = sum((t1 - t0) * (p0 + p1) / 2 for (t0, p0), (t1, p1) in pairwise(inside))
        return area / (inside[-1][0] - inside[0][0]) * (end_s - start_s)


class Counter:
    """The driver's own counter of energy, at two moments."""

    def __init__(self, name: str) -> None:
        import pynvml  # type: ignore[import-not-found,unused-ignore]

        self._nvml = pynvml
        pynvml.nvmlInit()
        boards = range(pynvml.nvmlDeviceGetCount())
        self.index = next((i for i in boards if self._name(i) in name or name in self._name(i)), 0)
        self.name = self._name(self.index)
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(self.index)

    def _name(self, index: int) -> str:
        return str(self._nvml.nvmlDeviceGetName(self._nvml.nvmlDeviceGetHandleByIndex(index)))

    def read_j(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000.0


def find_board(settings: Settings, *, device_free: bool) -> Member:
    """The NVIDIA board as a device of the farm. Raises Unsupported where the agent finds none."""
    if device_free:
        facts = DeviceFacts(
            serial="local-nvidia", host="bench", kind="workstation", source=Source.WORKSTATION, gpu_vendor="nvidia"
        )
        return Member(LocalConnection(facts.serial, settings.state), facts, "")
    for member, _ in enrol_workstation(settings):
        if member.facts.gpu_vendor == "nvidia":
            return member
    raise Unsupported("the agent finds no NVIDIA board", remedy="install its OpenCL, or use --device-free")


def run_load(member: Member, settings: Settings, seconds: float) -> int:
    """Inferences for about so long; how many. The number comes from a short block."""
    plans = Plans(settings.state)
    api = Api.OPENCL if member.facts.api(Api.OPENCL) else Api.VULKAN
    cell = Cell(workload=Workload(network=NETWORK), backend=api)

    def block(samples: int) -> list[int]:
        ready = Block("nvml/1", warmup=2, samples=samples, deadline_s=seconds * 3 + 60)
        plan, inputs = plans.plan(cell, member.facts), plans.models.inputs(cell.workload)
        with device_lock(settings.state, member.facts.serial):
            done = measure(member, plan, inputs, ready, lambda: None, lambda *_: None)
        raise_for(done.run, member.facts.serial)
        return [event.duration_ns for event in done.run.events if isinstance(event, Sample)]

    each_s = median(block(20)) / 1e9
    return len(block(min(100_000, max(20, round(seconds / each_s)))))


def compare(seconds: float, *, device_free: bool) -> dict[str, Any]:
    """Energies of the same window by the three."""
    with tempfile.TemporaryDirectory(prefix="pocketfarm-nvml-") as folder:
        settings = Settings(state=Path(folder))
        member = find_board(settings, device_free=device_free)
        source = choose_source(Bench(member), PowerSource.NVML)
        counter = Counter(member.facts.gpu)
        smi = Smi(counter.index)
        inferences = 0
        with smi.running():
            source.start()
            first_j, start_s = counter.read_j(), boottime_s()
            time.sleep(REST_S)
            if device_free:
                time.sleep(seconds)
            else:
                inferences = run_load(member, settings, seconds)
            time.sleep(REST_S)
            last_j, end_s = counter.read_j(), boottime_s()
            (series,) = source.stop()
        source_j = sum(
            (t1 - t0) / 1e9 * p1 for (t0, _), (t1, p1) in pairwise(zip(series.t_ns, series.power_w, strict=True))
        )
        return {
            "board": counter.name,
            "seconds": end_s - start_s,
            "inferences": inferences,
            "readings": len(series.t_ns),
            "source_j": source_j,
            "counter_j": last_j - first_j,
            "smi_j": smi.energy_j(start_s, end_s),
            "smi_readings": len(smi.readings),
            "peak_w": max(series.power_w),
            "least_w": min(series.power_w),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the load")
    parser.add_argument("--device-free", action="store_true", help="no load of ours")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = compare(options.seconds, device_free=options.device_free)
    except FarmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            share = (
                f"  {value / found['counter_j'] - 1:+.2%} of the counter"
                if name in ("source_j", "smi_j") and value
                else ""
            )
            print(f"{name:<14} {value if not isinstance(value, float) else round(value, 3)}{share}")
    return int(abs(found["source_j"] / found["counter_j"] - 1) > AGREE)


if __name__ == "__main__":
    run_command(main)
