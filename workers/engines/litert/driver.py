"""Drive LiteRT (TensorFlow Lite) on the CPU, with XNNPACK as it comes. Its images have their channels last."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter


class LiteRt:
    copies_inside = True
    version = version("ai-edge-litert")

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        self._interpreter = Interpreter(files["model.tflite"], num_threads=settings["threads"])
        self._interpreter.allocate_tensors()
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []
        self._inputs, self._outputs = settings["inputs"], settings["outputs"]
        self._places = [port["index"] for port in self._interpreter.get_input_details()]

    def put(self, inputs: dict[str, Any]) -> None:
        arrays = [inputs[name] for name in self._inputs]
        self._given = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) if a.ndim == 4 else a for a in arrays]

    def run(self) -> None:
        for place, array in zip(self._places, self._given, strict=True):
            self._interpreter.set_tensor(place, array)
        self._interpreter.invoke()

    def get(self) -> dict[str, Any]:
        ports = self._interpreter.get_output_details()
        arrays = [self._interpreter.get_tensor(port["index"]) for port in ports]
        planes = [array.transpose(0, 3, 1, 2) if array.ndim == 4 else array for array in arrays]
        return dict(zip(self._outputs, planes, strict=True))


load = LiteRt
