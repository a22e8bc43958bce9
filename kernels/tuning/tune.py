"""Tune every convolution of a network on one device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from kernels.catalog import Convolution
from kernels.errors import CompileError
from kernels.graph import Graph
from kernels.options import Choice, Limits, Options
from kernels.plan import Bundle

from .candidates import candidates, distinct, trial
from .database import Database, Found
from .strategies import Strategy, Timing

RunLayers = Callable[[Bundle, int], dict[str, list[float]]]
"""bundle, passes -> layer -> device time of each pass in ms. Raises CompileError or the farm's errors."""


@dataclass(frozen=True)
class Progress:
    """One convolution is done."""

    done: int
    total: int
    conv: str
    found: Found | None
    """None where nothing ran."""


class Trials:
    """Measures candidates of one convolution on the device; a plan that fails is split until the culprit is alone."""

    def __init__(self, conv: Convolution, options: Options, limits: Limits, run: RunLayers) -> None:
        self._conv, self._options, self._limits, self._run = conv, options, limits, run
        self.failures: dict[Choice, str] = {}

    def __call__(self, choices: Sequence[Choice], repeats: int) -> list[float | None]:
        usable = [choice for choice in choices if choice not in self.failures]
        times = self._measure(usable, repeats)
        return [times.get(choice) for choice in choices]

    def _measure(self, choices: list[Choice], repeats: int) -> dict[Choice, float]:
        if not choices:
            return {}
        try:
            bundle = trial(self._conv, choices, self._options, self._limits)
            layers = self._run(bundle, repeats)
        except Exception as e:  # a driver may refuse any of them in its own way
            if len(choices) == 1:
                self.failures[choices[0]] = str(e)[:500]
                return {}
            middle = len(choices) // 2
            return {**self._measure(choices[:middle], repeats), **self._measure(choices[middle:], repeats)}
        return {choice: median(layers[str(index)]) for index, choice in enumerate(choices) if layers.get(str(index))}


def tune(
    graph: Graph,
    options: Options,
    limits: Limits,
    run: RunLayers,
    *,
    device: str,
    database: Database,
    strategy: Strategy,
    again: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> list[Found]:
    """Search each convolution that the database does not know yet (with `again`: all) and keep the best of each.

    `device`: `database.device_key`. The database is saved after each convolution: an interrupted tuning resumes.
    Raises CompileError where the network has no convolution that can be tuned (CPU plans have none).
    """
    if options.backend == "cpu":
        raise CompileError("the CPU backend has no algorithms to tune; tune opencl or vulkan")
    wanted = distinct(graph, options)
    found: list[Found] = []
    for index, (key, conv) in enumerate(wanted.items(), 1):
        known = None if again else database.get(device, options.precision, key)
        best = known or _search(conv, options, limits, run, device, strategy)
        if best is not None:
            database.add(best)
            database.save()
            found.append(best)
        on_progress(Progress(index, len(wanted), key, best))
    return found


def _search(
    conv: Convolution, options: Options, limits: Limits, run: RunLayers, device: str, strategy: Strategy
) -> Found | None:
    tried = candidates(conv, options, limits)
    timings = strategy.search(tried, Trials(conv, options, limits, run))
    if not timings:
        return None
    best: Timing = timings[0]
    default = next((timing.ms for timing in timings if timing.choice == tried[0]), None)
    return Found(
        device=device, precision=options.precision, conv=conv.key, algorithm=best.choice.algorithm,
        tile=best.choice.tile, ms=best.ms, default_ms=default, tried=len(tried), at=time.time(),
    )  # fmt: skip
