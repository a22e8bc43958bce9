"""Drive OpenVINO."""

from __future__ import annotations

from typing import Any

import openvino


class OpenVino:
    version = openvino.__version__.split("-")[0]
    copies_inside = True

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        core = openvino.Core()
        options = {
            "INFERENCE_NUM_THREADS": settings["threads"],
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        compiled = core.compile_model(core.read_model(files["model.onnx"]), "CPU", options)
        ran = compiled.get_property("EXECUTION_DEVICES")
        if list(ran) != ["CPU"]:
            raise RuntimeError(f"it runs on {ran}, and the CPU was asked for")
        self._request = compiled.create_infer_request()
        self._ports = {name: port for port in compiled.outputs for name in sorted(port.names)}
        self._names = settings["outputs"]
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []

    def put(self, inputs: dict[str, Any]) -> None:
        for name, array in inputs.items():
            self._request.set_tensor(name, openvino.Tensor(array))

    def run(self) -> None:
        self._request.infer()

    def get(self) -> dict[str, Any]:
        return {name: self._request.get_tensor(self._ports[name]).data.copy() for name in self._names}


load = OpenVino
