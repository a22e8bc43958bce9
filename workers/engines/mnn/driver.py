"""Drive MNN."""

from __future__ import annotations

from typing import Any

import MNN
import numpy as np
from MNN import expr, nn


class Mnn:
    version = MNN.version()
    copies_inside = True

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        config = {"backend": "CPU", "precision": "high", "numThread": settings["threads"]}
        self._runtime = nn.create_runtime_manager((config,))
        self._inputs, self._outputs = settings["inputs"], settings["outputs"]
        path = files["model.mnn"]
        self._net = nn.load_module_from_file(path, self._inputs, self._outputs, runtime_manager=self._runtime)
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []

    def put(self, inputs: dict[str, Any]) -> None:
        if any(array.dtype != np.float32 for array in inputs.values()):
            raise RuntimeError("the driver of MNN takes inputs in fp32 alone")
        self._given = [expr.const(inputs[name], inputs[name].shape, expr.NCHW) for name in self._inputs]

    def run(self) -> None:
        found = self._net.forward(self._given)
        found = found if isinstance(found, list) else [found]
        self._found = [expr.convert(each, expr.NCHW).read() for each in found]

    def get(self) -> dict[str, Any]:
        return dict(zip(self._outputs, self._found, strict=True))


load = Mnn
