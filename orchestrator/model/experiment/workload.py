"""The workload: a built-in network, or an ONNX file with an input or a set."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from orchestrator.model.base import Model
from orchestrator.model.quantity import Seconds

from .dataset import Dataset
from .training import Training

KINDS = ("network", "onnx", "wait")
"""The fields that say what runs."""


class Workload(Model):
    """A network by name with seeded weights, an ONNX file, or a time to wait; exactly one of them."""

    network: str | None = None
    """Name of a built-in network (`farm networks` lists them)."""
    parameters: dict[str, int | tuple[int, ...]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Sizes of a built-in network that has some (`farm networks`): `{size: 128}`, `{hidden: [1000, 250, 10]}`."""
    sizes: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Sizes that an ONNX file leaves open, by name: `{height: 320}`; those that `input` or `dataset` have need none."""
    seed: int = 1
    """Seed of the weights of a built-in network, and of the random input where no input file is given."""
    onnx: str | None = None
    """Path of an ONNX file, relative to the experiment file; `sha256:HASH`: a model that a training of
    this farm left."""
    onnx_sha256: str | None = None
    """Filled in at submission: the model's identity."""
    input: str | None = None
    """Path of a `.npy` input, relative to the experiment file; seeded random numbers where absent."""
    input_sha256: str | None = None
    """Filled in at submission."""
    choices: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Path of a choices file (`farm best -o`), relative to the experiment file: layers with axes of their own; the axis
    `choices` says whether the best or the worst."""
    choices_sha256: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Filled in at submission."""
    dataset: Dataset | None = Field(default=None, exclude_if=lambda value: value is None)
    """Examples instead of one input: what the model predicts for each is kept, and predictions of the configurations
    are compared (`farm agreement`)."""
    training: Training | None = Field(default=None, exclude_if=lambda value: value is None)
    """Train the network instead of running it."""
    wait: Seconds | None = Field(default=None, exclude_if=lambda value: value is None)
    """The time that each sample takes, with a unit: `200 ms`. Nothing is computed; for `matrix.engine: wait`."""

    @model_validator(mode="after")
    def _one_of(self) -> Workload:
        if sum(getattr(self, name) is not None for name in KINDS) != 1:
            raise ValueError("give exactly one of `network` (a built-in name), `onnx` (a file) and `wait` (a time)")
        if self.wait is not None and any((self.input, self.choices, self.dataset, self.training)):
            raise ValueError("a workload that waits has no `input`, `choices`, `dataset` or `training`")
        if self.parameters and self.network is None:
            raise ValueError("`parameters` are those of a built-in `network`")
        if self.sizes and self.onnx is None:
            raise ValueError("`sizes` are those that an `onnx` file leaves open; a `network` has `parameters`")
        if self.dataset is not None and self.input is not None:
            raise ValueError("give one of `input` (one input for every inference) and `dataset` (many examples)")
        if self.training is not None and (self.input is not None or self.dataset is not None):
            raise ValueError("`training` has a `dataset` of its own: leave out `workload.input` and `workload.dataset`")
        return self

    def __hash__(self) -> int:
        sizes = tuple(sorted(self.every_size.items()))
        model = (self.network, sizes, self.seed, self.onnx, self.onnx_sha256, self.choices_sha256)
        return hash((*model, self.input, self.dataset, self.training, self.wait))

    @property
    def kind(self) -> str:
        """Return the field that says what runs; an engine takes some of them."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def every_size(self) -> dict[str, int | tuple[int, ...]]:
        """`parameters` of a network, `sizes` of a file."""
        return self.parameters or dict(self.sizes)

    @property
    def label(self) -> str:
        if self.wait is not None:
            return f"wait {1000 * self.wait:g} ms"
        name = self.network or str(self.onnx).rsplit("/", 1)[-1].removesuffix(".onnx")
        return name + "".join(f" {size}={_sizes_text(value)}" for size, value in sorted(self.every_size.items()))


def _sizes_text(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else "-".join(map(str, value))
