"""tinygrad over OpenCL: its ONNX runner under TinyJit, without a search for kernels (BEAM off, as it comes)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from tinygrad import Device, Tensor, TinyJit
from tinygrad.nn.onnx import OnnxRunner

from .engine import Arrays, Model, PeerError

_CAPTURE = 3
"""Calls until TinyJit replays."""


class _Tinygrad:
    copies_inside = False
    version = version("tinygrad")

    def __init__(self, model: Model) -> None:
        if Device.DEFAULT != "CL":
            raise PeerError(f"tinygrad computes on {Device.DEFAULT}, not on CL")
        self.device = Device["CL"].device_name
        if model.device.lower() not in self.device.lower():
            raise PeerError(f"tinygrad's OpenCL device is {self.device}, not {model.device}")
        self.remarks: list[str] = []
        runner = OnnxRunner(model.onnx).to("CL")
        shapes = {name: tuple(port.shape) for name, port in runner.graph_inputs.items()}
        self._inputs = {name: Tensor.zeros(*shape).contiguous().realize() for name, shape in shapes.items()}

        def infer(**inputs: Tensor) -> dict[str, Tensor]:
            return {name: value.realize() for name, value in runner(inputs).items()}

        self._infer: Any = TinyJit(infer)
        for _ in range(_CAPTURE):
            self.run()

    def put(self, inputs: Arrays) -> None:
        for name, array in inputs.items():
            self._inputs[name].assign(Tensor(array)).realize()
        Device["CL"].synchronize()

    def run(self) -> None:
        self._outputs = self._infer(**self._inputs)
        Device["CL"].synchronize()

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: value.numpy() for name, value in self._outputs.items()}


def prepare(model: Model) -> None:
    """The file is ONNX already."""
    del model


def load(model: Model, _: None) -> _Tinygrad:
    """Return an `engine.Engine`."""
    return _Tinygrad(model)
