"""ONNX Runtime: its CPU provider, whatever the model's operators."""

from __future__ import annotations

from orchestrator.model.device import EngineAxis
from workers.engines.packaged import PackagedEngine


class OnnxRuntime(PackagedEngine):
    name = package = "onnxruntime"
    axes = (
        EngineAxis(
            name="graph_optimization",
            help="how far it rewrites the graph before it runs",
            default="all",
            words=("none", "basic", "extended", "all"),
        ),
    )


ENGINE = OnnxRuntime
