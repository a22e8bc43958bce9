"""onnxruntime on the CPU."""

from functools import partial

from .driven import as_onnx as prepare
from .driven import loaded

load = partial(loaded, "onnxruntime")
__all__ = ["load", "prepare"]
