"""The choices of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernels.errors import OptionError

Loss = Literal["cross_entropy", "mean_squared_error"]
"""cross_entropy: of the softmax at the network's end with a label; mean_squared_error: half the sum over the outputs of
the squared differences to the network's input. Both are means over the batch."""
InputDtype = Literal["u8", "f32"]
Steps = Literal["auto", "joined", "apart", "per_node"]
"""joined: a product goes on with what follows it, on OpenCL and Vulkan, and is refused elsewhere; apart: every product,
sum and step by itself; auto: joined on a GPU with memory of its own; per_node: study A's three kernels, of dense
layers on OpenCL and Vulkan."""

Updates = Literal["device", "host"]
"""The taker of the steps of the weights: the device that found the gradients, or the CPU backend beside it (study
A)."""


@dataclass(frozen=True)
class TrainingOptions:
    """Stochastic gradient descent on batches of the size that the graph's input has."""

    samples: int
    """Samples of the data set. An epoch takes whole batches: what is left over differs from epoch to epoch."""
    epochs: int
    seed: int = 0
    """Seed of the order in which epochs take the samples."""
    learning_rate: float = 0.45
    decay: Sequence[tuple[int, float]] = ()
    """The epochs from which on the rate is multiplied, and by what, e.g. ((10, 0.1), (20, 0.1))."""
    momentum: float = 0.0
    loss: Loss = "cross_entropy"
    pretrain_epochs: int = 0
    """The epochs of each layer but the last, as an autoencoder with tied weights, before all layers together."""
    input_dtype: InputDtype = "u8"
    scale: float = 0.0
    """The factor of the inputs; 0: 1/255 of bytes, 1 of floats."""
    steps: Steps = "auto"
    updates: Updates = "device"

    def __post_init__(self) -> None:
        """Raises OptionError for numbers that make no sense."""
        if self.epochs < 1 or self.pretrain_epochs < 0 or self.samples < 1:
            raise OptionError("a training has at least one epoch and one sample, and no fewer than 0 epochs before")
        if not 0 <= self.momentum < 1:
            raise OptionError(f"momentum is 0 to below 1, not {self.momentum}")
        if not -(2**31) <= self.seed < 2**31:
            raise OptionError(f"the seed {self.seed} is no 32-bit number")

    @property
    def input_scale(self) -> float:
        """The factor of the inputs."""
        return self.scale or (1 / 255 if self.input_dtype == "u8" else 1.0)

    def rates(self, epochs: int) -> list[float]:
        """The learning rate of each epoch of a stage."""
        found = []
        for epoch in range(epochs):
            rate = self.learning_rate
            for start, factor in self.decay:
                rate *= factor if epoch >= start else 1.0
            found.append(rate)
        return found
