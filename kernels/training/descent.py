"""The step of a weight from its gradient: rate by epoch, momentum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .home import Home
from .machine import Rows
from .options import TrainingOptions
from .stages import TrainingStage


class Descent:
    """The buffers that the steps of one stage read and write."""

    def __init__(
        self, home: Home, stage: TrainingStage, training: TrainingOptions, buffers: Mapping[str, str], counter: str,
        batches: int,
    ) -> None:  # fmt: skip
        self._home, self._machine = home, home.machine
        self._stage, self._training, self._buffers = stage, training, buffers
        self._counter = counter
        self._velocities: dict[str, str] = {}
        self.ints = {"batches": batches, "epochs": stage.epochs}
        self.floats = {"momentum": training.momentum} if training.momentum else {}

    def rate(self) -> dict[str, str]:
        """Buffers that say how far a step goes."""
        rates = np.array(self._training.rates(self._stage.epochs), np.float32)
        return {"counter": self._counter, "rates": self._machine.weight("rates", rates)}

    def changed(self, name: str, elements: int, role: str = "") -> dict[str, str]:
        """Buffers that the step of a weight changes, as parameters of the role `weight`, or of `bias`."""
        found = {role or "weight": self._buffers[name]}
        if self._training.momentum:
            found["bias_velocity" if role == "bias" else "velocity"] = self._velocity(name, elements)
        return found

    def _velocity(self, name: str, elements: int) -> str:
        if name not in self._velocities:
            still = np.zeros(elements, np.float32)
            buffer = self._machine.buffer(f"{self._stage.name}:{name}:velocity", still.shape, "variable", still)
            self._velocities[name] = buffer
        return self._velocities[name]

    def collect(self, gradient: Rows) -> Rows:
        """A gradient as the steps read it."""
        return replace(gradient, buffer=self._home.collect(gradient.buffer))

    def step(self, name: str, gradient: Rows) -> None:
        """Append the step of one weight, by a gradient that was collected."""
        count = gradient.elements // 4
        kernel = "momentum_step" if self._training.momentum else "gradient_step"
        buffers = {**self.rate(), **self.changed(name, gradient.elements), "gradient": gradient.buffer}
        self._machine.kernel(kernel, f"{name}:step", buffers, {"count": count, **self.ints}, (count, 1), self.floats)
