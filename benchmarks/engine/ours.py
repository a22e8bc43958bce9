"""Our engine as a contender: compiled for this device, each turn an agent process with warm caches."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.options import Backend, Choice, Limits, Options, Precision
from kernels.plan.model import Bundle

from .agent_process import Agent, Ran, limits_of
from .caches import cache_environment
from .case import Arrays, Case
from .contender import ContenderError, Opened, Turn

_LIMIT_S = 300.0


class Ours:
    """Our engine as a `contender.Contender`."""

    def __init__(
        self, name: str, backend: Backend, binary: Path, folder: Path, *, spirv_cache: Path, threads: int = 0,
        device: str = "", tuned: Mapping[str, Choice] | None = None, remarks: Sequence[str] = (),
        precision: Precision = "fp32",
    ) -> None:  # fmt: skip
        """`folder`: for the plan, the caller's to remove. `threads`: of the CPU backend. `tuned`: as in `Options`."""
        self.name, self._binary, self._spirv_cache = name, binary, spirv_cache
        self._options = Options(backend, precision, threads=threads if backend == "cpu" else 0, tuned=tuned or {})
        self._threads, self._device, self._remarks = threads, device, remarks
        self._folder = folder
        self._bundle: Bundle | None = None
        self._estimate_ms = 1.0

    @property
    def backend(self) -> Backend:
        """Our API."""
        return self._options.backend

    def open(self, case: Case, caches: Path) -> Opened:
        self._case = case
        self._agent = Agent(self._binary, caches / "agent", cache_environment(caches))
        facts = find_device(self._agent, self._options.backend, self._device)
        host_ms = None
        if self._bundle is None:
            host_ms = self._compile(limits_of(facts))
        ran = self._run(0, warmup=0, samples=1)
        self._estimate_ms, self._alone_processor_ms = ran.samples_ms[-1], ran.processor_ms
        steps = {step: ms for step, ms in ran.setup_ms.items() if step != "readback"}
        steps |= {"first inference": ran.samples_ms[0], "readback": ran.setup_ms.get("readback", 0.0)}
        steps["process"] = max(0.0, ran.process_ms - sum(steps.values()))
        about = f"agent, {facts['driver']}"
        return Opened(ran.outputs, facts["device_name"], about, steps, False, list(self._remarks), host_ms)

    def infer(self, index: int) -> Arrays:
        ran = self._run(index, warmup=0, samples=1)
        self._alone_processor_ms = min(self._alone_processor_ms, ran.processor_ms)  # caches may have been empty before
        return ran.outputs

    def turn(self, warmup_s: float, seconds: float, least: int) -> Turn:
        warmup = max(1, math.ceil(warmup_s * 1e3 / self._estimate_ms))
        ran = self._run(0, warmup=warmup, samples=least, load_ms=round(seconds * 1e3))
        self._estimate_ms = median(ran.samples_ms)
        copies_ms = median(ran.between_ms) + ran.setup_ms.get("readback", 0.0)
        more = warmup + len(ran.samples_ms) - 1  # inferences than the process has that makes a lone one
        return Turn(ran.samples_ms, copies_ms, ran.outputs, (ran.processor_ms - self._alone_processor_ms) / more)

    def close(self) -> None:
        """Every run was a process of its own."""

    def _compile(self, limits: Limits) -> float:
        began = time.monotonic()
        try:
            self._bundle = compile_graph(self._case.graph, self._options, limits, spirv_cache=self._spirv_cache)
        except CompileError as e:
            raise ContenderError(str(e)) from e
        self._bundle.write(self._folder / "plan")
        return (time.monotonic() - began) * 1e3

    def _run(self, index: int, **arguments: Any) -> Ran:
        assert self._bundle
        try:
            return self._agent.run_stored(
                self._bundle.plan, self._folder / "plan", self._case.inputs[index], threads=self._threads,
                device="" if self._options.backend == "cpu" else self._device, limit_s=_LIMIT_S, **arguments,
            )  # fmt: skip
        except (CompileError, json.JSONDecodeError, subprocess.TimeoutExpired, StopIteration) as e:
            raise ContenderError(f"{type(e).__name__}: {e}"[:600]) from e


def find_device(agent: Agent, api: str, words: str = "") -> dict[str, Any]:
    """The probe's facts of the device with these words in its name. Raises ContenderError where there is none."""
    try:
        found = agent.devices(api)
    except CompileError as e:
        raise ContenderError(str(e)) from e
    fitting = [facts for facts in found if api == "cpu" or words.lower() in facts["device_name"].lower()]
    if not fitting:
        names = ", ".join(facts["device_name"] for facts in found) or "none"
        raise ContenderError(f"the agent finds no {api} device with {words!r} in its name; it finds: {names}")
    return fitting[0]
