"""The inference that a phone computes for a request, when the experiment runs on phones."""

from __future__ import annotations

from pydantic import Field, model_validator

from orchestrator.model.base import Model
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell


class Inference(Model):
    """One network on one backend."""

    network: str | None = None
    """Name of a built-in network."""
    onnx: str | None = None
    """An ONNX file, relative to the spec's folder."""
    seed: int = 1
    """The seed of a built-in network's weights, and of the random input."""
    backend: Api
    precision: Precision = Precision.FP32
    axes: dict[str, int | str | bool] = Field(default_factory=dict)
    """Further axes of experiments, e.g. `threads: 2`."""

    @model_validator(mode="after")
    def _one(self) -> Inference:
        if (self.network is None) == (self.onnx is None):
            raise ValueError("give either network (a built-in name) or onnx (a file)")
        if "batch" in self.axes:
            raise ValueError("leave out axes.batch: the spec's `batch` says how many requests are served together")
        return self

    def cell(self, batch: int) -> Cell:
        """Return the cell as an experiment knows it; `batch`: requests that are served together."""
        workload = Workload(network=self.network, onnx=self.onnx, seed=self.seed)
        batched = {"batch": batch} if batch > 1 else {}
        return Cell(workload=workload, backend=self.backend, precision=self.precision, options={**self.axes, **batched})
