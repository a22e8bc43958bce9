"""Candidates of one layer on the device: timed together, a plan that fails is split, the winner is verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import CompileError
from kernels.options import Choice, Limits, Options
from kernels.reference import evaluate

from .candidates import Trial, batches, trial
from .layers import Layer

TOLERANCES = {"fp32": 1e-4, "relaxed": 1e-4, "imprecise": 1e-4, "fp16": 2e-2, "fp16_arithmetic": 2e-2, "int8": 0.25}
"""Largest absolute difference from the reference, as a share of its largest absolute value."""
_SAID = 300
"""Characters kept of a failure."""


class TrialFailed(CompileError):
    """The device refused a trial plan, or it crashed or hung there: one of its candidates is to blame."""


class TimeIsOver(Exception):
    """A run was cut off, or not begun, because the time for the tuning is over: nobody is to blame."""


@dataclass(frozen=True)
class Ran:
    """The results of one run of a trial plan."""

    layers_ms: Mapping[str, Sequence[float]]
    """Layer -> device time of each pass."""
    outputs: Mapping[str, npt.NDArray[Any]]


RunTrial = Callable[[Trial, int], Ran]
"""Runs a trial plan so many times. Raises TrialFailed, TimeIsOver; whatever else it raises ends the tuning."""


class Trials:
    """Measures candidates of one layer; what failed once is not tried again."""

    def __init__(
        self, layer: Layer, options: Options, limits: Limits, run: RunTrial, *, spirv_cache: Path | None = None,
        report: Callable[[int, float], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        """`report`: called with the number of measurements so far and the best ms."""
        self._layer, self._options, self._limits, self._run = layer, options, limits, run
        self._spirv_cache, self._report = spirv_cache, report
        self._measured, self._best_ms = 0, float("inf")
        self.failures: dict[Choice, str] = {}

    def __call__(self, choices: Sequence[Choice], repeats: int) -> list[float | None]:
        """Measure like `strategies.Measure`."""
        usable = [choice for choice in choices if choice not in self.failures]
        times: dict[Choice, float] = {}
        for part in batches(self._layer, usable, self._limits):
            times |= self._measure(part, repeats)
        return [times.get(choice) for choice in choices]

    def is_right(self, choice: Choice) -> bool:
        """Return whether it computes what the reference does; a wrong one counts as failed."""
        plan = self._trial([choice])
        (name, wanted), = evaluate(plan.graph, plan.inputs).items()  # fmt: skip
        found = np.asarray(self._run(plan, 1).outputs[name], np.float64)
        difference = float(np.abs(found - wanted).max())
        tolerance = TOLERANCES[self._options.precision] * float(np.abs(wanted).max())
        if difference <= tolerance:  # a NaN is not
            return True
        self.failures[choice] = f"computes wrongly: differs by {difference:.3g}, more than {tolerance:.3g}"
        return False

    def _trial(self, choices: Sequence[Choice]) -> Trial:
        return trial(self._layer, choices, self._options, self._limits, spirv_cache=self._spirv_cache)

    def _measure(self, choices: list[Choice], repeats: int) -> dict[Choice, float]:
        try:
            plan = self._trial(choices)
            ran = self._run(plan, repeats)
        except CompileError as e:
            if len(choices) == 1:
                self.failures[choices[0]] = str(e)[:_SAID]
                return {}
            middle = len(choices) // 2
            return {**self._measure(choices[:middle], repeats), **self._measure(choices[middle:], repeats)}
        times = {choice: _passes(ran.layers_ms, plan.steps[str(i)]) for i, choice in enumerate(choices)}
        found = {choice: median(passes) for choice, passes in times.items() if passes}
        self._measured += len(found)
        self._best_ms = min([self._best_ms, *found.values()])
        self._report(self._measured, self._best_ms)
        return found


def _passes(layers_ms: Mapping[str, Sequence[float]], steps: Sequence[str]) -> list[float]:
    """Time of each pass in all of these steps; the plan may not have the later ones."""
    own, *others = ([*layers_ms.get(step, ())] for step in steps)
    return [sum(times) for times in zip(own, *(other for other in others if other), strict=True)]
