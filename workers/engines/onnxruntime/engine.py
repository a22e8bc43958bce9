"""ONNX Runtime: its CPU provider, whatever the model's operators."""

from __future__ import annotations

from workers.engines.packaged import PackagedEngine


class OnnxRuntime(PackagedEngine):
    name = "onnxruntime"


ENGINE = OnnxRuntime
