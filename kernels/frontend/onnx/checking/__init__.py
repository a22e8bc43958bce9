"""Checks of a model: nodes against ONNX's schemas and shape inference, and all that stands in its way at once."""

from .inference import Inference
from .node_checker import NodeChecker
from .obstacles import Obstacles

__all__ = ["Inference", "NodeChecker", "Obstacles"]
