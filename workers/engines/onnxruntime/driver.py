"""Drive ONNX Runtime."""

from __future__ import annotations

from typing import Any

import onnxruntime

LEVELS = {"none": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED", "all": "ENABLE_ALL"}
PROVIDER = "CPUExecutionProvider"


class OnnxRuntime:
    version = onnxruntime.__version__
    copies_inside = True

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings["threads"]
        options.inter_op_num_threads = 1
        level = LEVELS[settings.get("graph_optimization", "all")]
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
        self._session = onnxruntime.InferenceSession(files["model.onnx"], options, providers=[PROVIDER])
        if self._session.get_providers() != [PROVIDER]:
            raise RuntimeError(f"it runs on {self._session.get_providers()}, and {PROVIDER} was asked for")
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []
        self._names = [port.name for port in self._session.get_outputs()]

    def put(self, inputs: dict[str, Any]) -> None:
        self._inputs = inputs

    def run(self) -> None:
        self._outputs = self._session.run(self._names, self._inputs)

    def get(self) -> dict[str, Any]:
        return dict(zip(self._names, self._outputs, strict=True))


load = OnnxRuntime
