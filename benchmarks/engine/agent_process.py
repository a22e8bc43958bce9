"""Our engine as a process: compile for this machine's device, run the native agent, read its events. No farm needed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kernels.errors import CompileError
from kernels.options import Limits, matrix_units
from kernels.plan.model import Bundle, Plan
from kernels.tuning import Ran as TrialRan
from kernels.tuning import Trial

ITEM = {"f32": np.float32, "f16": np.float16}


class AgentError(CompileError):
    """The agent said so."""


@dataclass(frozen=True)
class Ran:
    """The report of one run of the agent."""

    outputs: dict[str, np.ndarray[Any, Any]]
    samples_ms: list[float]
    layers_ms: dict[str, list[float]]
    """Layer -> device time of each profiled pass, the layer's steps added up."""
    setup_ms: dict[str, float]
    device: dict[str, Any]
    process_ms: float = 0.0
    """Wall time of the whole process."""
    between_ms: list[float] = field(default_factory=list)
    """The time from each timed sample's end to the next one's start: the input is written again."""
    processor_ms: float = 0.0
    """The processor's time of the whole process."""


class Agent:
    """`binary`: the native agent; `cache`: folder for compiled programs."""

    def __init__(self, binary: Path, cache: Path, variables: Mapping[str, str] | None = None) -> None:
        """`variables`: of the environment, beside this process's own."""
        self._binary, self._cache = binary, cache
        self._environment = {**os.environ, **(variables or {})}

    def devices(self, api: str) -> list[dict[str, Any]]:
        """Return what the agent's probe finds of one API, the default first."""
        events = self._events([str(self._binary), "probe"])
        return [event["facts"] for event in events if event["event"] == "probe" and event["facts"]["api"] == api]

    def run(
        self, bundle: Bundle, inputs: Mapping[str, Any] | None = None, *, warmup: int = 1, samples: int = 0,
        passes: int = 0, threads: int = 0, device: str = "", limit_s: float = 300.0,
    ) -> Ran:  # fmt: skip
        """Run a plan; random inputs where none are given. Raises AgentError with the agent's words."""
        with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
            folder = Path(temporary)
            bundle.write(folder / "plan")
            return self.run_stored(
                bundle.plan, folder / "plan", inputs, warmup=warmup, samples=samples, passes=passes, threads=threads,
                device=device, limit_s=limit_s,
            )  # fmt: skip

    def run_stored(
        self, plan: Plan, folder: Path, inputs: Mapping[str, Any] | None = None, *, warmup: int = 1, samples: int = 0,
        load_ms: int = 0, passes: int = 0, threads: int = 0, device: str = "", limit_s: float = 300.0,
    ) -> Ran:  # fmt: skip
        """Run, as `run`, a plan that lies in `folder`; samples until there are enough and `load_ms` are over."""
        with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
            argv = [str(self._binary), "run", "--plan", str(folder), "--output-dir", f"{temporary}/out"]
            argv += ["--warmup", str(warmup), "--samples", str(samples), "--layer-passes", str(passes)]
            argv += ["--load-ms", str(load_ms)] if load_ms else []
            argv += ["--threads", str(threads), "--deadline-s", f"{limit_s:g}", "--cache-dir", str(self._cache)]
            argv += ["--device", device] if device else []
            for index, port in enumerate(plan.inputs):
                given = (inputs or {}).get(port.name)
                array = np.random.default_rng().standard_normal(port.shape) if given is None else given
                file = Path(temporary) / f"in{index}.bin"
                file.write_bytes(np.ascontiguousarray(array, np.float32).tobytes())
                argv += ["--input", f"{port.name}={file}"]
            began, before = time.monotonic(), _children_ms()
            events = self._events(argv, limit_s + 60)
            ran = _ran(plan, events, (time.monotonic() - began) * 1e3)
            return replace(ran, processor_ms=_children_ms() - before)

    def train(
        self, bundle: Bundle, data: Mapping[str, Any], *, device: str = "", threads: int = 0,
        checkpoint: Path | None = None, limit_s: float = 300.0,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run a plan that trains to its end; the event of each epoch. Raises AgentError with the agent's words."""
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            bundle.write(Path(folder, "plan"))
            argv = [str(self._binary), "run", "--plan", f"{folder}/plan", "--cache-dir", str(self._cache)]
            argv += ["--threads", str(threads), "--deadline-s", f"{limit_s:g}"]
            argv += ["--device", device] if device else []
            argv += ["--checkpoint", str(checkpoint)] if checkpoint else []
            for port in bundle.plan.inputs:
                data[port.name].tofile(Path(folder, port.name))
                argv += ["--input", f"{port.name}={folder}/{port.name}"]
            return [event for event in self._events(argv, limit_s + 60) if event["event"] == "sample"]

    def generate(
        self, folder: Path, tokens: Path, context: int, count: int, *, samples: int = 1, passes: int = 0,
        device: str = "", limit_s: float = 300.0,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run a stored plan that generates `count` tokens behind those of a file, of which the first `context` are not
        timed; one sample before is not either. `passes`: of the plan, whose steps are timed one by one. Return the
        events. Raises AgentError with the agent's words."""
        argv = [str(self._binary), "run", "--plan", str(folder), "--tokens", str(tokens), "--generate", str(count)]
        argv += ["--context", str(context), "--warmup", "1", "--samples", str(samples), "--layer-passes", str(passes)]
        argv += ["--cache-dir", str(self._cache), "--deadline-s", f"{limit_s:g}"]
        return self._events([*argv, *(["--device", device] if device else [])], limit_s + 60)

    def trial(self, trial: Trial, passes: int, *, device: str = "") -> TrialRan:
        """Run a trial as `kernels.tuning` measures."""
        ran = self.run(trial.bundle, trial.inputs, warmup=1, passes=passes, device=device)
        return TrialRan(ran.layers_ms, ran.outputs)

    def _events(self, argv: list[str], limit_s: float = 120.0) -> list[dict[str, Any]]:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=False, env=self._environment)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        failure = next((event for event in events if event["event"] == "error"), None)
        if failure or done.returncode != 0:
            raise AgentError(
                failure["message"]
                if failure
                else f"status {done.returncode}: {done.stderr[-500:]} {done.stdout[-800:]}"
            )
        return events


def _children_ms() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (spent.ru_utime + spent.ru_stime) * 1e3


def _ran(plan: Plan, events: list[dict[str, Any]], process_ms: float) -> Ran:
    passes: dict[tuple[str, int], float] = defaultdict(float)
    setup: dict[str, float] = defaultdict(float)
    for event in events:
        if event["event"] == "layer":
            passes[event["layer"], event["repeat"]] += event["duration_ns"] / 1e6
        elif event["event"] == "setup":
            setup[event["step"]] += event["duration_ns"] / 1e6
    layers: dict[str, list[float]] = defaultdict(list)
    for (layer, _), ms in passes.items():
        layers[layer].append(ms)
    written = {event["name"]: event["file"] for event in events if event["event"] == "output"}
    outputs = {
        port.name: np.fromfile(written[port.name], ITEM[port.dtype]).reshape(port.shape)
        for port in plan.outputs
        if port.name in written
    }
    timed = [event for event in events if event["event"] == "sample" and event["phase"] == "timed"]
    samples = [event["duration_ns"] / 1e6 for event in timed]
    between = [(b["start_ns"] - a["start_ns"] - a["duration_ns"]) / 1e6 for a, b in pairwise(timed)]
    device = next(event["facts"] for event in events if event["event"] == "device")
    return Ran(outputs, samples, dict(layers), dict(setup), device, process_ms, between)


def limits_of(facts: Mapping[str, Any]) -> Limits:
    """Return what the compiler must know, from the probe's facts."""
    name = f"{facts['device_name']} {facts['vendor']} {facts['driver']}".lower()
    return Limits(
        max_buffer_bytes=facts["max_buffer_bytes"],
        memory_budget_bytes=facts["global_bytes"],
        max_work_group=facts["max_work_group"],
        max_work_item_sizes=tuple(facts["max_work_item_sizes"]),
        local_bytes=facts["local_bytes"],
        offset_alignment=facts["offset_alignment"],
        precisions=tuple(facts["precisions"]),
        cpu_device=any(word in name for word in ("pthread", "cpu-", "pocl", "llvmpipe", "lavapipe")),
        unified_memory=facts["unified_memory"],
        int64=facts["int64"],
        compute_units=facts["compute_units"],
        subgroup_size=facts["subgroup_size"],
        matrix_units=matrix_units(facts["matrix_units"]),
        dot_product=facts["dot_product"],
    )
