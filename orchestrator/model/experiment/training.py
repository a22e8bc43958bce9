"""The training of a network, and its set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Share

Loss = Literal["cross_entropy", "mean_squared_error"]
Steps = Literal["auto", "joined", "apart", "per_node"]


class TrainingSet(Model):
    """Samples with their classes, from files or by name. Kept once by its content, and pushed to a device once."""

    inputs: str | None = None
    """Path relative to the experiment file: IDX (MNIST's, also `.gz`), `.npy`, `.npz` (array `inputs`, `x_train` or
    `x`) or `.parquet` (every column but `label`). Numbers of 8 bits without sign, or floating point."""
    labels: str | None = None
    """The class of each sample, 0 to 255: a file of the same kinds; not given: it is in the file of the inputs
    (`labels`, `y_train` or `y` of `.npz`, column `label` of Parquet)."""
    named: Literal["digits"] | None = None
    """A set in place of files. `digits`: 1797 handwritten digits of 8 x 8 from scikit-learn, in a fixed random order;
    enlarged where the network takes larger squares, e.g. of MNIST's 28 x 28."""
    scale: PositiveFloat | None = None
    """The factor of the inputs; not given: 1/255 of bytes, 1/16 of `digits`, 1 of floats."""
    held_out: Share | None = None
    """The last part of the set is not trained with: the trained network's error is told of it. Not given: of all."""
    inputs_sha256: str | None = None
    """Filled in at submission, as all below."""
    labels_sha256: str | None = None
    size: Annotated[int, Field(ge=1)] | None = None
    """Number of samples."""

    @rule
    def _one_of(self) -> None:
        if (self.inputs is None) == (self.named is None):
            raise ValueError("give exactly one of `inputs` (a file) and `named` (`digits`)")
        if self.labels is not None and self.inputs is None:
            raise ValueError("`labels` go with `inputs`")

    @property
    def trained(self) -> int:
        """Samples to train with, of a submitted set."""
        return self._known_size - int(self._known_size * (self.held_out or 0.0))

    @property
    def evaluated(self) -> range:
        """Places of those that the trained network is asked about."""
        return range(self.trained if self.held_out else 0, self._known_size)

    @property
    def _known_size(self) -> int:
        if self.size is None:
            raise ValueError("the set was not submitted: its size is not known")
        return self.size


class Training(Model):
    """Stochastic gradient descent, run by the agent alone. A block is one training from the same start; a sample is an
    epoch."""

    dataset: TrainingSet
    epochs: int = Field(ge=1, le=100_000)
    batch: int = Field(default=64, ge=4, multiple_of=4)
    """Samples of a step, unless `matrix.batch` says so."""
    learning_rate: float = Field(default=0.45, gt=0)
    schedule: tuple[tuple[int, float], ...] = ()
    """The rate's factors, each from an epoch on: `[[10, 0.1], [20, 0.1]]`."""
    momentum: float = Field(default=0.0, ge=0, lt=1)
    loss: Loss = "cross_entropy"
    """`cross_entropy` of the softmax at the network's end; `mean_squared_error` to the network's own input."""
    seed: int = Field(default=0, ge=-(2**31), lt=2**31)
    """The seed of the samples' order, the same on every device. `workload.seed` is that of the first weights."""
    pretraining: int = Field(default=0, ge=0, le=100_000)
    """Epochs in which each layer is trained as an autoencoder with tied weights, before all layers together."""
    checkpoint: int = Field(default=10, ge=1)
    """Epochs after which the device keeps the weights, from which another attempt goes on."""
    steps: Steps = "auto"
    """The steps on OpenCL and Vulkan: a product goes on with what follows it (`joined`), or everything is a step of
    its own (`apart`), as on the CPU always. `auto`: joined on GPUs with memory of their own. `per_node`: study A's
    own three kernels, of dense layers."""
