"""One operation at one size on several backends in turn, each result verified first. Needs numpy and pydantic only."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.networks import OPERATIONS, seeded_normal
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Bundle
from kernels.reference import evaluate

from .agent_process import Agent, Ran, limits_of
from .caches import cache_environment
from .statistics import turns

BOUND = 1e-5
"""Largest error in norm, relative to the result's."""
FIRST_SAMPLES, MOST_SAMPLES = 3, 50
_WARMUP = 3


@dataclass(frozen=True)
class Host:
    """The host of runs: the agent, and where caches may lie."""

    binary: Path
    caches: Path
    spirv: Path
    device: str = ""
    """Words of the GPU's name; empty: each API's first."""
    threads: int = 0
    """The threads of the CPU backend; 0: as many as there are cores."""


@dataclass
class Measured:
    """One backend at one size; times in ms."""

    operation: str
    size: int
    api: str
    device: str = ""
    error: float = math.inf
    failed: str = ""
    """The reason why there are no times."""
    samples_ms: list[list[float]] = field(default_factory=list)
    """The samples of each turn: whole inferences, inputs and result in the device's memory."""
    copies_ms: list[float] = field(default_factory=list)
    """The copies of each turn: writing the inputs again and reading the result."""
    cold_ms: dict[str, float] = field(default_factory=dict)
    """Set-up by step in a process whose caches were all empty."""

    @property
    def is_right(self) -> bool:
        return not self.failed and self.error <= BOUND

    @property
    def ms(self) -> float:
        """Median of the turns' medians; a nanosecond where the clock did not move."""
        return max(1e-6, median(median(turn) for turn in self.samples_ms))

    @property
    def with_copies_ms(self) -> float:
        return self.ms + median(self.copies_ms)

    def raw(self) -> dict[str, Any]:
        """Return the row for JSON; an error that is not finite is null."""
        return {**asdict(self), "error": self.error if math.isfinite(self.error) else None}


def find_device(agent: Agent, api: str, words: str) -> dict[str, Any]:
    """The probe's facts of the first device with these words in its name. Raises CompileError where there is none."""
    found = agent.devices(api)
    for facts in found:
        if api == "cpu" or words.lower() in facts["device_name"].lower():
            return facts
    names = ", ".join(facts["device_name"] for facts in found) or "none"
    raise CompileError(f"no {api} device has {words!r} in its name; there are: {names}")


class Contest:
    """The backends of one operation at one size."""

    def __init__(self, host: Host, operation: str, size: int, apis: Sequence[Backend]) -> None:
        self._host = host
        self._graph: Graph = OPERATIONS[f"{operation}_{size}"](1)
        seed = secrets.randbelow(1 << 31)
        self._inputs = {name: seeded_normal(seed, name, self._graph.shapes[name]) for name in self._graph.inputs}
        self._wanted = evaluate(self._graph, self._inputs)
        self.found = {api: Measured(operation, size, api) for api in apis}
        self._plans: dict[str, tuple[Agent, Bundle]] = {}

    def measure(self, rounds: int, seconds: float) -> list[Measured]:
        """Verify all, then time those that are right in turn; about `seconds` a turn, three samples at least."""
        for api in self.found:
            self._start(api)
        ready = [api for api, one in self.found.items() if one.is_right]
        samples = dict.fromkeys(ready, FIRST_SAMPLES)
        for api in (api for turn in turns(ready, rounds) for api in turn):
            one = self.found[api]
            try:
                ran = self._run(api, _WARMUP, samples[api])
            except CompileError as e:
                one.failed = str(e)[:500]
                continue
            one.samples_ms.append(ran.samples_ms)
            one.copies_ms.append(median(ran.between_ms) + ran.setup_ms.get("readback", 0.0))
            wanted = math.ceil(seconds * 1e3 / max(median(ran.samples_ms), 1e-6))
            samples[api] = min(MOST_SAMPLES, max(FIRST_SAMPLES, wanted))
        return list(self.found.values())

    def _start(self, api: Backend) -> None:
        """First process, every cache empty: set-up by step, and whether the result is right."""
        one, host = self.found[api], self._host
        folder = host.caches / api / f"{one.operation}_{one.size}"
        agent = Agent(host.binary, folder / "agent", cache_environment(folder))
        try:
            facts = find_device(agent, api, host.device)
            one.device = facts["device_name"]
            limits = limits_of(facts) if api != "cpu" else Limits()
            options = Options(api, threads=host.threads if api == "cpu" else 0)
            self._plans[api] = agent, compile_graph(self._graph, options, limits, spirv_cache=host.spirv)
            ran = self._run(api, 0, 1)
        except CompileError as e:
            one.failed = str(e)[:500]
            return
        one.cold_ms = {step: ms for step, ms in ran.setup_ms.items() if step != "readback"}
        one.cold_ms |= {"first inference": ran.samples_ms[0], "readback": ran.setup_ms.get("readback", 0.0)}
        one.error = relative_error(ran.outputs, self._wanted)
        one.failed = "" if one.is_right else f"wrong: its relative error is {one.error:.1e}"

    def _run(self, api: Backend, warmup: int, samples: int) -> Ran:
        agent, bundle = self._plans[api]
        device = self.found[api].device if api != "cpu" and self._host.device else ""
        threads = self._host.threads if api == "cpu" else 0
        return agent.run(bundle, self._inputs, warmup=warmup, samples=samples, threads=threads, device=device)


def relative_error(found: Mapping[str, np.ndarray[Any, Any]], wanted: Mapping[str, np.ndarray[Any, Any]]) -> float:
    """The worst output's; infinite where a value is not finite or an output is missing."""
    worst = 0.0
    for name, array in wanted.items():
        if name not in found or not np.isfinite(found[name]).all():
            return math.inf
        worst = max(worst, float(np.linalg.norm(found[name] - array) / np.linalg.norm(array)))
    return worst
