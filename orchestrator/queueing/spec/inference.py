"""The inference that a phone computes for a request, when the experiment runs on phones."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell

NO_TEXT: Mapping[str, int] = {}


class Inference(Model):
    """One network on one backend."""

    network: str | None = None
    """Name of a built-in network."""
    onnx: str | None = None
    """An ONNX file, relative to the spec's folder."""
    language_model: str | None = None
    """A decoder, relative to the spec's folder; `service` of kind `answer` says how many tokens."""
    seed: int = 1
    """The seed of a built-in network's weights, and of the random input."""
    backend: Api
    precision: Precision = Precision.FP32
    axes: dict[str, int | str | bool] = Field(default_factory=dict)
    """Further axes of experiments, e.g. `threads: 2`."""

    @rule
    def _one(self) -> None:
        if sum(each is not None for each in (self.network, self.onnx, self.language_model)) != 1:
            raise ValueError("give one of network (a built-in name), onnx (a file) and language_model (a file)")
        if "batch" in self.axes:
            raise ValueError("leave out axes.batch: the spec's `batch` says how many requests are served together")

    def cell(self, batch: int, text: Mapping[str, int] = NO_TEXT) -> Cell:
        """Return the cell as an experiment knows it; `batch`: requests that are served together; `text`: of a language
        model, the axes of its longest one."""
        workload = Workload(network=self.network, onnx=self.onnx, language_model=self.language_model, seed=self.seed)
        batched = {"batch": batch} if batch > 1 else {}
        options = {**self.axes, **batched, **text}
        return Cell(workload=workload, backend=self.backend, precision=self.precision, options=options)
