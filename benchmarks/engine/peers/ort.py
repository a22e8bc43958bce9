"""onnxruntime on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from .engine import Arrays, Model


class _Ort:
    copies_inside = True
    version = onnxruntime.__version__

    def __init__(self, model: Model) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = model.threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model.onnx), options, providers=["CPUExecutionProvider"])
        self.device = f"{', '.join(self._session.get_providers())}, {model.threads} threads"
        self.remarks: list[str] = []
        self._names = [port.name for port in self._session.get_outputs()]
        self._inputs: dict[str, Any] = {}
        self._outputs: list[np.ndarray[Any, Any]] = []

    def put(self, inputs: Arrays) -> None:
        self._inputs = dict(inputs)

    def run(self) -> None:
        self._outputs = self._session.run(self._names, self._inputs)

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return dict(zip(self._names, self._outputs, strict=True))


def prepare(model: Model) -> None:
    """The file is ONNX already."""
    del model


def load(model: Model, _: None) -> _Ort:
    """Return an `engine.Engine`."""
    return _Ort(model)
